"""Small wording shared by commands, lists and the terminal.

Contract: pure and total; whatever is stored, whatever the clock did, there is something to show and nothing acts.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import humanize

__all__ = [
    "age",
    "amount",
    "clock",
    "entrance",
    "folded",
    "harmless",
    "inert",
    "one_line",
    "plural",
    "shortened",
    "spoken_at",
    "until",
]

#: How entrances are written where their name with a capital letter is not it.
_ENTRANCES = {"cli": "terminal", "web": "web", "email": "e-mail"}
#: What could act in a sentence of ours; an underscore inside a word is only an underscore.
_MARKUP = re.compile(r"[\\`*\[\]<|~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w{1,40};)")
#: What could act at the beginning of one, or of a line in a list: heading, quote, list.
_MARKUP_FIRST = re.compile(r"^(?=#|>|[-+](?:\s|$))", re.MULTILINE)
_NUMBERED = re.compile(r"^(\d{1,9})(?=[.)](?:\s|$))", re.MULTILINE)
_BLANK = re.compile(r"\s+")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
#: Control characters, marks that turn the writing direction, halves of characters.
_ACTING = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_HUNDRED_YEARS = timedelta(days=36_525)
_ELLIPSIS = "…"
#: Characters of a text that one line is made from.
_LOOKED_AT = 20_000


def age(then: float, now: float) -> str:
    """How long ago `then` was, in words; a clock that stepped back reads as 'now'."""
    return humanize.naturaltime(timedelta(seconds=min(max(0.0, now - then), _HUNDRED_YEARS.total_seconds())))


def until(then: float, now: float) -> str:
    """How long until `then`, in words; a time that has come reads as 'now'."""
    left = min(max(0.0, then - now), _HUNDRED_YEARS.total_seconds())
    return humanize.naturaltime(timedelta(seconds=-left)) if left >= 1 else "now"


def clock(then: float) -> str:
    """Day and time of `then` in the zone of this machine; a time that no calendar knows reads as '?'."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(then))
    except (OverflowError, ValueError, OSError):
        return "?"


def entrance(source: str) -> str:
    """The name of an entrance or platform as people write it: `terminal`, `web`, `Telegram`."""
    return _ENTRANCES.get(source, source.capitalize())


def spoken_at(source: str) -> str:
    """Where something was said, as it is written behind a name: `in the terminal`, `on the web`, `on Slack`."""
    return {"cli": "in the terminal", "web": "on the web", "email": "by e-mail"}.get(source, f"on {entrance(source)}")


def plural(count: int, noun: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def amount(size: int) -> str:
    """So many bytes as people say it: `812 bytes`, `2 KB`, `1.4 MB`, `82.2 GB`."""
    if size < 1000:  # noqa: PLR2004 - a kilobyte
        return plural(size, "byte")
    if size < 999_500:  # noqa: PLR2004 - what is rounded to a megabyte is one
        return f"{round(size / 1000)} KB"
    return f"{size / 1e6:.1f} MB" if size < 999_950_000 else f"{size / 1e9:,.1f} GB"  # noqa: PLR2004 - the same


def one_line(text: str, limit: int) -> str:
    """`text` on one line, harmless, at most `limit` characters, cut between words if it can be."""
    flat = _BLANK.sub(" ", harmless(text[:_LOOKED_AT])).strip()
    return flat if len(flat) <= limit else shortened(flat, limit)


def shortened(text: str, limit: int) -> str:
    """`text` cut to `limit` characters, the ellipsis included; at a space if one is near the end."""
    kept = text[: max(limit - 1, 0)]
    space = kept.rfind(" ", len(kept) - len(kept) // 4)
    return (kept[:space] if space > 0 else kept).rstrip() + _ELLIPSIS


def inert(text: str) -> str:
    """`text` inside a sentence of ours: it can neither format, whatever else the sentence holds, nor mention.

    A text that stands by itself is put into Markdown by `gateway.agents.quoting`, with still fewer signs.
    """
    escaped = _MARKUP_FIRST.sub(r"\\", _MARKUP.sub(r"\\\g<0>", text))
    return _NUMBERED.sub(r"\1\\", escaped).replace("@", "@\u2060")


def harmless(text: str) -> str:
    """`text` as it may be written to a terminal: nothing in it moves the cursor, colours, rings or turns lines around.

    Line ends of every kind become newlines; tabs stay.
    """
    return _ACTING.sub("", _LINE_ENDS.sub("\n", text))


def folded(tools: Sequence[str]) -> str:
    """Tool calls as one line: `3 tool calls: session_search x2, other`."""
    names = Counter(tools)
    listed = ", ".join(f"{name} x{count}" if count > 1 else name for name, count in names.items())
    return f"{plural(len(tools), 'tool call')}: {listed}"
