"""Where to cut Markdown that is longer than one message may be, so that no part has half a code block.

Contract: the ranges of the cuts cover the whole text in order, without gap or overlap. A cut inside a fenced code block
comes with what closes the block at the end of one part and opens it again, in its language, at the begin of the next;
with that, each part costs at most `limit`. No cut falls into a line that opens or closes a block, and none leaves an
empty block behind. `code_ranges` tells which characters are code, fenced, indented or in a line.
Limits: pure and synchronous, some seconds per megabyte; blocks are those of CommonMark. A text with an opening or
closing line longer than `LONGEST_MARK` cannot be cut so and gives None: it is no Markdown that anybody wrote.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.token import Token

from adapters.splitting import split_ranges, utf16_length

__all__ = ["LONGEST_MARK", "Code", "Cut", "code_ranges", "split_markdown"]

LONGEST_MARK = 200
_TICKS = re.compile("`+")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True, slots=True)
class Cut:
    """A part: `before`, then the characters from `start` to `end`, then `after`."""

    start: int
    end: int
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class _Fence:
    """A fenced block: its first line from start to code, its code up to code_end, its last line, if closed, up to end.

    opening and closing are the lines that make a block of a piece of the code; marks: those and the real last line.
    """

    start: int
    code: int
    code_end: int
    end: int
    opening: str
    closing: str
    last_line: str

    @property
    def marks(self) -> tuple[str, str, str]:
        return self.opening, self.closing, self.last_line

    @property
    def overhead(self) -> int:
        """What the lines around a piece of the code cost at most."""
        last = max(utf16_length(self.closing) + 1, utf16_length(self.last_line))
        return utf16_length(self.opening) + 1 + last


class Code:
    """The code in a Markdown text whose lines end with newlines only."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.blocks = list(_blocks(text))


def split_markdown(code: Code, costs: Sequence[int], limit: int) -> list[Cut] | None:
    """Return the parts of the text; `costs` holds one positive number per character."""
    text = code.text
    fences = [block for block in code.blocks if isinstance(block, _Fence)]
    if any(len(mark) > LONGEST_MARK for fence in fences for mark in fence.marks):
        return None
    room = limit - max((fence.overhead for fence in fences), default=0)
    starts = [fence.start for fence in fences]
    cuts: list[Cut] = []
    start, before = 0, ""
    while start < len(text):
        window = slice(start, start + room + 1)
        end = start + split_ranges(text[window], costs[window], room)[0][1]
        index = bisect_left(starts, end) - 1
        fence = fences[index] if index >= 0 else None
        if fence is not None and start < fence.start and end <= fence.code < fence.end:
            end, fence = fence.start, None
        elif fence is not None and fence.code_end <= end < fence.end:
            end = fence.end
        after = _closing(text, end, fence) if fence is not None else ""
        cuts.append(Cut(start, end, before, after))
        before = f"{fence.opening}\n" if fence is not None and after else ""
        start = end
    return cuts


def code_ranges(code: Code) -> list[tuple[int, int]]:
    """Return the ranges of code in order: what stands in them is shown as it is."""
    text = code.text
    found: list[tuple[int, int]] = []
    done = 0
    for block in code.blocks:
        first, last = (block.start, block.end) if isinstance(block, _Fence) else block
        found += _spans(text, done, first)
        found.append((first, last))
        done = max(done, last)
    return [*found, *_spans(text, done, len(text))]


def _blocks(text: str) -> Iterator[_Fence | tuple[int, int]]:
    """Yield the blocks of code, in order: fenced ones, and the ranges of indented ones."""
    offsets = [0, *(min(end, len(text)) for end in accumulate(len(line) + 1 for line in text.split("\n")))]
    for token in _parser().parse(text):
        if token.map is None:
            continue
        first, last = token.map
        if token.type == "fence":
            yield _fence(
                token, text, [offsets[first], offsets[first + 1], offsets[max(first + 1, last - 1)], offsets[last]]
            )
        elif token.type == "code_block":
            yield offsets[first], offsets[last]


@functools.cache
def _parser() -> MarkdownIt:
    """The one parser: making one takes longer than parsing."""
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _fence(token: Token, text: str, edges: Sequence[int]) -> _Fence:
    """Return the block whose first line, code, last line and end begin at the edges."""
    start, code, last_line, end = edges
    opening = text[start:code].rstrip()
    prefix, mark, info = opening.partition(token.markup)
    # A block may begin right behind the mark of a list; where it goes on, there is only room for it.
    prefix = re.sub(r"[^\s>]", " ", prefix)
    lines = token.content.count("\n") + (not token.content.endswith("\n") and bool(token.content))
    closed = token.map is not None and lines < token.map[1] - token.map[0] - 1
    return _Fence(
        start,
        code,
        last_line if closed else end,
        end,
        f"{prefix}{mark}{info}",
        f"{prefix}{token.markup}",
        text[last_line:end] if closed else "",
    )


def _closing(text: str, end: int, fence: _Fence) -> str:
    """Return what closes the block in a part that ends at `end`, if it must be closed there."""
    inside = fence.code < end < fence.code_end
    unclosed = not fence.last_line and end == fence.end == len(text)
    if not (inside or unclosed):
        return ""
    return fence.closing if text[end - 1] == "\n" else f"\n{fence.closing}"


def _spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of code in lines between two blocks; none reaches over a blank line."""
    for first, last in _paragraphs(text, start, end):
        runs = [(match.start(), match.end()) for match in _TICKS.finditer(text, first, last)]
        later: defaultdict[int, list[int]] = defaultdict(list)
        for number in range(len(runs) - 1, -1, -1):
            later[runs[number][1] - runs[number][0]].append(number)
        number = 0
        while number < len(runs):
            length = runs[number][1] - runs[number][0]
            same = later[length]
            while same and same[-1] <= number:
                same.pop()
            if same:
                yield runs[number][0], runs[same[-1]][1]
                number = same[-1]
            number += 1


def _paragraphs(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for match in _BLANK_LINE.finditer(text, start, end):
        yield start, match.start()
        start = match.end()
    yield start, end
