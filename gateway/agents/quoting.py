r"""What somebody wrote, put into Markdown so that it shows as it was written and does nothing.

Contract: pure and total. `inert` escapes only what could act, so that paths and code stay readable where Markdown is
shown unrendered: emphasis, code, links, images, raw HTML, headings, lists, tables, fences and hard breaks lose their
meaning; control characters and characters that turn the writing direction are taken out. `block` makes a block quote
that nothing inside can close; `excerpt` cuts a long text around the words that matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from gateway.phrases import harmless, shortened

__all__ = ["block", "excerpt", "inert"]

#: HTML and automatic links begin so; an underscore inside a word is only an underscore.
_HTML: Final = re.compile(r"<(?=[A-Za-z/!?])")
_UNDERSCORE: Final = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
#: A backslash before punctuation would swallow itself, an ampersand before a name would become a character.
_BACKSLASH: Final = re.compile(r"\\(?=[!-/:-@\[-`{-~]|$)", re.MULTILINE)
_ENTITY: Final = re.compile(r"&(?=#?\w{1,40};)")
#: Brackets make links, images and notes only if something like this is among them.
_LINK: Final = re.compile(r"\][(\[]|^[ \t]*\[[^\]]*\]:|\[\^", re.MULTILINE)
_BRACKET: Final = re.compile(r"[\[\]]")
#: These act only in pairs: emphasis, code, strikethrough, formulas, spoilers.
_PAIRED: Final = (("*", "*"), ("`", "`"), ("~", "~"), ("$", "$"), ("||", "|"))
#: These act at the start of a line: heading, quote, list, rule or underline of a heading, row of a table.
_LINE_START: Final = re.compile(r"^(?=#{1,6}(?:\s|$)|>|[-+*](?:\s|$)|[-=:|][-=:| \t]*$)", re.MULTILINE)
_NUMBERED: Final = re.compile(r"^(\d{1,9})(?=[.)](?:\s|$))", re.MULTILINE)
_INDENT: Final = re.compile(r"^[ \t]+", re.MULTILINE)

_ELLIPSIS: Final = "…"
_MOST_LINES: Final = 15
#: How far before the first word that matters an excerpt begins.
_LEAD: Final = 80


def excerpt(text: str, words: Iterable[str], limit: int) -> str:
    """Return at most `limit` characters of `text`, lines kept, from shortly before the first of `words`."""
    shown = harmless(text).strip()
    if len(shown) <= limit:
        return shown
    lowered = shown.casefold() if len(shown.casefold()) == len(shown) else shown
    places = [place for word in words if (place := lowered.find(word.casefold())) >= 0]
    start = max(0, min(min(places, default=0) - _LEAD, len(shown) - limit))
    if start:
        start = _after_break(shown, start)
    head = _ELLIPSIS if start else ""
    rest = shown[start:]
    return head + (rest if len(head) + len(rest) <= limit else shortened(rest, limit - len(head)))


def inert(text: str) -> str:
    """Return Markdown that shows exactly `text`: what cannot be shown is left out, indentation is kept."""
    escaped = _BACKSLASH.sub(r"\\\\", harmless(text))
    escaped = _HTML.sub(r"\\<", escaped)
    escaped = _UNDERSCORE.sub(r"\\_", escaped)
    if _LINK.search(escaped):
        escaped = _BRACKET.sub(r"\\\g<0>", escaped)
    escaped = _ENTITY.sub(r"\\&", escaped)
    for acting, mark in _PAIRED:
        if escaped.count(mark) > 1 and acting in escaped:
            escaped = escaped.replace(mark, f"\\{mark}")
    escaped = _INDENT.sub(lambda found: "\u00a0" * len(found.group().expandtabs(4)), escaped)
    return _NUMBERED.sub(r"\1\\", _LINE_START.sub(r"\\", escaped))


def block(text: str, source: str = "") -> str:
    """Return a block quote of `text`, and as its last paragraph `source`, which is Markdown already."""
    lines = inert(harmless(text).strip("\n").rstrip()).split("\n")
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], _ELLIPSIS]
    quoted = [f"> {line.rstrip()}  " if line.strip() else ">" for line in lines]
    quoted[-1] = quoted[-1].rstrip()
    return "\n".join([*quoted, ">", f"> {source}"] if source else quoted)


def _after_break(text: str, start: int) -> int:
    """Move a start forward to the next word, if one begins soon."""
    space = text.find(" ", start, start + _LEAD // 2)
    return start if space < 0 else space + 1
