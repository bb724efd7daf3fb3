"""Searching messages.

Contract: hits come newest first. Who may see a session is part of the index query (the scope column) and is judged
again on the session's row; rewound messages are hidden; `limit` and `offset` are exact. What the index holds is asked
of the index, exact spelling is checked on the text; messages that the index does not hold yet, or holds in an older
form, are read instead, so that a search is right at any moment. Two things are found by scanning the newest messages,
and such hits say `approximate`: terms that no index can hold (emoji, punctuation), and, when the index has no answer at
all, the terms as parts of words. While the index is broken everything is found by scanning. A failure is an error,
never an empty list.
Failure: `QueryError` for the query, `InvalidArgument` for limit and offset, `StoreBusy` when it takes too long.
Limits: a check of spelling looks at the newest 20,000 messages that the index offers, a scan at the newest 20,000
visible messages and for at most 1.5 s, at messages that the index does not hold yet the newest 5,000. A whole search
takes at most 8 s.
"""

from __future__ import annotations

import heapq
import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, NamedTuple, TypeAlias

from session_store.content import plain_text, readable, tool_calls_text
from session_store.document import scope_token
from session_store.engine import Engine
from session_store.errors import IndexDamaged, InvalidArgument, StoreBusy, StoreDamaged, StoreError
from session_store.index import IndexState, index_state, mark_broken
from session_store.models import Visibility
from session_store.query import Clause, Haystack, Query, parse
from session_store.rows import SearchContext, SearchHit
from session_store.snippet import snippet
from session_store.tx import Param, Row, Rx
from session_store.visible import only_visible, visible_params

__all__ = ["Search"]

_LOG = logging.getLogger(__name__)

LIMIT_MOST: Final = 1000
SEARCH_TIME: Final = 8.0
SCAN_TIME: Final = 1.5
SCAN_MOST: Final = 20_000
UNINDEXED_MOST: Final = 5_000
#: How many ids one step of a scan covers.
_WINDOW: Final = 200
_WINDOW_MOST: Final = 5_000
_CONTEXT: Final = 200
_HIGHEST: Final = 2**63 - 1
_TOO_LONG: Final = "The search took too long and was stopped. Ask for fewer things at once."

