"""What happened in a session, for whoever must account for it: nothing is folded, cut or left out.

Contract: every stored message in order, those taken back included, with who said it (or for whom it was made), from
which place, in which turn and how that ended, the whole arguments and results of tools, the files that came with it,
and what its author changed or deleted afterwards with the former words, as far as they are kept.
Failure: an unknown session has no rows. Limits: pages of messages; a platform's id of a sender is known as long as the
inbox keeps the row (30 days).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict, cast

from session_store.attachments import attachments_of
from session_store.content import decode_content
from session_store.decoding import decode_message
from session_store.jsontext import from_json, plain
from session_store.rows import AttachmentRow, MessageRow
from session_store.tx import Row, Rx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Audit", "AuditChange", "AuditPlace", "AuditRow", "AuditTurn", "audit_page"]

# Messages of one session with everything that is known about each.
_PAGE = """
SELECT m.*, COALESCE(m.person_id, t.person_id) AS whose, COALESCE(e.name, e.display) AS who,
    n.sender AS speaker, i.sender AS sender,
    p.platform, p.account, p.chat_type, p.chat, p.thread, p.name AS place_name,
    t.state AS turn_state, t.reason AS turn_reason, t.attempt AS turn_attempt, t.started_at AS turn_started_at,
    t.ended_at AS turn_ended_at
FROM messages AS m
LEFT JOIN turns AS t ON t.id = m.turn_id
LEFT JOIN people AS e ON e.id = COALESCE(m.person_id, t.person_id)
LEFT JOIN places AS p ON p.id = COALESCE(m.place_id, t.place_id)
LEFT JOIN message_notes AS n ON n.message_id = m.id
LEFT JOIN inbox AS i ON i.id = m.inbox_id
WHERE m.session_id = ? AND m.id > ? ORDER BY m.id LIMIT ?
"""
# What became of these messages, oldest first.
_CHANGES = """
SELECT message_id, kind, content, changed_at FROM message_versions
WHERE message_id IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT 10000
"""
_MESSAGE = frozenset(MessageRow.__annotations__)
_PLACE = ("platform", "account", "chat_type", "chat", "thread")


class AuditPlace(TypedDict):
    """Where something was said. name: of the chat, for people."""

    platform: str
    account: str
    chat_type: str
    chat: str
    thread: str
    name: str | None


class AuditTurn(TypedDict):
    """The turn that something belongs to: how it ended and why, and how often it was begun."""

    id: str
    state: str
    reason: str | None
    attempt: int
    started_at: float
    ended_at: float | None


class AuditChange(TypedDict):
    """What the author did to a message later. before: its former content, None where that is not kept."""

    kind: str
    before: object
    changed_at: float


class AuditRow(TypedDict):
    """One message and everything that is known about it.

    person: id of who said it or for whom it was made; who: their name; user_id: their id on the platform.
    """

    message: MessageRow
    person: str | None
    who: str | None
    user_id: str | None
    place: AuditPlace | None
    turn: AuditTurn | None
    changes: list[AuditChange]
    files: list[AttachmentRow]


def audit_page(rx: Rx, session_id: str, after_id: int, limit: int) -> list[AuditRow]:
    """Return at most so many messages of this very session after one that is known, oldest first."""
    rows = rx.all(_PAGE, (session_id, after_id, limit))
    ids = [row["id"] for row in rows]
    changes, files = _changes(rx, ids), attachments_of(rx, ids)
    return [_audited(row, changes.get(row["id"], []), files.get(row["id"], [])) for row in rows]


def _audited(row: Row, changes: list[AuditChange], files: list[AttachmentRow]) -> AuditRow:
    message = decode_message({name: value for name, value in row.items() if name in _MESSAGE})
    sender = from_json(row["sender"])
    user_id = sender.get("user_id") if isinstance(sender, dict) and row["role"] == "user" else None
    place, turn = None, None
    if row["platform"] is not None:
        place = cast("AuditPlace", {**{name: row[name] for name in _PLACE}, "name": row["place_name"]})
    if row["turn_state"] is not None:
        facts = {name: row[f"turn_{name}"] for name in ("state", "reason", "attempt", "started_at", "ended_at")}
        turn = cast("AuditTurn", {"id": row["turn_id"], **facts})
    return {
        "message": message,
        "person": row["whose"],
        "who": row["who"] or row["speaker"],
        "user_id": user_id,
        "place": place,
        "turn": turn,
        "changes": changes,
        "files": files,
    }


def _changes(rx: Rx, message_ids: Sequence[int]) -> dict[int, list[AuditChange]]:
    found: dict[int, list[AuditChange]] = {}
    for row in rx.all(_CHANGES, (json.dumps(list(message_ids)),)):
        before = plain(decode_content(row["content"]))
        change: AuditChange = {"kind": row["kind"], "before": before, "changed_at": row["changed_at"]}
        found.setdefault(row["message_id"], []).append(change)
    return found


class Audit:
    """The audit as readers see it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def page(self, session_id: str, after_id: int = 0, limit: int = 200) -> list[AuditRow]:
        """At most so many messages of this very session after one that is known, oldest first."""
        return await self._engine.read(lambda rx: audit_page(rx, session_id, after_id, limit))
