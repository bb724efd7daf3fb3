"""Which of the things that were found answer a question: reading the tool's result, and ranking.

Contract: pure and total. A result of the wrong shape yields no passages, never an error. Ranked by who speaks (people
who state something before other agents), then by how much of the question a passage covers, where words that few
passages have count more, then the newest first by order of insertion. Questions, the agent's own confirmations and
answers, and the question itself are no passages. A word is covered fully by itself, mostly by another form of it
("Schlüssel", "Schlüsseln"), and in scripts without spaces by the share of its pairs of characters.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.agents.languages import fold
from gateway.agents.phrasing import is_own
from gateway.agents.questions import CJK, Topic, states

__all__ = ["Passage", "coverage", "other_forms", "passages_in", "rank", "whole"]

_TOKEN: Final = re.compile(r"[^\W_]+")
_HAS_CJK: Final = re.compile(f"[{CJK}]")

#: What another form of a word is worth, and what makes one: this share of the letters alike from the beginning, at
#: least four of them, or a short ending more.
_FORM: Final = 0.8
_FORM_SHARE: Final = 0.7
_FORM_LETTERS: Final = 4
_ENDING: Final = 2
_SHORTEST: Final = 3
_WHOLE: Final = 0.75
#: A passage that covers less than this, or less than this share of the best, is no answer.
_LEAST: Final = 0.2
_LEAST_OF_BEST: Final = 0.6


@dataclass(frozen=True, slots=True)
class Passage:
    """One found message and where it was said.

    title: the session's, or its first words. room: name of a shared place, '' in private ones.
    """

    message_id: int
    role: str
    text: str
    title: str
    source: str
    room: str
    when: str


def passages_in(result: Mapping[str, Any]) -> list[Passage]:
    """Read the messages that a search found out of the tool's result."""
    return [
        Passage(
            message_id=match["id"] if isinstance(match.get("id"), int) else 0,
            role=_text(match, "role"),
            text=_text(match, "content"),
            title=_text(found, "title") or _text(found, "preview"),
            source=_text(found, "source"),
            room=_room(found),
            when=_text(match, "when"),
        )
        for found in _mappings(result.get("results"))
        for match in _mappings(found.get("matches"))
    ]


def rank(passages: Iterable[Passage], question: str, topic: Topic, limit: int) -> list[Passage]:
    """Return the best passages for a question, best first, each text once."""
    asked = fold(question).strip()
    newest: dict[str, Passage] = {}
    for passage in sorted(passages, key=lambda passage: passage.message_id):
        text = fold(passage.text).strip()
        if text not in {"", asked} and _speaks(passage):
            newest[text] = passage
    covered = [(passage, coverage(topic.words, passage.text)) for passage in newest.values()]
    if topic.weak:
        covered = [(passage, words) for passage, words in covered if min(words, default=0.0) >= _WHOLE]
    weights = _weights([words for _, words in covered])
    scored = [(passage, _share(words, weights)) for passage, words in covered]
    least = max(_LEAST, _LEAST_OF_BEST * max((score for _, score in scored), default=0.0))
    answers = [(passage, score) for passage, score in scored if score >= least]
    answers.sort(key=lambda answer: (answer[0].role != "user", -round(answer[1], 2), -answer[0].message_id))
    return [passage for passage, _ in answers[:limit]]


def coverage(words: Sequence[str], text: str) -> list[float]:
    """Return for each word how well a text covers it, 0 to 1."""
    folded = fold(text)
    tokens = set(_TOKEN.findall(folded))
    return [_score(fold(word), folded, tokens) for word in words]


def whole(words: Sequence[str], text: str) -> bool:
    """Whether a text covers every word, be it in another form."""
    return min(coverage(words, text), default=0.0) >= _WHOLE


def other_forms(words: Sequence[str]) -> list[str]:
    """Return search terms that also find other forms of the words: their beginnings with `*`. CJK words stay whole."""
    return [
        f"{word[: max(_SHORTEST, round(len(word) * _FORM_SHARE))]}*"
        if word.isalpha() and len(word) >= _SHORTEST and not _HAS_CJK.search(word)
        else word
        for word in words
    ]


def _speaks(passage: Passage) -> bool:
    """Whether a message can answer at all."""
    if passage.role == "user":
        return states(passage.text)
    return passage.role == "assistant" and not is_own(passage.text)


def _weights(covered: Sequence[Sequence[float]]) -> list[float]:
    """Weigh the words: the fewer passages have one, the more it tells."""
    return [
        math.log2(1 + len(covered) / max(sum(score > 0 for score in column), 1))
        for column in zip(*covered, strict=True)
    ]


def _share(words: Sequence[float], weights: Sequence[float]) -> float:
    return sum(map(operator.mul, words, weights)) / sum(weights) if weights else 0.0


def _score(word: str, folded: str, tokens: set[str]) -> float:
    if word in tokens:
        return 1.0
    if _HAS_CJK.search(word):
        if word in folded:
            return 1.0
        pairs = _pairs(word)
        return sum(pair in folded for pair in pairs) / len(pairs) if pairs else 0.0
    if word in folded:
        return _FORM if word.isalnum() else 1.0
    return _FORM if word.isalpha() and any(_same_word(word, token) for token in tokens) else 0.0


def _same_word(one: str, other: str) -> bool:
    """Whether two words look like forms of one: they begin alike and differ in the ending only."""
    short, long = sorted((one, other), key=len)
    if len(short) >= _SHORTEST and long.startswith(short) and len(long) - len(short) <= _ENDING:
        return True
    common = next((place for place in range(len(short)) if short[place] != long[place]), len(short))
    return common >= max(_FORM_LETTERS, len(long) * _FORM_SHARE)


def _pairs(word: str) -> list[str]:
    return [word[place : place + 2] for place in range(len(word) - 1)] if len(word) > 1 else []


def _room(found: Mapping[str, Any]) -> str:
    place = found.get("place")
    if not isinstance(place, Mapping) or place.get("chat_type") == "dm":
        return ""
    return _text(place, "name")


def _text(mapping: Mapping[str, Any], name: str) -> str:
    value = mapping.get(name)
    return value if isinstance(value, str) else ""


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []
