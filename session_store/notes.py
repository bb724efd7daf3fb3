"""What the agent is told beside the text of user messages: who spoke, what was quoted, what was changed since.

Contract: notes lie beside the messages, never in their text, so that search and transcripts show what people said. A
change of an earlier message is told with the first user message after it, and so always at the same place. Reads only,
but for `add_note`, which the claim calls in its own transaction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from session_store.content import plain_text
from session_store.jsontext import to_json
from session_store.models import MessageNote
from session_store.rows import ChangeRow, MessageRow, NoteRow
from session_store.tx import Row, Rx, Tx

__all__ = ["Annotate", "add_note", "changes_for", "notes_of"]

Annotate: TypeAlias = Callable[[MessageRow, NoteRow | None, Sequence[ChangeRow]], Any]
"""Given a user message, its note and the changes it tells: its content as the agent is to see it. Pure, quick."""

ADD = """
INSERT OR IGNORE INTO message_notes (message_id, sender, quoted, quoted_name, parts) VALUES (?, ?, ?, ?, ?)
"""
NOTES = """
SELECT n.message_id, n.sender, n.quoted, n.quoted_name, n.parts
FROM json_each(?) AS i JOIN message_notes AS n ON n.message_id = i.value
"""
# All versions of the messages ?1, oldest first, with the stored content as it is now.
VERSIONS = """
SELECT v.message_id, v.kind, v.content, v.told_after, m.content AS present
FROM json_each(?1) AS i JOIN message_versions AS v ON v.message_id = i.value JOIN messages AS m ON m.id = v.message_id
ORDER BY v.id
"""
# Messages of the conversation ?2 before the message ?1 that were changed after it.
CHANGED_BEFORE = """
SELECT DISTINCT v.message_id AS id FROM message_versions AS v JOIN messages AS m ON m.id = v.message_id
WHERE v.told_after >= ?1 AND v.message_id < ?1
    AND m.session_id IN (SELECT s.id FROM sessions AS s WHERE s.root_id = ?2 OR s.id = ?2)
LIMIT 1000
"""


def add_note(tx: Tx, message_id: int, note: MessageNote | None, parts: Sequence[tuple[int, str]] | None) -> None:
    """Keep what is told beside a message, if anything. parts: inbox row and text of each part, if it has several."""
    told = note or MessageNote()
    if parts is None and told == MessageNote():
        return
    made_of = None if parts is None else to_json([list(part) for part in parts])
    tx.run(ADD, (message_id, told.sender, told.quoted, told.quoted_name, made_of))


def notes_of(rx: Rx, messages: Sequence[MessageRow]) -> dict[int, NoteRow]:
    """Return the notes of these messages, by message id."""
    ids = json.dumps([message["id"] for message in messages if message["role"] == "user"])
    return {
        row["message_id"]: NoteRow(
            message_id=row["message_id"],
            sender=row["sender"],
            quoted=row["quoted"],
            quoted_name=row["quoted_name"],
            parts=row["parts"],
        )
        for row in rx.all(NOTES, (ids,))
    }


def changes_for(rx: Rx, messages: Sequence[MessageRow], root_id: str | None = None) -> dict[int, list[ChangeRow]]:
    """Return, by the id of the user message that tells them, the changes of these messages (oldest first).

    root_id: of the conversation, when older messages of it are not among these; what was changed of them since the
    first of these is told, too.
    """
    changed = [message["id"] for message in messages if message["edited_at"] is not None]
    if root_id is not None and messages:
        changed += [row["id"] for row in rx.all(CHANGED_BEFORE, (messages[0]["id"], root_id))]
    if not changed:
        return {}
    told: dict[int, dict[int, ChangeRow]] = {}
    users = sorted(message["id"] for message in messages if message["role"] == "user")
    versions = rx.all(VERSIONS, (json.dumps(changed),))
    for number, version in enumerate(versions):
        teller = next((user for user in users if user > version["told_after"]), None)
        if teller is None:
            continue
        # Several changes before one question are one: from what was there first to what is there last.
        known = told.setdefault(teller, {}).get(version["message_id"])
        now = _text_after(version, versions[number + 1 :])
        before = known["before"] if known is not None else _plain(version["content"])
        told[teller][version["message_id"]] = ChangeRow(
            message_id=version["message_id"], kind=version["kind"], before=before, now=now
        )
    return {teller: list(changes.values()) for teller, changes in told.items()}


def _text_after(version: Row, later: Sequence[Mapping[str, object]]) -> str | None:
    following = [row for row in later if row["message_id"] == version["message_id"] and row["content"] is not None]
    stored = following[0]["content"] if following else version["present"]
    return _plain(stored if isinstance(stored, str) else None)


def _plain(stored: str | None) -> str | None:
    return None if stored is None else plain_text(stored)
