"""Which messages a search finds: by the index, by reading what it does not hold, by scanning.

Contract: every way gives ids in the order that was asked for, newest or oldest first, and only of messages that the
asker may see and that the filters let through. What the index holds is asked of the index, exact spelling is checked on
the text; messages that the index does not hold yet, or holds in an older form, are read instead. Terms that no index
can hold (emoji, punctuation) and, when the index has no answer at all, terms as parts of words are found by scanning
the newest messages.
Failure: errors of the driver pass through. When the time is over the ways simply end (see `Rx.stopping`).
Limits: a check of spelling looks at the first 20,000 messages that the index offers, a scan at the newest 20,000
visible messages, at messages that the index does not hold yet the newest 5,000.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal, TypeAlias

from session_store.content import readable
from session_store.document import scope_token
from session_store.index import IndexState, index_state
from session_store.models import Visibility
from session_store.query import Clause, Haystack, Query
from session_store.tx import Param, Row, Rx
from session_store.visible import only_visible, visible_params

__all__ = ["Found", "Order", "Request", "candidates", "request", "scanned", "unindexed"]

SCAN_MOST: Final = 20_000
UNINDEXED_MOST: Final = 5_000
#: How many ids one step of a scan covers.
_WINDOW: Final = 200
_WINDOW_MOST: Final = 5_000
_HIGHEST: Final = 2**63 - 1

Order: TypeAlias = Literal["newest", "oldest"]
Found: TypeAlias = tuple[int, bool]
"""A message id, and whether it was found without scanning."""

#: Parameters 1 to 10 of every query that finds messages: who sees (1, 2), and the filters.
_FILTERS: Final = """
    AND /*visible*/
    AND m.rewound = 0
    AND (?3 IS NULL OR s.source IN (SELECT value FROM json_each(?3)))
    AND (?4 IS NULL OR s.source NOT IN (SELECT value FROM json_each(?4)))
    AND (?5 IS NULL OR m.role IN (SELECT value FROM json_each(?5)))
    AND (?6 IS NULL OR m.timestamp >= ?6)
    AND (?7 IS NULL OR m.timestamp < ?7)
    AND (?8 IS NULL OR COALESCE(s.root_id, s.id) NOT IN (SELECT value FROM json_each(?8)))
    AND (?9 IS NULL OR m.session_id IN (SELECT value FROM json_each(?9)))
    AND (?10 IS NULL OR m.person_id = ?10 OR s.owner = ?10)
"""
#: What the index finds between two ids, without what is queued to be indexed again.
_FOUND: Final = """
SELECT m.id, m.content, m.tool_name, m.tool_calls
FROM messages_fts CROSS JOIN messages AS m ON m.id = messages_fts.rowid JOIN sessions AS s ON s.id = m.session_id
WHERE messages_fts MATCH ?11 AND messages_fts.rowid BETWEEN ?12 AND ?13
    AND NOT EXISTS (SELECT 1 FROM messages_fts_queue WHERE message_id = m.id)
    /*filters*/
ORDER BY messages_fts.rowid /*order*/ LIMIT ?14
"""
#: The same without texts.
_FOUND_IDS: Final = _FOUND.replace("m.id, m.content, m.tool_name, m.tool_calls", "m.id")
#: Messages that the index does not hold as they stand. 11: the watermark.
_UNINDEXED: Final = """
SELECT m.id, m.content, m.tool_name, m.tool_calls
FROM messages AS m JOIN sessions AS s ON s.id = m.session_id
WHERE (m.id > ?11 OR m.id IN (SELECT message_id FROM messages_fts_queue))
    /*filters*/
ORDER BY m.id DESC LIMIT ?12
"""
#: Visible messages, newest first between two ids (11: from, 12: below).
_SCANNED: Final = """
SELECT m.id, m.content, m.tool_name, m.tool_calls
FROM messages AS m JOIN sessions AS s ON s.id = m.session_id
WHERE m.id >= ?11 AND m.id < ?12
    /*filters*/
