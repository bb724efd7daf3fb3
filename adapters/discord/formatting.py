"""Markdown to messages that Discord takes: formatted first, split afterwards.

Contract: every part has at most 2,000 UTF-16 units, and joined the parts are the whole answer as Discord can show it
(see `adapters.discord.markdown`). A block of code that does not fit is closed at the end of a part and opened again,
with its language, in the next. Links and addresses are not cut. Only a part that would be nothing but white space is
left out, since Discord refuses it. If formatting fails, the answer is sent as it was written.
Limits: pure and synchronous, linear in the length of the text.

A part has no payload: what is formatted for Discord is plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import structlog

from adapters.base import OutboundPart
from adapters.discord.markdown import ATOM, Code, Piece, Text, pieces
from adapters.splitting import split_ranges, utf16_costs, utf16_length

__all__ = ["MAX_UNITS", "render"]

MAX_UNITS = 2000
#: A longer one is cut like words: it could leave a part half empty, or not fit at all.
_LONGEST_ATOM = 800
#: Discord refuses a message without visible text, yet an answer must never vanish.
_NOTHING_TO_SHOW = "(empty message)"
#: Stands for what must not be cut. Not white space, so that no part ends behind it by preference.
_WHOLE = "\ufffc"
_SURROGATE = re.compile("[\ud800-\udfff]")

_log = structlog.get_logger(__name__)


def render(markdown: str) -> list[OutboundPart]:
    """Return the parts of an answer, in order; none only for empty text."""
    if not markdown:
        return []
    source = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", markdown).replace("\r\n", "\n").replace("\r", "\n")
    try:
        formatted = list(pieces(source))
    except Exception as error:  # noqa: BLE001  (whatever the parser stumbles over, the answer must go out)
        _log.warning("discord_formatting_failed", length=len(source), error=repr(error))
        formatted = [Text(source)]
    parts = [OutboundPart(plain=text) for text in _split(formatted) if text.strip()]
    return parts or [OutboundPart(plain=_NOTHING_TO_SHOW)]


@dataclass(frozen=True, slots=True)
class _Fence:
    """The marks of one block of code: as they are, and as they are repeated around a cut."""

    opening: str
    again: str
    closing: str


@dataclass(slots=True)
class _Tape:
    """The answer as a row of things that may be cut between, each with what it shows and what it costs.

    fences: for each thing, the block of code it lies in, its marks not included.
    """

    shown: list[str] = field(default_factory=list)
    shape: list[str] = field(default_factory=list)
    fences: list[_Fence | None] = field(default_factory=list)
    opens: set[int] = field(default_factory=set)
    closes: set[int] = field(default_factory=set)

    def add_text(self, text: str, fence: _Fence | None = None) -> None:
        self.shown += text
        self.shape += text
        self.fences += [fence] * len(text)

    def add_whole(self, text: str) -> None:
        self.shown.append(text)
        self.shape.append(_WHOLE)
        self.fences.append(None)


def _split(formatted: Sequence[Piece]) -> Iterator[str]:
    tape = _Tape()
    for piece in formatted:
        if isinstance(piece, Text):
            _lay_text(tape, piece.text)
        else:
            _lay_code(tape, piece)
    marks = [utf16_length(fence.again) + utf16_length(fence.closing) for fence in set(tape.fences) if fence is not None]
    costs = [sum(utf16_costs(shown)) for shown in tape.shown]
    for start, end in split_ranges("".join(tape.shape), costs, MAX_UNITS - max(marks, default=0)):
        yield _part(tape, start, end)


def _lay_text(tape: _Tape, text: str) -> None:
    done = 0
    for match in ATOM.finditer(text):
        whole = match[0]
        if match["image"]:
            whole = match["image"] if match["name"] else match["source"]
        elif match["spoiler"]:
            whole = r"\|\|"
        elif match["quotation"]:
            whole = match[0].replace(">", r"\>", 1)
        if utf16_length(whole) <= _LONGEST_ATOM:
            tape.add_text(text[done : match.start()])
            tape.add_whole(whole)
            done = match.end()
    tape.add_text(text[done:])


def _lay_code(tape: _Tape, code: Code) -> None:
    around = re.sub(r"[^>\s]", " ", code.before)
    fence = _Fence(f"```{code.language}\n", f"{around}```{code.language}\n", f"\n{code.after}```")
    tape.add_text(code.before)
    tape.opens.add(len(tape.shown))
    tape.add_whole(fence.opening)
    tape.add_text(code.body, fence)
    tape.closes.add(len(tape.shown))
    tape.add_whole(fence.closing if code.body else fence.closing[1:])


def _part(tape: _Tape, start: int, end: int) -> str:
    """Return what a range shows, with the block of code that a cut goes through closed and opened again."""
    head = tail = ""
    if start in tape.closes:
        start += 1  # the part before has closed it already
    elif start < len(tape.fences) and start - 1 >= 0:
        fence = tape.fences[start]
        if fence is not None:
            head = fence.again
    if end - 1 in tape.opens:
        end -= 1  # the next part opens it
    elif end < len(tape.shown) and end > start:
        fence = tape.fences[end - 1]
        if fence is not None:
            tail = fence.closing[1:] if tape.shown[end - 1] == "\n" else fence.closing
    return head + "".join(tape.shown[start:end]) + tail
