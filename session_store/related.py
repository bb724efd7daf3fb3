"""Messages that have to do with a question: any of its words is enough, the best first.

Contract: each word of a question is asked of the index by itself, newest first; the fewer messages have it, the more it
counts. The best of what is found so are read: there other forms of a word count like the word, what is short and says
much counts more, and neighbours in a session lend each other a part of what they are worth, since an answer seldom
repeats the words of its question. Visibility and filters hold as in a strict search.
Failure: errors of the driver pass through; while the index is broken the newest messages are scanned for the words.
Limits: of each word the newest 3,000 messages, 120 messages read, neighbours of the best 40. What is left when the
time is over is ranked (see `Rx.stopping`).
"""

from __future__ import annotations

import heapq
import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from session_store.candidates import Request, scanned, unindexed
from session_store.content import readable
from session_store.document import scope_token
from session_store.index import IndexState, index_state
from session_store.query import Clause, Haystack, Term
from session_store.relevance import saturated
from session_store.tx import Rx

__all__ = ["Question", "Word", "related"]

_OF_EACH: Final = 3_000
_READ: Final = 120
_WITH_NEIGHBOURS: Final = 40
_LOOKED_AT: Final = 2_000
#: What a message lends to the next one, the one before it, and those one further.
_NEAR: Final = ((1, 0.35), (-1, 0.25), (2, 0.2), (-2, 0.1))
_REACH: Final = 2

#: The newest messages that the index finds, as one text.
_IDS: Final = """
SELECT group_concat(id) AS ids
FROM (SELECT rowid AS id FROM messages_fts WHERE messages_fts MATCH ? ORDER BY rowid DESC LIMIT ?)
"""
_NEWEST: Final = "SELECT max(id) FROM messages"
#: Those of some messages that the asker may see and the filters let through. 11: their ids.
_ROWS: Final = """
SELECT m.id, m.session_id, m.role, substr(m.content, 1, 2000) AS content, m.tool_name, m.tool_calls
FROM json_each(?11) AS wanted CROSS JOIN messages AS m ON m.id = wanted.value
JOIN sessions AS s ON s.id = m.session_id
WHERE TRUE
    /*filters*/
"""
_BEFORE: Final = "SELECT id FROM messages WHERE session_id = ? AND id < ? AND rewound = 0 ORDER BY id DESC LIMIT ?"
_AFTER: Final = "SELECT id FROM messages WHERE session_id = ? AND id > ? AND rewound = 0 ORDER BY id LIMIT ?"


