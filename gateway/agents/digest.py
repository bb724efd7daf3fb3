"""A summary without a model: the words of the conversation itself, cut down.

Contract: pure and deterministic. An earlier summary is carried on; what the person said comes before what was answered,
the newest before the oldest when room is short; what was left out is counted. Lines that hold the words of `focus` are
kept longest. Tool results are left out. Never empty, never longer than `limit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.agents.quoting import one_line

__all__ = ["digest"]

_SAID = 300
_ANSWERED = 160
_LEAST = 200


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the summary. weight: what is kept first when room is short."""

    text: str
    weight: tuple[int, int, int]


def digest(history: Sequence[Mapping[str, Any]], *, limit: int, focus: str | None = None) -> str:
    """Summarise a conversation in provider format in at most `limit` characters (at least 200)."""
    limit = max(limit, _LEAST)
    words = [word.casefold() for word in (focus or "").split()]
    lines = [line for number, message in enumerate(history) if (line := _line(message, number, words)) is not None]
    room = limit - 60
    kept: set[int] = set()
    for position in sorted(range(len(lines)), key=lambda place: lines[place].weight, reverse=True):
        if len(lines[position].text) + 1 <= room:
            kept.add(position)
            room -= len(lines[position].text) + 1
    chosen = [line.text for position, line in enumerate(lines) if position in kept]
    left = len(lines) - len(chosen)
    if left:
        chosen.insert(0, f"({left} more messages are not repeated here.)")
    return "\n".join(chosen) or "Nothing was said in words."


def _line(message: Mapping[str, Any], number: int, words: Sequence[str]) -> _Line | None:
    role, content = message.get("role"), message.get("content")
    if role not in {"user", "assistant", "system"} or not isinstance(content, str) or not content.strip():
        return None
    if role == "system":
        return _Line(content.strip(), (3, 0, 0))
    said = role == "user"
    text = one_line(content, _SAID if said else _ANSWERED)
    named = any(word in content.casefold() for word in words)
    return _Line(f"- {'Asked' if said else 'Answered'}: {text}", (2 if named else 0, int(said), number))
