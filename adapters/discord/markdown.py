"""What Discord shows of Markdown, and what has to be written otherwise for it.

Contract: `pieces` returns the answer in order as `Text` and `Code`. Discord has no tables, no headings below the third,
no images, no indented or `~~~` code, and it hides what stands between two `||`; each is written in a form that it does
show. Everything else stays as it was written. Marks of Markdown may go, words never: a table that holds more than a
table can is shown as it was written.
Limits: pure and synchronous, linear in the length of the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from wcwidth import wcswidth

__all__ = ["ATOM", "Code", "Piece", "Text", "pieces"]

#: A wider table wraps on a telephone and cannot be read there.
_WIDEST_TABLE = 60
_LOWEST_HEADING = 3
_LONGEST_LANGUAGE = 30

_LANGUAGE = re.compile(rf"[A-Za-z0-9_+\-.#]{{1,{_LONGEST_LANGUAGE}}}\Z")
_DEEP_HEADING = re.compile(r"^(?P<before>.*?)#{4,6}(?=\s|\Z)")
_LINK = re.compile(r"\]\(https?://", re.IGNORECASE)
#: What must not be cut or reinterpreted inside a line: code, images, links, addresses. Then what Discord would take for
#: the marks of a spoiler or of a quotation to the end of the message. What is longer than `_LONGEST` is none of them:
#: without that limit each of many brackets would be looked for to the end of the text.
_LONGEST = 800
ATOM = re.compile(
    r"(?P<code>(?<!`)(`{1,50})(?!`)[^\n]{0,LONGEST}?(?<!`)\2(?!`))"
    r"|!(?P<image>\[(?P<name>[^\]\n]{0,LONGEST})\]\((?P<source>https?://[^\s)]{1,LONGEST})\))"
    r"|(?P<link>\[[^\]\n]{0,LONGEST}\]\(<?[^\s)]{1,LONGEST}(?:\s{1,9}\"[^\"\n]{0,LONGEST}\")?\))"
    r"|(?P<address><?https?://[^\s<>]+>?)"
    r"|(?P<spoiler>(?<!\\)\|\|)"
    r"|(?P<quotation>^[ ]{0,3}>>>(?=\s))".replace("LONGEST", str(_LONGEST)),
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Text:
    """Lines as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A block of code. before, after: what stands in front of the opening and closing marks, in lists and quotes."""

    language: str
    body: str
    before: str = ""
    after: str = ""


Piece = Text | Code


def pieces(source: str) -> Iterator[Piece]:
    """Yield the parts of an answer; each ends with its line, save the last."""
    lines = source.split("\n")
    done = 0
    for start, end, replacement in sorted(_changes(lines), key=lambda change: change[0]):
        if start < done:
            continue
        if start > done:
            yield Text("\n".join(lines[done:start]) + "\n")
        yield from replacement
        if end < len(lines):
            yield Text("\n")
        done = end
    if done < len(lines):
        yield Text("\n".join(lines[done:]))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _changes(lines: Sequence[str]) -> Iterator[tuple[int, int, list[Piece]]]:
    """Yield which lines are to be replaced, and by what."""
    tokens = _parser().parse("\n".join(lines))
    for index, token in enumerate(tokens):
        if token.map is None:
            continue
        start, end = token.map
        while end > start + 1 and token.type != "fence" and not lines[end - 1].strip():
            end -= 1
        if token.type == "fence":
            yield start, end, _fence(token, lines[start:end])
        elif token.type == "code_block" and token.level == 0:
            yield start, end, [Code("", _harmless(token.content.rstrip("\n")))]
        elif token.type == "heading_open" and token.markup.startswith("#"):
            yield start, end, [Text(_heading(token, lines[start]))]
        elif token.type == "table_open" and token.level == 0:
            yield start, end, _table(tokens[index:], lines[start:end])


def _heading(token: Token, line: str) -> str:
    if len(token.markup) > _LOWEST_HEADING:
        line = _DEEP_HEADING.sub(rf"\g<before>{'#' * _LOWEST_HEADING}", line, count=1)
    trimmed = line.rstrip()
    bare = trimmed.rstrip("#")
    return bare.rstrip() if bare != trimmed and bare[-1:].isspace() else line


def _fence(token: Token, lines: Sequence[str]) -> list[Piece]:
    """Return a block of code with the only fence that Discord knows; one that was left open is closed."""
    before, _, _ = lines[0].partition(token.markup)
    around = re.sub(r"[^>\s]", " ", before)
    closing = lines[-1].lstrip("> \t") if len(lines) > 1 else ""
    closed = len(closing.rstrip()) >= len(token.markup) and not closing.strip().strip(token.markup[0])
    body = lines[1:-1] if closed else lines[1:]
    after = lines[-1][: len(lines[-1]) - len(closing)] if closed else around
    language, _, rest = token.info.strip().partition(" ")
    told: list[Piece] = []
    if language and not _LANGUAGE.match(language):
        language, rest = "", token.info.strip()
    if rest.strip():
        told.append(Text(f"{before}{rest.strip()}\n"))
        before = around
    return [*told, Code(language, _harmless("\n".join(body)), before, after)]


def _harmless(code: str) -> str:
    """Return code in which nothing ends the block: three marks in a row are kept apart by what nobody sees."""
    return re.sub(r"`(?=``)", "`\u200b", code)


def _table(tokens: Sequence[Token], lines: Sequence[str]) -> list[Piece]:
    """Return a table as aligned code if it is narrow, else as a list; as it was written if cells would be lost."""
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(token.content.replace("\n", " ").strip())
    cells = [cell for row in rows for cell in row]
    if _words("".join(cells)) != _words("".join(lines)):
        return [Code("", _harmless("\n".join(lines)))]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    narrow = sum(widths) + 3 * (len(widths) - 1) <= _WIDEST_TABLE
    if len(rows) == 1 or (narrow and not any(_LINK.search(cell) for cell in cells)):
        return [Code("", _harmless(_aligned(rows, widths)))]
    heads, *body = rows
    return [Text("\n".join(_item(heads, row) for row in body))]


def _words(text: str) -> Counter[str]:
    return Counter(character for character in text if character.isalnum())


def _width(text: str) -> int:
    return max(wcswidth(text), 0) or len(text)


def _aligned(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    lines = [
        " | ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines.insert(1, "-|-".join("-" * width for width in widths))
    return "\n".join(lines)


def _item(heads: Sequence[str], row: Sequence[str]) -> str:
    told = (f"**{head}**: {cell}" if head else cell for head, cell in zip(heads, row, strict=True))
    return f"- {'; '.join(told)}"
