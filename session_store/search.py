"""Searching messages.

Contract: hits come newest first unless another order is asked for. Who may see a session is part of the index query
(the scope column) and is judged again on the session's row; rewound messages are hidden, those of compressed sessions
are found; `limit` and `offset` are exact. How things are found is said in candidates.py: hits that were found by
scanning only say `approximate`, and while the index is broken all of them do. A failure is an error, never an empty
list.
Failure: `QueryError` for the query, `InvalidArgument` for the other arguments, `StoreBusy` when no reader is free.
Limits: a search is stopped after 2 s with what it has found until then, and says so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from itertools import islice
from typing import Final, Literal, get_args

from session_store.candidates import Request, candidates, request, scanned
from session_store.engine import Engine
from session_store.errors import IndexDamaged, InvalidArgument, StoreDamaged, StoreError
from session_store.hits import hits as told
from session_store.index import mark_broken
from session_store.models import Visibility
from session_store.query import Query, parse
from session_store.related import Question, related
from session_store.relevance import RANKED, most_relevant_first
from session_store.rows import SearchHits
from session_store.tx import Rx

__all__ = ["SEARCH_TIME", "Search"]

_LOG = logging.getLogger(__name__)

LIMIT_MOST: Final = 1000
SEARCH_TIME: Final = 2.0
"""Seconds after which a search is stopped with what it has."""
#: For waiting and searching together; a search stops itself long before.
_WHOLE_TIME: Final = 10.0

Sort = Literal["relevance", "newest", "oldest"]

#: What a damaged or missing index makes of a query; damage of messages looks the same.
_PERHAPS_THE_INDEX: Final = (IndexDamaged, StoreDamaged, StoreError)


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
        sort: Sort = "newest",
        *,
        visible_to: Visibility | None = None,
        exclude_roots: Collection[str] = (),
        sessions: Collection[str] | None = None,
        person: str | None = None,
        since: float | None = None,
        until: float | None = None,
        inside_words: bool = True,
    ) -> SearchHits:
        """Find messages. The list that comes back says whether the search was stopped before its end.

        query: see query.py; a parsed query is taken as it is.
        source_filter, role_filter, sessions: only these; exclude_sources, exclude_roots: not these (roots are
        conversations). person: what this person said, and their sessions. since, until: Unix seconds, the end not
        included. sort: "relevance" orders the newest hundred that were found (see relevance.py).
        visible_to: None for the library caller, who sees everything. inside_words: when the index has no answer, the
        terms are looked for as parts of words by scanning.

        Raises:
            QueryError: there is nothing to search for.
            InvalidArgument: limit is not within 0 to 1,000, offset is negative, or sort is unknown.
        """
        if not 0 <= limit <= LIMIT_MOST or offset < 0:
            raise InvalidArgument(f"A search gives 0 to {LIMIT_MOST:,} hits (limit) from an offset of 0 or more.")
        if sort not in get_args(Sort):
            raise InvalidArgument(f"The order {sort!r} is unknown. Use one of: {', '.join(get_args(Sort))}.")
        asked = request(
            parse(query) if isinstance(query, str) else query,
            visible_to=visible_to,
            order="oldest" if sort == "oldest" else "newest",
            source_filter=source_filter,
            exclude_sources=exclude_sources,
            role_filter=role_filter,
            since=since,
            until=until,
            exclude_roots=exclude_roots,
            sessions=sessions,
            person=person,
            inside_words=inside_words,
        )
        if limit == 0 or (visible_to is not None and not visible_to.owners):
            return SearchHits()
        page = _Page(asked, offset, limit, by_relevance=sort == "relevance")
        try:
            return await self._engine.read(page.read, timeout=_WHOLE_TIME)
        except StoreError as error:
            if type(error) not in _PERHAPS_THE_INDEX:
                raise
            # Whether it is only the index shows when the messages are read without it.
            hits = await self._engine.read(page.read_without_index, timeout=_WHOLE_TIME)
            reason = f"a search could not use it ({error.__cause__ or error})"
            _LOG.warning("The search index was left aside: %s", reason)
            if type(error) is not StoreError:
                await self._engine.write(lambda tx: mark_broken(tx, reason))
            return hits

    async def search_related(  # noqa: PLR0913 - one parameter per filter
        self,
        question: Question,
        limit: int = 20,
        *,
        source_filter: Collection[str] | None = None,
        exclude_sources: Collection[str] | None = None,
        role_filter: Collection[str] | None = None,
        visible_to: Visibility | None = None,
        exclude_roots: Collection[str] = (),
        sessions: Collection[str] | None = None,
        person: str | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> SearchHits:
        """Find the messages that have most to do with a question, the best first (see related.py).

        Raises:
            InvalidArgument: limit is not within 0 to 1,000.
        """
        if not 0 <= limit <= LIMIT_MOST:
            raise InvalidArgument(f"A search gives 0 to {LIMIT_MOST:,} hits (limit).")
        if limit == 0 or not question.words or (visible_to is not None and not visible_to.owners):
            return SearchHits()
        asked = request(
            Query(question.clauses),
            visible_to=visible_to,
            source_filter=source_filter,
            exclude_sources=exclude_sources,
            role_filter=role_filter,
            since=since,
            until=until,
            exclude_roots=exclude_roots,
            sessions=sessions,
            person=person,
        )

        def read(rx: Rx) -> SearchHits:
            until = time.monotonic() + SEARCH_TIME
            with rx.stopping(lambda: time.monotonic() > until):
                found = related(rx, asked, question, limit)
            terms = asked.query.wanted
            return SearchHits(told(rx, [(one, True) for one, _ in found], terms), stopped=rx.stopped)

        return await self._engine.read(read, timeout=_WHOLE_TIME)


class _Page:
    """One page of a search."""

    def __init__(self, asked: Request, offset: int, limit: int, *, by_relevance: bool) -> None:
        self._asked = asked
        self._offset = offset
        self._end = offset + limit
        self._by_relevance = by_relevance

    def read(self, rx: Rx) -> SearchHits:
        """Search with the index, as far as it can be used."""
        return self._read(rx, indexed=True)

    def read_without_index(self, rx: Rx) -> SearchHits:
        """Search by scanning only."""
        return self._read(rx, indexed=False)

    def _read(self, rx: Rx, *, indexed: bool) -> SearchHits:
        until = time.monotonic() + SEARCH_TIME
        with rx.stopping(lambda: time.monotonic() > until):
            found = candidates(rx, self._asked, self._most) if indexed else scanned(rx, self._asked)
            if self._by_relevance:
                found = most_relevant_first(rx, self._asked.query, found)
            page = list(islice(found, self._offset, self._end))
        return SearchHits(told(rx, page, self._asked.query.wanted), stopped=rx.stopped)

    @property
    def _most(self) -> int:
        return max(self._end, RANKED) if self._by_relevance else self._end