#: Parameters 1 to 8 of every query that finds messages: who sees (1, 2), and the filters.
_FILTERS: Final = """
    AND /*visible*/
    AND m.rewound = 0
    AND (?3 IS NULL OR s.source IN (SELECT value FROM json_each(?3)))
    AND (?4 IS NULL OR s.source NOT IN (SELECT value FROM json_each(?4)))
    AND (?5 IS NULL OR m.role IN (SELECT value FROM json_each(?5)))
    AND (?6 IS NULL OR m.timestamp >= ?6)
    AND (?7 IS NULL OR m.timestamp < ?7)
    AND (?8 IS NULL OR COALESCE(s.root_id, s.id) NOT IN (SELECT value FROM json_each(?8)))
"""
#: What the index finds, newest first, without what is queued to be indexed again.
_FOUND: Final = """
SELECT m.id, m.content, m.tool_name, m.tool_calls
FROM messages_fts CROSS JOIN messages AS m ON m.id = messages_fts.rowid JOIN sessions AS s ON s.id = m.session_id
WHERE messages_fts MATCH ?9
    AND NOT EXISTS (SELECT 1 FROM messages_fts_queue WHERE message_id = m.id)
    /*filters*/
ORDER BY messages_fts.rowid DESC LIMIT ?10
"""
#: The same without texts.
_FOUND_IDS: Final = _FOUND.replace("m.id, m.content, m.tool_name, m.tool_calls", "m.id")
#: Messages that the index does not hold as they stand, newest first. 9: the watermark.
_UNINDEXED: Final = """
SELECT m.id, m.content, m.tool_name, m.tool_calls
FROM messages AS m JOIN sessions AS s ON s.id = m.session_id
WHERE (m.id > ?9 OR m.id IN (SELECT message_id FROM messages_fts_queue))
    /*filters*/
ORDER BY m.id DESC LIMIT ?10
"""
#: Visible messages, newest first between two ids (9: from, 10: below).
_SCANNED: Final = """
SELECT m.id, m.content, m.tool_name, m.tool_calls
FROM messages AS m JOIN sessions AS s ON s.id = m.session_id
WHERE m.id >= ?9 AND m.id < ?10
    /*filters*/
ORDER BY m.id DESC LIMIT ?11
"""
_NEWEST: Final = "SELECT max(id) FROM messages"
#: A found message with what is told of its session.
_HIT: Final = """
SELECT m.id, m.session_id, m.role, m.timestamp, m.tool_name, m.content, m.tool_calls,
       s.source, s.model, s.started_at AS session_started, s.title
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

#: What a damaged or missing index makes of a query; damage of messages looks the same.
_PERHAPS_THE_INDEX: Final = (IndexDamaged, StoreDamaged, StoreError)

#: A message id, and whether it was found without scanning. Sorts by id, the better way first when reversed.
_Found: TypeAlias = tuple[int, bool]


class _Limits(NamedTuple):
    """Until when to scan, and when to give up."""

    scan: float
    whole: float

    @classmethod
    def from_now(cls) -> _Limits:
        """The limits of a search that begins now."""
        now = time.monotonic()
        return cls(now + SCAN_TIME, now + SEARCH_TIME)


@dataclass(frozen=True, slots=True)
class _Request:
    """A search with everything decided."""

    query: Query
    params: tuple[Param, ...]
    visible_to: Visibility | None
    limit: int
    offset: int

    def sql(self, template: str) -> str:
        return only_visible(template.replace("/*filters*/", _FILTERS), self.visible_to)

    def match(self, clauses: Iterable[Clause]) -> str:
        """The index query: the clauses, and whose messages they may be in."""
        content = f"content : ({' OR '.join(clause.match or '' for clause in clauses)})"
        if self.visible_to is None:
            return content
        owners = " OR ".join(f'"{scope_token(owner)}"' for owner in sorted(self.visible_to.owners))
        room = self.visible_to.within_room
        inside = "" if room is None else f' AND scope : ("{scope_token(room)}")'
        return f"{content} AND scope : ({owners}){inside}"


class Search:
    """The search of the store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def search_messages(  # noqa: PLR0913, PLR0917 - the documented parameters
        self,
        query: str | Query,
        source_filter: Collection[str] | None = None,
        exclude_sources: Collection[str] | None = None,
        role_filter: Collection[str] | None = None,
        limit: int = 20,
        offset: int = 0,
        *,
        visible_to: Visibility | None = None,
        exclude_roots: Collection[str] = (),
        since: float | None = None,
        until: float | None = None,
    ) -> list[SearchHit]:
        """Find messages, newest first.

        query: see query.py; a parsed query, perhaps relaxed, is taken as it is.
        source_filter, role_filter: only these; exclude_sources, exclude_roots: not these (roots are conversations).
        since, until: Unix seconds, the end not included. visible_to: None for the library caller, who sees everything.

        Raises:
            QueryError: there is nothing to search for.
            InvalidArgument: limit is not within 0 to 1,000, or offset is negative.
        """
        if not 0 <= limit <= LIMIT_MOST or offset < 0:
            raise InvalidArgument(f"A search gives 0 to {LIMIT_MOST:,} hits (limit) from an offset of 0 or more.")
        request = _Request(
            parse(query) if isinstance(query, str) else query,
            (
                *visible_params(visible_to),
                _listed(source_filter),
                _listed(exclude_sources),
                _listed(role_filter),
                since,
                until,
                _listed(exclude_roots or None),
            ),
            visible_to,
            limit,
            offset,
        )
        if limit == 0 or (visible_to is not None and not visible_to.owners):
            return []
        try:
            return await self._engine.read(lambda rx: _search(rx, request), timeout=SEARCH_TIME)
        except StoreError as error:
            if type(error) not in _PERHAPS_THE_INDEX:
                raise
            # Whether it is only the index shows when the messages are read without it.
            hits = await self._engine.read(lambda rx: _scan_only(rx, request), timeout=SEARCH_TIME)
            reason = f"a search could not use it ({error.__cause__ or error})"
            _LOG.warning("The search index was left aside: %s", reason)
            if type(error) is not StoreError:
                await self._engine.write(lambda tx: mark_broken(tx, reason))
            return hits


def _listed(values: Collection[str] | None) -> str | None:
    if values is None:
        return None
    return json.dumps([values] if isinstance(values, str) else sorted(values))


def _search(rx: Rx, request: _Request) -> list[SearchHit]:
    state = index_state(rx)
    if not state.usable:
        return _scan_only(rx, request)
    limits = _Limits.from_now()
    found = _newest_first(_streams(rx, request, state, limits))
    first = next(found, None)
    if first is None and any(clause.match for clause in request.query.clauses):
        return _scan_only(rx, request, limits)
    whole = found if first is None else chain((first,), found)
    return _page(rx, request, whole)


def _scan_only(rx: Rx, request: _Request, limits: _Limits | None = None) -> list[SearchHit]:
    """Everything by scanning, terms also as parts of words."""
    until = (limits or _Limits.from_now()).scan
    return _page(
        rx, request, _scan(rx, request, lambda text: any(one.stands_in(text) for one in request.query.clauses), until)
    )


