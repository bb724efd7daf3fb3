"""Taking things away: prune, delete, clear. Always whole conversations.

Contract: a deleted conversation is gone with all its segments, messages, usage, routes, turns, lease, control rows and
outbox rows, the waiting ones included; nothing of its text is left in a row. Sessions that came out of it otherwise
(branches, tool and scheduled runs) live on without a parent. Input that was accepted for it and not yet answered is
settled, its text removed.
Prune takes conversations whose tip has ended and whose last activity is older than the given days; never an archived
one, one with a running turn or one with accepted input. What the dry run lists is what the prune deletes.
Failure: unknown sessions give False or 0. Each conversation goes in a transaction of its own and is judged again in it,
so that a prune that was cut short can be repeated.
Limits: freed pages stay in the file until SQLite uses them again.
"""

from __future__ import annotations

import json
import math
from functools import partial
from typing import TYPE_CHECKING

from session_store.errors import InvalidArgument
from session_store.lineage import IS_TIP, conversation_of
from session_store.listing import describe
from session_store.models import Visibility
from session_store.rows import PruneKept, SessionListRow
from session_store.tx import Param, Rx, Tx
from session_store.visible import is_visible

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["clear_conversation", "cutoff", "delete_conversation", "kept_back", "prunable", "prune"]

_DAY = 86_400.0
_MOST_CANDIDATES = 10_000

_EXISTS = "SELECT 1 FROM sessions WHERE id = ?"

# Ended tips without activity since ?1, of source ?2 (null: any); only ?3 when given. The longest untouched first.
_ENDED = """
SELECT s.id FROM sessions s
WHERE s.ended_at IS NOT NULL AND s.archived = 0 AND (?2 IS NULL OR s.source = ?2) AND (?3 IS NULL OR s.id = ?3)
    AND COALESCE(s.last_active, s.started_at) < ?1
    AND COALESCE((SELECT m.timestamp FROM messages m WHERE m.session_id = s.id ORDER BY m.id DESC LIMIT 1), 0) < ?1
    AND /*tip*/
ORDER BY COALESCE(s.last_active, s.started_at), s.id LIMIT ?4
""".replace("/*tip*/", IS_TIP)

# Tips that are old enough (?1, ?2 as above) but were never ended or are archived: how many of each.
_KEPT = """
SELECT COALESCE(SUM(s.archived = 0), 0) AS open, COALESCE(SUM(s.archived <> 0), 0) AS archived
FROM sessions s
WHERE (s.ended_at IS NULL OR s.archived <> 0) AND s.kind IN ('live', 'branch') AND (?2 IS NULL OR s.source = ?2)
    AND COALESCE(s.last_active, s.started_at) < ?1
    AND COALESCE((SELECT m.timestamp FROM messages m WHERE m.session_id = s.id ORDER BY m.id DESC LIMIT 1), 0) < ?1
    AND /*tip*/
""".replace("/*tip*/", IS_TIP)

# Why a conversation must stay: ?1 its session ids as JSON.
_HELD = """
SELECT 1 FROM sessions WHERE id IN (SELECT value FROM json_each(?1)) AND archived <> 0
UNION ALL
SELECT 1 FROM turns WHERE session_id IN (SELECT value FROM json_each(?1)) AND state = 'running'
UNION ALL
SELECT 1 FROM inbox
WHERE state IN ('new', 'taken') AND (session_id IN (SELECT value FROM json_each(?1))
    OR lane IN (SELECT value FROM json_each(?1))
    OR session_key IN (SELECT session_key FROM routes WHERE session_id IN (SELECT value FROM json_each(?1)))
    OR turn_id IN (SELECT id FROM turns WHERE session_id IN (SELECT value FROM json_each(?1))))
LIMIT 1
"""

# Input of the conversation that nobody will answer any more: settled, its text removed. ?1 ids, ?2 now.
_SETTLE_INBOX = """
UPDATE inbox SET state = 'done', payload = NULL, done_at = ?2
WHERE state IN ('new', 'taken', 'set_aside') AND (session_id IN (SELECT value FROM json_each(?1))
    OR lane IN (SELECT value FROM json_each(?1))
    OR turn_id IN (SELECT id FROM turns WHERE session_id IN (SELECT value FROM json_each(?1))))
"""

# Everything the conversation still has to say, or said.
_DELETE_OUTBOX = """
DELETE FROM outbox WHERE session_id IN (SELECT value FROM json_each(?1))
    OR turn_id IN (SELECT id FROM turns WHERE session_id IN (SELECT value FROM json_each(?1)))
    OR message_id IN (SELECT id FROM messages WHERE session_id IN (SELECT value FROM json_each(?1)))
"""
_DELETE_MESSAGES = "DELETE FROM messages WHERE session_id IN (SELECT value FROM json_each(?1))"