@dataclass(frozen=True, slots=True)
class Word:
    """One thing that a question is about.

    terms: any of these in the index, perhaps more than is meant. stems: what a token of a text must have as its stem;
    none for what is looked for as it is written. weight: what it counts beside the others.
    """

    terms: tuple[Term, ...]
    stems: frozenset[str] = frozenset()
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for.

    stem: gives a token's stem. unwanted: what no message may have. asks: tells whether a text only asks. around: a
    message without any of the words counts too if its neighbours have them, as an answer may.
    """

    words: tuple[Word, ...]
    stem: Callable[[str], str]
    unwanted: tuple[Term, ...] = ()
    asks: Callable[[str], bool] = lambda _: False
    around: bool = True

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """All words as alternatives."""
        return tuple(Clause((term,), self.unwanted) for word in self.words for term in word.terms)


@dataclass(frozen=True, slots=True)
class _Text:
    """A message that was read: where, and what it is worth by itself."""

    session_id: str
    score: float
    asks: bool


def related(rx: Rx, asked: Request, question: Question, limit: int) -> list[tuple[int, float]]:
    """The best messages with what they are worth. The request's query is that of the question's clauses."""
    state = index_state(rx)
    rough, rarity = _rough(rx, asked, question, state)
    best = heapq.nlargest(_READ, rough, key=lambda one: (rough[one], one))
    reader = _Reader(rx, asked, question, rarity)
    reader.read(best)
    first = heapq.nlargest(_WITH_NEIGHBOURS, reader.texts, key=lambda one: (reader.texts[one].score, one))
    near = {message_id: _neighbours(rx, reader.texts[message_id].session_id, message_id) for message_id in first}
    reader.read([one for found in near.values() for one in found.values() if one not in rough])
    scores = {message_id: text.score for message_id, text in reader.texts.items() if text.score or question.around}
    for message_id, found in near.items():
        lent = reader.texts[message_id]
        for distance, share in _NEAR:
            neighbour = found.get(distance)
            if neighbour in scores:
                # What stands after a question is likely to answer it.
                scores[neighbour] += lent.score * (2 * share if lent.asks and distance == 1 else share)
    ranked = heapq.nlargest(limit, scores, key=lambda one: (round(scores[one], 6), one))
    return [(message_id, scores[message_id]) for message_id in ranked]


def _rough(
    rx: Rx, asked: Request, question: Question, state: IndexState
) -> tuple[Mapping[int, float], Sequence[float]]:
    """What each message is worth by the words that the index finds in it, and how rare each word is."""
    rough: dict[int, float] = defaultdict(float)
    if not state.usable:
        for message_id, _ in islice(scanned(rx, asked), _READ):
            rough[message_id] = 1.0
        return rough, [word.weight for word in question.words]
    newest = rx.value(_NEWEST) or 0
    everything = _amount(_scope(rx, asked, newest), newest)
    rarity: list[float] = []
    for word in question.words:
        if rx.stopped:
            rarity.append(0.0)
            continue
        clauses = [Clause((term,), question.unwanted) for term in word.terms if term.phrase]
        found = _ids(rx, asked.match(clauses)) if clauses else []
        amount = _amount(found, newest)
        rarity.append(word.weight * math.log2(1 + max(everything - amount, 0) / (amount + 0.5) + 0.1))
        for message_id in found:
            rough[message_id] += rarity[-1]
    if state.queued or newest > state.watermark:
        for message_id, _ in islice(unindexed(rx, asked, state.watermark), _READ):
            rough[message_id] = max(rarity, default=1.0)
    return rough, rarity


def _scope(rx: Rx, asked: Request, newest: int) -> list[int]:
    """Some of the newest messages that the asker may see."""
    if asked.visible_to is None:
        return list(range(newest, 0, -1))[:_OF_EACH]
    owners = " OR ".join(f'"{scope_token(owner)}"' for owner in sorted(asked.visible_to.owners))
    return _ids(rx, f"scope : ({owners})")


def _ids(rx: Rx, match: str) -> list[int]:
    joined = next((row["ids"] for row in rx.each(_IDS, (match, _OF_EACH))), None)
    return list(map(int, joined.split(","))) if joined else []


def _amount(found: Sequence[int], newest: int) -> float:
    """About how many there are in all; of many only the newest are known, so their density is taken."""
    if len(found) < _OF_EACH:
        return len(found)
    return len(found) * newest / max(newest - found[-1] + 1, 1)


def _neighbours(rx: Rx, session_id: str, message_id: int) -> dict[int, int]:
    """The messages around one, by their distance."""
    before = [row["id"] for row in rx.each(_BEFORE, (session_id, message_id, _REACH))]
    after = [row["id"] for row in rx.each(_AFTER, (session_id, message_id, _REACH))]
    return {-(place + 1): one for place, one in enumerate(before)} | {place + 1: one for place, one in enumerate(after)}


class _Reader:
    """Reads messages and weighs them by what they say."""

    def __init__(self, rx: Rx, asked: Request, question: Question, rarity: Sequence[float]) -> None:
        self._rx = rx
        self._asked = asked
        self._question = question
        self._rarity = rarity
        self._stems = {stem: number for number, word in enumerate(question.words) for stem in word.stems}
        self._literals = [(number, word) for number, word in enumerate(question.words) if not word.stems]
        self._beginnings = tuple(term.tokens for word in question.words if word.stems for term in word.terms)
        self.texts: dict[int, _Text] = {}

    def read(self, ids: Sequence[int]) -> None:
        """Read those of these that the asker may see."""
        for row in self._rx.each(self._asked.sql(_ROWS), (*self._asked.params, json.dumps(list(ids)))):
            text = readable(row["content"], row["tool_name"], row["tool_calls"])[:_LOOKED_AT]
            asks = self._question.asks(text)
            self.texts[row["id"]] = _Text(row["session_id"], self._score(Haystack(text), asks=asks), asks)

    def _score(self, text: Haystack, *, asks: bool) -> float:
        if any(term.holds(text) for term in self._question.unwanted):
            return 0.0
        times: dict[int, int] = defaultdict(int)
        tokens = text.words.split()
        for token in tokens:
            if (
                token.startswith(self._beginnings)
                and (number := self._stems.get(self._question.stem(token))) is not None
            ):
                times[number] += 1
        for number, word in self._literals:
            if found := max(text.normal.count(term.literal) for term in word.terms):
                times[number] = found
        score = sum(self._rarity[number] * saturated(count, len(tokens), _MEAN) for number, count in times.items())
        return score * (_ASKING if asks else 1.0)


#: Words of a message as they are usual, and what a message that only asks is worth beside one that tells.
_MEAN: Final = 30
_ASKING: Final = 0.7
