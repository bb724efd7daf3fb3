"""Taking back what was said: hidden from the model, lists, search and transcripts, kept for an audit.

Contract: under the fence of the conversation, in one transaction: all that is still seen of it from one message on is
marked `rewound`, and the counters of its sessions are lowered by what was counted. The summary of a compressed
conversation stays, and what it stands for cannot be taken back. Repeated, nothing more changes.
Failure: FenceLost, and nothing changed, when the conversation was taken over.
Limits: what was sent to a platform stays there.
"""

from __future__ import annotations

from session_store import leases
from session_store.jsontext import to_json
from session_store.lineage import live_tip
from session_store.models import TakeBack
from session_store.sessions import session_row
from session_store.tx import Tx
from session_store.view import seen_from, segments

__all__ = ["rewind", "take_back"]

_PICKED = """
session_id IN (SELECT value FROM json_each(?1)) AND id >= ?2 AND rewound = 0
AND (op_id IS NULL OR op_id NOT GLOB 'summary:*') AND (?3 = 1 OR role <> 'user')
"""
_COUNTED = f"""
SELECT session_id, COUNT(*) AS messages, SUM(CASE WHEN role = 'assistant' AND json_valid(tool_calls)
    THEN CASE json_type(tool_calls) WHEN 'array' THEN json_array_length(tool_calls) ELSE 1 END ELSE 0 END) AS calls
FROM messages WHERE {_PICKED} GROUP BY session_id LIMIT 1000
"""  # noqa: S608 - joined from constants
_REWIND = f"UPDATE messages SET rewound = 1 WHERE {_PICKED}"  # noqa: S608 - joined from constants
_UNCOUNT = """
UPDATE sessions SET message_count = MAX(COALESCE(message_count, 0) - ?, 0),
    tool_call_count = MAX(COALESCE(tool_call_count, 0) - ?, 0)
WHERE id = ?
"""


def take_back(tx: Tx, wanted: TakeBack) -> bool:
    """Take back everything from one message on; False if there was nothing (any more)."""
    leases.check(tx, wanted.fence)
    return rewind(tx, wanted.session_id, wanted.first_id, users=True) > 0


def rewind(tx: Tx, session_id: str, first_id: int, *, users: bool) -> int:
    """Mark what is seen from `first_id` on as taken back; returns how many messages. users: what people said, too."""
    tip = session_row(tx, live_tip(tx, session_id))
    if tip is None:
        return 0
    picked = (to_json(segments(tx, tip)), max(first_id, seen_from(tx, tip)), int(users))
    for row in tx.all(_COUNTED, picked):
        tx.run(_UNCOUNT, (row["messages"], row["calls"], row["session_id"]))
    return tx.run(_REWIND, picked)