def _page(rx: Rx, request: _Request, found: Iterator[_Found]) -> list[SearchHit]:
    page = list(islice(found, request.offset, request.offset + request.limit))
    return [_hit(rx, request, message_id, approximate=not exact) for message_id, exact in page]


def _streams(rx: Rx, request: _Request, state: IndexState, limits: _Limits) -> Iterator[Iterator[_Found]]:
    """All ways to find something, each newest first."""
    clauses = request.query.clauses
    exact = [clause for clause in clauses if clause.match and clause.exact]
    if exact:
        yield _indexed(rx, request, exact)
    for clause in clauses:
        if clause.match and not clause.exact:
            yield _checked(rx, request, clause, limits.whole)
    unheld = [clause for clause in clauses if not clause.match]
    if unheld:
        yield _scan(rx, request, lambda text: any(clause.holds(text) for clause in unheld), limits.scan)
    if state.queued or (rx.value(_NEWEST) or 0) > state.watermark:
        yield _unindexed(rx, request, state.watermark)


def _newest_first(streams: Iterable[Iterator[_Found]]) -> Iterator[_Found]:
    last = _HIGHEST
    for found in heapq.merge(*streams, reverse=True):
        if found[0] != last:
            last = found[0]
            yield found


def _indexed(rx: Rx, request: _Request, clauses: list[Clause]) -> Iterator[_Found]:
    most = request.offset + request.limit
    for row in rx.each(request.sql(_FOUND_IDS), (*request.params, request.match(clauses), most)):
        yield row["id"], True


def _checked(rx: Rx, request: _Request, clause: Clause, until: float) -> Iterator[_Found]:
    """What the index finds and the text confirms."""
    for row in rx.each(request.sql(_FOUND), (*request.params, request.match([clause]), SCAN_MOST)):
        if _confirms(clause, _haystack(row)):
            yield row["id"], True
        if time.monotonic() > until:
            raise StoreBusy(_TOO_LONG)


def _confirms(clause: Clause, text: Haystack) -> bool:
    return all(term.stands_in(text) for term in clause.wanted if term.spelled) and not any(
        term.holds(text) for term in clause.unwanted
    )


def _unindexed(rx: Rx, request: _Request, watermark: int) -> Iterator[_Found]:
    """What the index would find if it held the messages that it does not hold yet."""
    clauses = [clause for clause in request.query.clauses if clause.match]
    for row in rx.each(request.sql(_UNINDEXED), (*request.params, watermark, UNINDEXED_MOST)):
        text = _haystack(row)
        if any(clause.holds(text) for clause in clauses):
            yield row["id"], True


def _scan(rx: Rx, request: _Request, fits: Callable[[Haystack], bool], until: float) -> Iterator[_Found]:
    """The newest visible messages whose text fits, within the bounds of a scan."""
    below = (rx.value(_NEWEST) or 0) + 1
    left, ids = SCAN_MOST, _WINDOW
    while below > 0 and left > 0 and time.monotonic() < until:
        # Bounded by ids, not by rows, so that no step takes long; wider where few messages are visible.
        seen = 0
        for row in rx.each(request.sql(_SCANNED), (*request.params, below - ids, below, left)):
            seen += 1
            if fits(_haystack(row)):
                yield row["id"], False
        left -= seen
        below -= ids
        ids = min(2 * ids, _WINDOW_MOST) if seen < ids // 8 else _WINDOW


def _haystack(row: Row) -> Haystack:
    return Haystack(readable(row["content"], row["tool_name"], row["tool_calls"]))


def _hit(rx: Rx, request: _Request, message_id: int, *, approximate: bool) -> SearchHit:
    row = rx.one(_HIT, (message_id,)) or {}
    text = readable(row["content"], row["tool_name"], row["tool_calls"])
    place = (row["session_id"], message_id)
    return SearchHit(
        id=message_id,
        session_id=row["session_id"],
        role=row["role"],
        timestamp=row["timestamp"],
        snippet=snippet(text, request.query.wanted),
        tool_name=row["tool_name"],
        context=[_neighbour(near) for near in (*rx.all(_BEFORE, place), *rx.all(_AFTER, place))],
        source=row["source"],
        model=row["model"],
        session_started=row["session_started"],
        title=row["title"],
        approximate=approximate,
    )


def _neighbour(row: Row) -> SearchContext:
    text = plain_text(row["content"]) or tool_calls_text(row["tool_calls"])
    return SearchContext(role=row["role"], content=text[:_CONTEXT])
