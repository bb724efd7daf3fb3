"""What is told of a found message: its snippet, its neighbours, its session.

Contract: the row is read again by its id in the same view of the database, so a hit is what the search saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from session_store.content import plain_text, readable, tool_calls_text
from session_store.query import Term
from session_store.rows import SearchContext, SearchHit
from session_store.snippet import snippet
from session_store.tx import Row, Rx

__all__ = ["hit"]

_CONTEXT: Final = 200

#: A found message with what is told of its session.
_HIT: Final = """
SELECT m.id, m.session_id, m.role, m.timestamp, m.tool_name, m.content, m.tool_calls,
       s.source, s.model, s.started_at AS session_started, s.title,
       COALESCE(s.root_id, s.id) AS root_id, s.kind
FROM messages AS m JOIN sessions AS s ON s.id = m.session_id WHERE m.id = ?
"""
#: The neighbours of a message in its session.
_BEFORE: Final = """
SELECT role, content, tool_calls FROM messages
WHERE session_id = ? AND id < ? AND rewound = 0 ORDER BY id DESC LIMIT 1
"""
_AFTER: Final = """
SELECT role, content, tool_calls FROM messages
WHERE session_id = ? AND id > ? AND rewound = 0 ORDER BY id LIMIT 1
"""


def hit(rx: Rx, message_id: int, terms: Sequence[Term], *, approximate: bool) -> SearchHit:
    """Tell of a message that the search has found. terms: what its snippet shows."""
    row = rx.one(_HIT, (message_id,)) or {}
    text = readable(row["content"], row["tool_name"], row["tool_calls"])
    place = (row["session_id"], message_id)
    return SearchHit(
        id=message_id,
        session_id=row["session_id"],
        role=row["role"],
        timestamp=row["timestamp"],
        snippet=snippet(text, terms),
        tool_name=row["tool_name"],
        context=[_neighbour(near) for near in (*rx.all(_BEFORE, place), *rx.all(_AFTER, place))],
        source=row["source"],
        model=row["model"],
        session_started=row["session_started"],
        title=row["title"],
        root_id=row["root_id"],
        kind=row["kind"],
        approximate=approximate,
    )


def _neighbour(row: Row) -> SearchContext:
    text = plain_text(row["content"]) or tool_calls_text(row["tool_calls"])
    return SearchContext(role=row["role"], content=text[:_CONTEXT])
