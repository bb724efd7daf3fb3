"""Where to cut a text that is longer than one message may be.

Contract: the ranges cover the whole text in order, without gap or overlap. Each costs at most `limit`, in whatever unit
the costs are counted; only a single character that alone costs more stands in a range of its own. A cut is made at the
end of a paragraph if that leaves a part at least half full, else at the end of a line or word, else between two
characters as people see them (no emoji sequence or accent is torn) where any such place exists.
Limits: pure and synchronous, linear in the length of the text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from wcwidth import grapheme_boundary_before

__all__ = ["split_ranges", "utf16_costs", "utf16_length"]

#: A part that ends with a paragraph must be at least this full: an earlier paragraph end would waste too much.
_PARAGRAPH_FILL = 0.5
#: The same for lines and words.
_WORD_FILL = 0.25
_BEYOND_BMP = 0xFFFF


def utf16_costs(text: str) -> list[int]:
    """Return the number of UTF-16 code units of each character."""
    return [2 if ord(character) > _BEYOND_BMP else 1 for character in text]


def utf16_length(text: str) -> int:
    """Return the length of `text` in UTF-16 code units."""
    return sum(utf16_costs(text))


def split_ranges(text: str, costs: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Return (start, end) indexes into `text`; `costs` holds one positive number per character."""
    spent = [0, *accumulate(costs)]
    ranges: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        furthest = bisect_right(spent, spent[start] + limit, lo=start + 1) - 1
        end = len(text) if furthest == len(text) else _cut(text, start, max(furthest, start + 1))
        ranges.append((start, end))
        start = end
    return ranges


def _cut(text: str, start: int, furthest: int) -> int:
    """Return the best end in (start, furthest] of a part that begins at `start`."""
    room = furthest - start
    paragraph = text.rfind("\n\n", start, furthest)
    if paragraph >= start and paragraph + 2 - start >= room * _PARAGRAPH_FILL:
        return paragraph + 2
    earliest = start + max(1, int(room * _WORD_FILL))
    line = text.rfind("\n", start, furthest) + 1
    if line >= earliest:
        return line
    word = next((end for end in range(furthest, earliest - 1, -1) if text[end - 1].isspace()), 0)
    if word:
        return word
    visible = grapheme_boundary_before(text, furthest + 1)
    return visible if visible > start else furthest
