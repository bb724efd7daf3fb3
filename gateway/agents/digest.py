"""A summary without a model: the words of the conversation itself, cut down.

Contract: pure and deterministic. What the person said comes before what was answered, the newest before the oldest
when room is short; what was left out is counted. Lines that hold the words of `focus` are kept longest. An earlier
summary is carried on: one of this kind line by line, as if its messages were still there, prose of another agent as it
stands, in at most half of the room. Tool results are left out. Never empty, never longer than `limit`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.phrases import one_line

__all__ = ["digest"]

_SAID = 300
_ANSWERED = 160
_LEAST = 200
#: What the line that counts the rest needs at most.
_COUNT_ROOM = 60

_LEFT_OUT = "({} more messages are not repeated here.)"
_COUNTED = re.compile(r"\((\d{1,9}) more messages are not repeated here\.\)")
_PREFIX = {"user": "- Asked: ", "assistant": "- Answered: "}


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the summary. said: by the person; named: it holds a word of the focus."""

    text: str
    said: bool
    named: bool


def digest(history: Sequence[Mapping[str, Any]], *, limit: int, focus: str | None = None) -> str:
    """Summarise a conversation in provider format in at most `limit` characters (at least 200)."""
    limit = max(limit, _LEAST)
    words = [word.casefold() for word in (focus or "").split()]
    prose, lines, left = _carried(history, words, (limit - _COUNT_ROOM) // 2)
    lines += _lines(history, words)
    room = limit - _COUNT_ROOM - sum(len(text) + 1 for text in prose)
    kept: set[int] = set()
    order = sorted(range(len(lines)), key=lambda place: (lines[place].named, lines[place].said, place), reverse=True)
    for place in order:
        if len(lines[place].text) + 1 <= room:
            kept.add(place)
            room -= len(lines[place].text) + 1
    left += len(lines) - len(kept)
    counted = [_LEFT_OUT.format(left)] if left else []
    chosen = [line.text for place, line in enumerate(lines) if place in kept]
    return "\n".join([*prose, *counted, *chosen]) or "Nothing was said in words."


def _carried(
    history: Sequence[Mapping[str, Any]], words: Sequence[str], room: int
) -> tuple[list[str], list[_Line], int]:
    """Of earlier summaries: their prose within `room`, their lines, and how many messages they had left out."""
    prose: list[str] = []
    lines: list[_Line] = []
    left = 0
    for message in history:
        content = message.get("content")
        if message.get("role") != "system" or not isinstance(content, str):
            continue
        for text in filter(None, (line.strip() for line in content.splitlines())):
            counted = _COUNTED.fullmatch(text)
            if counted is not None:
                left += int(counted[1])
            elif text.startswith(tuple(_PREFIX.values())):
                lines.append(_Line(text[: _SAID + 20], text.startswith(_PREFIX["user"]), _names(text, words)))
            elif room > len(_PREFIX["user"]):
                prose.append(one_line(text, room))
                room -= len(prose[-1]) + 1
    return prose, lines, left


def _lines(history: Sequence[Mapping[str, Any]], words: Sequence[str]) -> Iterator[_Line]:
    for message in history:
        role, content = message.get("role"), _text(message.get("content"))
        if role in _PREFIX and content.strip():
            said = role == "user"
            text = _PREFIX[role] + one_line(content, _SAID if said else _ANSWERED)
            yield _Line(text, said, _names(content, words))


def _text(content: Any) -> str:
    """The words of a content, which may come in parts."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _names(text: str, words: Sequence[str]) -> bool:
    folded = text.casefold()
    return any(word in folded for word in words)