ORDER BY m.id DESC LIMIT ?13
"""
_NEWEST: Final = "SELECT max(id) FROM messages"
#: Between which ids the messages of some sessions lie.
_SPAN: Final = """
SELECT min(id) AS first, max(id) AS last FROM messages WHERE session_id IN (SELECT value FROM json_each(?))
"""


@dataclass(frozen=True, slots=True)
class Request:
    """A search with everything decided: what, for whom, through which filters, in which order."""

    query: Query
    params: tuple[Param, ...]
    visible_to: Visibility | None
    sessions: str | None
    order: Order
    inside_words: bool

    def sql(self, template: str) -> str:
        """The query with the filters and the order put in."""
        direction = "DESC" if self.order == "newest" else "ASC"
        return only_visible(template.replace("/*filters*/", _FILTERS).replace("/*order*/", direction), self.visible_to)

    def match(self, clauses: Iterable[Clause]) -> str:
        """The index query: the clauses, and whose messages they may be in."""
        content = f"content : ({' OR '.join(clause.match or '' for clause in clauses)})"
        if self.visible_to is None:
            return content
        owners = " OR ".join(f'"{scope_token(owner)}"' for owner in sorted(self.visible_to.owners))
        room = self.visible_to.within_room
        inside = "" if room is None else f' AND scope : ("{scope_token(room)}")'
        return f"{content} AND scope : ({owners}){inside}"


def request(  # noqa: PLR0913 - one parameter per filter
    query: Query,
    *,
    visible_to: Visibility | None,
    order: Order = "newest",
    source_filter: Collection[str] | None = None,
    exclude_sources: Collection[str] | None = None,
    role_filter: Collection[str] | None = None,
    since: float | None = None,
    until: float | None = None,
    exclude_roots: Collection[str] = (),
    sessions: Collection[str] | None = None,
    person: str | None = None,
    inside_words: bool = True,
) -> Request:
    """Decide a search; the filters are those of `Search.search_messages`."""
    within = _listed(sessions)
    params = (
        *visible_params(visible_to),
        _listed(source_filter),
        _listed(exclude_sources),
        _listed(role_filter),
        since,
        until,
        _listed(exclude_roots or None),
        within,
        person,
    )
    return Request(query, params, visible_to, within, order, inside_words)


def _listed(values: Collection[str] | None) -> str | None:
    if values is None:
        return None
    return json.dumps([values] if isinstance(values, str) else sorted(values))


def candidates(rx: Rx, asked: Request, most: int) -> Iterator[Found]:
    """Everything that a search finds, in order, each message once. most: no more than so many are taken."""
    state = index_state(rx)
    if not state.usable:
        yield from scanned(rx, asked)
        return
    found = _in_order(_streams(rx, asked, state, most), asked.order)
    first = next(found, None)
    if first is not None:
        yield from chain((first,), found)
    elif asked.inside_words and any(clause.match for clause in asked.query.clauses):
        yield from scanned(rx, asked)


def scanned(rx: Rx, asked: Request) -> Iterator[Found]:
    """What scanning finds, terms also as parts of words."""
    clauses = asked.query.clauses
    return _scan(rx, asked, lambda text: any(one.stands_in(text) for one in clauses))


def _streams(rx: Rx, asked: Request, state: IndexState, most: int) -> Iterator[Iterator[Found]]:
    """All ways to find something, each in order."""
    clauses = asked.query.clauses
    first, last = _span(rx, asked)
    exact = [clause for clause in clauses if clause.match and clause.exact]
    if exact:
        yield _indexed(rx, asked, exact, (first, last, most))
    for clause in clauses:
        if clause.match and not clause.exact:
            yield _checked(rx, asked, clause, (first, last, SCAN_MOST))
    unheld = [clause for clause in clauses if not clause.match]
    if unheld:
        yield _scan(rx, asked, lambda text: any(clause.holds(text) for clause in unheld))
    if state.queued or (rx.value(_NEWEST) or 0) > state.watermark:
        yield unindexed(rx, asked, state.watermark)


def _span(rx: Rx, asked: Request) -> tuple[int, int]:
    """The ids among which the index has to look."""
    if asked.sessions is None:
        return 1, _HIGHEST
    row = rx.one(_SPAN, (asked.sessions,)) or {}
    return row["first"] or 1, row["last"] or 0


def _in_order(streams: Iterable[Iterator[Found]], order: Order) -> Iterator[Found]:
    newest = order == "newest"
    last = 0
    # The better way of two that find the same message comes first.
    for found in heapq.merge(*streams, key=lambda found: (found[0], found[1] == newest), reverse=newest):
        if found[0] != last:
            last = found[0]
            yield found


def _indexed(rx: Rx, asked: Request, clauses: list[Clause], bounds: tuple[int, int, int]) -> Iterator[Found]:
    for row in rx.each(asked.sql(_FOUND_IDS), (*asked.params, asked.match(clauses), *bounds)):
        yield row["id"], True


def _checked(rx: Rx, asked: Request, clause: Clause, bounds: tuple[int, int, int]) -> Iterator[Found]:
    """What the index finds and the text confirms."""
    for row in rx.each(asked.sql(_FOUND), (*asked.params, asked.match([clause]), *bounds)):
        if _confirms(clause, _haystack(row)):
            yield row["id"], True


def _confirms(clause: Clause, text: Haystack) -> bool:
    return all(term.stands_in(text) for term in clause.wanted if term.spelled) and not any(
        term.holds(text) for term in clause.unwanted
    )


def unindexed(rx: Rx, asked: Request, watermark: int) -> Iterator[Found]:
    """What the index would find if it held the messages that it does not hold yet."""
    clauses = [clause for clause in asked.query.clauses if clause.match]
    found: list[Found] = []
    for row in rx.each(asked.sql(_UNINDEXED), (*asked.params, watermark, UNINDEXED_MOST)):
        text = _haystack(row)
        if any(clause.holds(text) for clause in clauses):
            found.append((row["id"], True))
    yield from found if asked.order == "newest" else reversed(found)


def _scan(rx: Rx, asked: Request, fits: Callable[[Haystack], bool]) -> Iterator[Found]:
    """The newest visible messages whose text fits, within the bounds of a scan."""
    newest_first = _newest_scanned(rx, asked, fits)
    yield from newest_first if asked.order == "newest" else reversed(list(newest_first))


def _newest_scanned(rx: Rx, asked: Request, fits: Callable[[Haystack], bool]) -> Iterator[Found]:
    first, last = _span(rx, asked)
    below = min(last, rx.value(_NEWEST) or 0) + 1
    left, ids = SCAN_MOST, _WINDOW
    while below > first and left > 0 and not rx.stopped:
        # Bounded by ids, not by rows, so that no step takes long; wider where few messages are visible.
        seen = 0
        for row in rx.each(asked.sql(_SCANNED), (*asked.params, below - ids, below, left)):
            seen += 1
            if fits(_haystack(row)):
                yield row["id"], False
        left -= seen
        below -= ids
        ids = min(2 * ids, _WINDOW_MOST) if seen < ids // 8 else _WINDOW


def _haystack(row: Row) -> Haystack:
    return Haystack(readable(row["content"], row["tool_name"], row["tool_calls"]))
