"""What is told of found messages: their snippets, their neighbours, their sessions.

Contract: the rows are read by their ids, in one statement, in the same view of the database, so a hit is what the
search saw. The order is that of the ids given.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from session_store.candidates import Found
from session_store.content import plain_text, readable, tool_calls_text
from session_store.query import Term
from session_store.rows import SearchContext, SearchHit
from session_store.snippet import snippet
from session_store.tx import Row, Rx

__all__ = ["hits"]

_CONTEXT: Final = 200

#: The beginning of a neighbour's text; all of it where it encodes parts (it begins with the record separator).
_BEGINNING: Final = """
    CASE WHEN substr({near}.content, 1, 1) = char(30) THEN {near}.content ELSE substr({near}.content, 1, 200) END
"""
#: Found messages with what is told of their sessions, and their neighbours there. 1: the ids, in order.
_HITS: Final = """
SELECT m.id, m.session_id, m.role, m.timestamp, m.tool_name, m.content, m.tool_calls,
       s.source, s.model, s.started_at AS session_started, s.title, COALESCE(s.root_id, s.id) AS root_id, s.kind,
       b.role AS before_role, /*before*/ AS before_content, b.tool_calls AS before_calls,
       a.role AS after_role, /*after*/ AS after_content, a.tool_calls AS after_calls
FROM json_each(?1) AS found
CROSS JOIN messages AS m ON m.id = found.value
JOIN sessions AS s ON s.id = m.session_id
LEFT JOIN messages AS b ON b.id = (SELECT id FROM messages WHERE session_id = m.session_id AND id < m.id AND rewound = 0
                                   ORDER BY id DESC LIMIT 1)
LEFT JOIN messages AS a ON a.id = (SELECT id FROM messages WHERE session_id = m.session_id AND id > m.id AND rewound = 0
                                   ORDER BY id LIMIT 1)
ORDER BY found.key
""".replace("/*before*/", _BEGINNING.format(near="b")).replace("/*after*/", _BEGINNING.format(near="a"))


def hits(rx: Rx, found: Sequence[Found], terms: Sequence[Term]) -> list[SearchHit]:
    """Tell of messages that the search has found. terms: what their snippets show."""
    exact = dict(found)
    return [_hit(row, terms, approximate=not exact[row["id"]]) for row in rx.each(_HITS, (json.dumps(list(exact)),))]


def _hit(row: Row, terms: Sequence[Term], *, approximate: bool) -> SearchHit:
    text = readable(row["content"], row["tool_name"], row["tool_calls"])
    return SearchHit(
        id=row["id"],
        session_id=row["session_id"],
        role=row["role"],
        timestamp=row["timestamp"],
        snippet=snippet(text, terms),
        tool_name=row["tool_name"],
        context=[_neighbour(row, side) for side in ("before", "after") if row[f"{side}_role"] is not None],
        source=row["source"],
        model=row["model"],
        session_started=row["session_started"],
        title=row["title"],
        root_id=row["root_id"],
        kind=row["kind"],
        approximate=approximate,
    )


def _neighbour(row: Row, side: str) -> SearchContext:
    text = plain_text(row[f"{side}_content"]) or tool_calls_text(row[f"{side}_calls"])
    return SearchContext(role=row[f"{side}_role"], content=text[:_CONTEXT])
