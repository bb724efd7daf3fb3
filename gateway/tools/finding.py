"""Finding what was said: all words first; then whatever has most to do with the question.

Contract: the strict search comes first, statements before questions, newest first. If it finds no statement, or few for
what was asked as a question, what is related follows: any of the words is enough there, in any form, the best first
(see session_store/related.py).
Failure: `QueryError` when there is nothing to search for, other store errors as they come.
Limits: of the strict search the newest 200 hits, of the related ones the best 40.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from gateway.agents.questions import asks, states
from gateway.tools.wording import question_of
from session_store.query import parse

if TYPE_CHECKING:
    from session_store import SearchHit, SearchHits, SessionDB, Visibility

__all__ = ["Find", "Finder", "Found", "unmarked"]

_PAGES: Final = (25, 175)
_RELATED: Final = 40
#: So many statements with all words are enough for a question; for words that were chosen, one is.
_ENOUGH: Final = 5
#: How a call of the search tool stands in the text of a message.
_CALL: Final = "session_search\n"


@dataclass(frozen=True, slots=True)
class Find:
    """A hit. complete: the whole query is true of it. states: it says something, not only asks. place: in its way."""

    hit: SearchHit
    complete: bool
    states: bool
    place: int

    @property
    def rank(self) -> tuple[int, int]:
        """Sorts the best first: statements with all words, then what comes close, then questions with all words."""
        return (0 if self.complete and self.states else 1 if not self.complete else 2, self.place)


@dataclass(slots=True)
class Found:
    """What was found, the best first. stopped: time ran out, there may be more."""

    finds: list[Find] = field(default_factory=list)
    stopped: bool = False

    @property
    def relaxed(self) -> bool:
        """Whether nothing has all words, and what was found only comes close."""
        return bool(self.finds) and not any(find.complete for find in self.finds)


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds for one asker. skip: hits that are as good as not there. exclude_roots: conversations that are left out."""

    db: SessionDB
    visible_to: Visibility | None
    skip: Callable[[SearchHit], bool] = lambda _: False
    exclude_roots: Collection[str] = ()

    async def find(self, text: str, roles: Collection[str], sources: Collection[str] | None = None) -> Found:
        """Search for a query or a question. roles: whose messages; sources: where their sessions were born."""
        query = parse(text)
        search = partial(
            self.db.search_messages,
            query,
            sources,
            role_filter=roles,
            visible_to=self.visible_to,
            exclude_roots=self.exclude_roots,
        )
        found = Found()
        known: dict[int, Find] = {}
        for offset, limit in zip((0, _PAGES[0]), _PAGES, strict=True):
            hits = await search(limit=limit, offset=offset, inside_words=False)
            self._add(known, hits, found, complete=True)
            if len(hits) < limit or any(find.states for find in known.values()):
                break
        if sum(find.states for find in known.values()) < (_ENOUGH if asks(text) else 1):
            hits = await self.db.search_related(
                question_of(text, query),
                _RELATED,
                source_filter=sources,
                role_filter=roles,
                visible_to=self.visible_to,
                exclude_roots=self.exclude_roots,
            )
            self._add(known, hits, found, complete=False)
        if not known:
            self._add(known, await search(limit=_PAGES[0]), found, complete=True)
        found.finds = sorted(known.values(), key=lambda find: find.rank)
        return found

    def _add(self, known: dict[int, Find], hits: SearchHits, found: Found, *, complete: bool) -> None:
        found.stopped |= hits.stopped
        for hit in hits:
            if hit["id"] not in known and not self.skip(hit):
                place = -hit["id"] if complete else len(known)
                known[hit["id"]] = Find(hit, complete, _says(hit), place)


def unmarked(snippet: str) -> str:
    """Return a snippet without the marks around what was found."""
    return snippet.replace(">>>", "").replace("<<<", "")


def _says(hit: SearchHit) -> bool:
    """Whether a message states something, as far as its snippet shows; one that is cut is long enough to.

    A call of the search tool asks, too: it repeats a question, whoever asked it.
    """
    if hit["role"] != "user":
        said, called, _ = hit["snippet"].partition(_CALL)
        return not called or ">>>" in said
    text = unmarked(hit["snippet"])
    return text.startswith("…") or text.endswith("…") or states(text)
