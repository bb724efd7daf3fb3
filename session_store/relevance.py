"""Which of the found messages matter most: the order of a strict search that asks for relevance.

Contract: the newest 100 of what was found are put in order, the rest follow newest first, so that pages never overlap.
A message counts more, the oftener it has the wanted terms, the rarer these are among the found ones, and the shorter it
is (the saturation of BM25); equals stay newest first. Pure apart from reading the texts.
Limits: only the first 2,000 characters of a text are looked at.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from session_store.candidates import Found
from session_store.content import readable
from session_store.query import Query
from session_store.segment import normal
from session_store.tx import Rx

__all__ = ["RANKED", "most_relevant_first", "saturated"]

RANKED: Final = 100
"""How many are put in order."""
_LOOKED_AT: Final = 2_000
_K1: Final = 1.2
_B: Final = 0.5

_TEXTS: Final = """
SELECT m.id, substr(m.content, 1, 2000) AS content, m.tool_name, m.tool_calls FROM json_each(?) AS wanted
CROSS JOIN messages AS m ON m.id = wanted.value
"""


def most_relevant_first(rx: Rx, query: Query, found: Iterator[Found]) -> Iterator[Found]:
    """Put what was found (newest first) into the order of relevance."""
    pool = list(islice(found, RANKED))
    if len(pool) > 1:
        scores = _scores(rx, query, [one[0] for one in pool])
        pool.sort(key=lambda one: (one[1], scores.get(one[0], 0.0), one[0]), reverse=True)
    yield from pool
    yield from found


def saturated(times: int, length: int, mean: float) -> float:
    """What so many occurrences in a text of that length are worth, between 0 and 1."""
    return times / (times + _K1 * (1 - _B + _B * length / mean))


def _scores(rx: Rx, query: Query, ids: Sequence[int]) -> dict[int, float]:
    texts = {
        row["id"]: normal(readable(row["content"], row["tool_name"], row["tool_calls"])[:_LOOKED_AT])
        for row in rx.each(_TEXTS, (json.dumps(ids),))
    }
    mean = sum(map(len, texts.values())) / len(texts) + 1
    scores = dict.fromkeys(texts, 0.0)
    for term in query.wanted:
        times = {message_id: count for message_id, text in texts.items() if (count := text.count(term.literal))}
        rarity = math.log2(1 + len(texts) / (len(times) or 1))
        for message_id, count in times.items():
            scores[message_id] += rarity * saturated(count, len(texts[message_id]), mean)
    return scores
