"""Small wording shared by commands, lists and the terminal."""

from __future__ import annotations

import re
from datetime import timedelta

import humanize

__all__ = ["age", "inert", "one_line", "plural"]

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|~#])")
_BLANK = re.compile(r"[\s\x00-\x1f\x7f]+")


def age(then: float, now: float) -> str:
    """How long ago `then` was, in words; a clock that stepped back reads as 'now'."""
    return humanize.naturaltime(timedelta(seconds=max(0.0, now - then)))


def plural(count: int, noun: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def one_line(text: str, limit: int) -> str:
    """`text` on one line, at most `limit` characters, cut with an ellipsis."""
    flat = _BLANK.sub(" ", text).strip()
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def inert(text: str) -> str:
    """`text` with Markdown escaped, so that what somebody wrote cannot format or mention."""
    return _MARKUP.sub(r"\\\1", text).replace("@", "@\u2060")
