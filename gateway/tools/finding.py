"""Finding what was said: all words first, then fewer, statements before questions.

Contract: the strict search comes first. Only if it finds no statement are the words relaxed: any of them (of scripts
without spaces any pair of characters) is then enough. The store answers with the newest hits, so a word that is found
everywhere could hide one that was said once: words that do not show among the hits are looked for again without the
others, and if there were too many hits, all words but one are as well. More words, and rarer ones, count more.
Failure: `QueryError` when there is nothing to search for, other store errors as they come.
Limits: of the strict search the newest 200 hits, of each relaxed one the newest 100, at most four rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.agents.questions import states
from session_store.query import Clause, Haystack, Query, parse

if TYPE_CHECKING:
    from session_store import SearchHit, SessionDB, Visibility

__all__ = ["Find", "Finder", "unmarked"]

_PAGES: Final = (50, 150)
_RELAXED: Final = 100
_ROUNDS: Final = 4
_FEW: Final = 3
_MANY: Final = 8


@dataclass(frozen=True, slots=True)
class Find:
    """A hit and what it is worth. complete: the whole query is true of it. states: it says something, not only asks."""

    hit: SearchHit
    complete: bool
    states: bool
    score: float

    @property
    def rank(self) -> tuple[bool, bool, float, int]:
        """Sorts the best first: statements, then complete ones, then the rarer words, then the newest."""
        return (not self.states, not self.complete, -self.score, -self.hit["id"])


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds for one asker. skip: hits that are as good as not there."""

    db: SessionDB
    visible_to: Visibility
    skip: Callable[[SearchHit], bool]

    async def find(self, text: str, roles: Collection[str]) -> list[Find]:
        """Return what was found for a query, the best first."""
        query = parse(text)
        found: dict[int, Find] = {}
        for offset, limit in zip((0, _PAGES[0]), _PAGES, strict=True):
            hits = await self._search(query, roles, limit, offset)
            self._add(found, hits, complete=True, score=0.0)
            if len(hits) < limit or any(find.states for find in found.values()):
                break
        if not any(find.states for find in found.values()):
            await self._relax(query, roles, found)
        return sorted(found.values(), key=lambda find: find.rank)

    async def _relax(self, query: Query, roles: Collection[str], found: dict[int, Find]) -> None:
        clauses = query.relaxed().clauses
        if clauses == query.clauses:
            return
        words, unwanted = query.clauses[0].wanted, query.clauses[0].unwanted
        hits: dict[int, SearchHit] = {}
        remaining = list(clauses)
        for number in range(_ROUNDS):
            some = await self._search(Query(tuple(remaining)), roles, _RELAXED)
            hits |= {hit["id"]: hit for hit in some}
            if len(some) < _RELAXED:
                break
            if number == 0 and len(query.clauses) == 1 and _FEW <= len(words) <= _MANY:
                fewer = (Clause((*words[:left], *words[left + 1 :]), unwanted) for left in range(len(words)))
                hits |= {hit["id"]: hit for hit in await self._search(Query(tuple(fewer)), roles, _RELAXED)}
            shown = [Haystack(unmarked(hit["snippet"])) for hit in some]
            hidden = [clause for clause in remaining if not any(clause.stands_in(text) for text in shown)]
            if not hidden or len(hidden) == len(remaining):
                break
            remaining = hidden
        scores = _scores(clauses, hits.values())
        for message_id, hit in hits.items():
            self._add(found, [hit], complete=False, score=scores[message_id])

    async def _search(self, query: Query, roles: Collection[str], limit: int, offset: int = 0) -> list[SearchHit]:
        return await self.db.search_messages(
            query, role_filter=roles, limit=limit, offset=offset, visible_to=self.visible_to
        )

    def _add(self, found: dict[int, Find], hits: Collection[SearchHit], *, complete: bool, score: float) -> None:
        for hit in hits:
            if hit["id"] not in found and not self.skip(hit):
                found[hit["id"]] = Find(hit, complete, hit["role"] != "user" or _states(hit["snippet"]), score)


def unmarked(snippet: str) -> str:
    """Return a snippet without the marks around what was found."""
    return snippet.replace(">>>", "").replace("<<<", "")


def _scores(clauses: Sequence[Clause], hits: Collection[SearchHit]) -> dict[int, float]:
    """Weigh hits by the words that they show; a word counts more, the fewer hits show it."""
    texts = {hit["id"]: Haystack(unmarked(hit["snippet"])) for hit in hits}
    scores = dict.fromkeys(texts, 0.0)
    for clause in clauses:
        showing = [message_id for message_id, text in texts.items() if clause.stands_in(text)]
        for message_id in showing:
            scores[message_id] += math.log2(1 + len(texts) / len(showing))
    return scores


def _states(snippet: str) -> bool:
    """Whether a message states something, as far as its snippet shows; one that is cut is long enough to."""
    text = unmarked(snippet)
    return text.startswith("…") or text.endswith("…") or states(text)