# The rest, in an order that foreign keys allow.
_DELETE_REST = (
    "DELETE FROM control WHERE root_id IN (SELECT value FROM json_each(?1))",
    "DELETE FROM usage WHERE session_id IN (SELECT value FROM json_each(?1))",
    "DELETE FROM turns WHERE session_id IN (SELECT value FROM json_each(?1))",
    "DELETE FROM leases WHERE root_id IN (SELECT value FROM json_each(?1))",
    "DELETE FROM compression_failures WHERE root_id IN (SELECT value FROM json_each(?1))",
    "DELETE FROM handoffs WHERE root_id IN (SELECT value FROM json_each(?1))",
    "DELETE FROM place_history WHERE root_id IN (SELECT value FROM json_each(?1))",
    "DELETE FROM routes WHERE session_id IN (SELECT value FROM json_each(?1))",
    "UPDATE sessions SET parent_session_id = NULL WHERE parent_session_id IN (SELECT value FROM json_each(?1))",
    "DELETE FROM sessions WHERE id IN (SELECT value FROM json_each(?1))",
)

_FORGET_COUNTS = """
UPDATE sessions SET message_count = 0, tool_call_count = 0, context_from = NULL
WHERE id IN (SELECT value FROM json_each(?1))
"""


def cutoff(now: float, older_than_days: float) -> float:
    """Return the moment before which the last activity must lie.

    Raises:
        InvalidArgument: days that are negative or no number.
    """
    if not math.isfinite(older_than_days) or older_than_days < 0:
        raise InvalidArgument(f"{older_than_days} is no number of days. Give 0 or more.")
    return now - older_than_days * _DAY


def prunable(rx: Rx, before: float, source: str | None, visible_to: Visibility | None = None) -> list[SessionListRow]:
    """Return the conversations that a prune would delete, the longest untouched first; at most 10,000.

    visible_to: only those that this asker may see.
    """
    ended = [row["id"] for row in rx.all(_ENDED, (before, source, None, _MOST_CANDIDATES))]
    seen = [tip for tip in ended if is_visible(rx, tip, visible_to)]
    return describe(rx, [tip for tip in seen if not _is_held(rx, conversation_of(rx, tip))])


def kept_back(rx: Rx, before: float, source: str | None) -> PruneKept:
    """Return how many conversations are as old but stay, by the reason."""
    row = rx.all(_KEPT, (before, source))[0]
    ended = rx.all(_ENDED, (before, source, None, _MOST_CANDIDATES))
    in_use = sum(_is_held(rx, conversation_of(rx, tip["id"])) for tip in ended)
    return {"open": row["open"], "archived": row["archived"], "in_use": in_use}


async def prune(engine: Engine, before: float, source: str | None) -> int:
    """Delete what `prunable` lists, each conversation in its own transaction; returns how many went."""
    candidates = await engine.read(lambda rx: prunable(rx, before, source))
    gone = 0
    for candidate in candidates:
        gone += await engine.write(partial(_prune_one, tip=candidate["id"], before=before, source=source))
    return gone


def _prune_one(tx: Tx, tip: str, before: float, source: str | None) -> bool:
    if tx.one(_ENDED, (before, source, tip, 1)) is None or _is_held(tx, conversation_of(tx, tip)):
        return False
    return delete_conversation(tx, tip)


def _is_held(rx: Rx, members: list[str]) -> bool:
    return rx.one(_HELD, _ids(members)) is not None


def _ids(members: list[str]) -> tuple[Param]:
    return (json.dumps(members),)


def delete_conversation(tx: Tx, session_id: str) -> bool:
    """Delete the whole conversation of this session; False when there is no such session."""
    if tx.one(_EXISTS, (session_id,)) is None:
        return False
    members = _ids(conversation_of(tx, session_id))
    tx.run(_SETTLE_INBOX, (*members, tx.now))
    tx.run(_DELETE_OUTBOX, members)
    tx.run(_DELETE_MESSAGES, members)
    for statement in _DELETE_REST:
        tx.run(statement, members)
    return True


def clear_conversation(tx: Tx, session_id: str) -> int:
    """Delete the messages of the whole conversation and what was to be sent of it; the session rows stay, counts 0."""
    if tx.one(_EXISTS, (session_id,)) is None:
        return 0
    members = _ids(conversation_of(tx, session_id))
    tx.run(_DELETE_OUTBOX, members)
    removed = tx.run(_DELETE_MESSAGES, members)
    tx.run(_FORGET_COUNTS, members)
    return removed
