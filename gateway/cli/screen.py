"""What the terminal shows: answers rendered from Markdown, what was said, words of the program itself.

Contract: nothing that came from a message can move the cursor or change the terminal: characters that act are removed
before rendering and once more from what was rendered (Markdown can spell them). Raw HTML is text, a line break stays
one, and where a link leads is written out. Colours only where they are wanted (`NO_COLOR`, dumb terminals, pipes).
Limits: above `MAX_MARKDOWN` characters a text is shown as it was written (parsing is not linear in the worst case); of
what a person said at most `MOST_QUOTED` lines and `MOST_CHARACTERS` characters are shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from markdown_it import MarkdownIt
from rich.console import Console, Group
from rich.markdown import CodeBlock, Markdown, MarkdownElement
from rich.padding import Padding
from rich.segment import Segment
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from gateway.phrases import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from markdown_it.token import Token
    from rich.console import ConsoleOptions, RenderableType

__all__ = ["MAX_MARKDOWN", "Screen"]

MAX_MARKDOWN: Final = 60_000
MOST_QUOTED: Final = 30
MOST_CHARACTERS: Final = 3_000

_PARSER: Final = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


class Screen:
    """One terminal screen; prints below what is there."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False, emoji=False)

    @property
    def width(self) -> int:
        """Columns, as they are now."""
        return self._console.width

    def say(self, text: str, style: str = "dim") -> None:
        """A line of the program itself."""
        self.show(Text(harmless(text), style=style))

    def markdown(self, text: str) -> None:
        """A rendered text."""
        self.show(rendered(text))

    def quoted(self, text: str, whence: str = "") -> None:
        """What a person said; `whence` names another entrance."""
        line = Table.grid(padding=(0, 1, 0, 0))
        line.add_column(no_wrap=True)
        line.add_column(overflow="fold")
        said = Text(_beginning(harmless(text).strip("\n")), style="bold")
        line.add_row(Text(">", style="bold"), said)
        self.show(line, *([Text(f"  ({whence})", style="dim")] if whence else []))

    def gap(self) -> None:
        """An empty line."""
        self._console.print()

    def show(self, *parts: RenderableType) -> None:
        """Anything made by `rendered` or by rich."""
        self._console.print(_Safe(Group(*parts)), soft_wrap=False)


def _beginning(text: str) -> str:
    """A long text cut to what one needs to know it again."""
    lines = text.split("\n")
    if len(lines) <= MOST_QUOTED:
        return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}… ({len(text):,} characters)"
    return "\n".join([_beginning("\n".join(lines[: MOST_QUOTED - 1])), f"… ({len(lines):,} lines)"])


def rendered(text: str, indent: int = 0) -> RenderableType:
    """A Markdown text, ready to be shown."""
    clean = harmless(text)
    body: RenderableType = _Rendered(clean) if len(clean) <= MAX_MARKDOWN else Text(clean)
    return Padding(body, (0, 0, 0, indent)) if indent else body


class _Code(CodeBlock):
    """A block of code that can be copied as it is: nothing before or after its lines."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Syntax]:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, background_color="default")


class _Rendered(Markdown):
    """Markdown by our rules; see the module."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        self.markup = text
        self.parsed = list(_keep_breaks(_PARSER.parse(text)))


def _keep_breaks(tokens: Iterable[Token]) -> Iterator[Token]:
    """A line end inside a paragraph stays a line end."""
    for token in tokens:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"
        yield token


class _Safe:
    """Renders what it holds without any character that acts, and without blanks at the ends of lines."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        shown = (
            Segment(harmless(segment.text), segment.style)
            for segment in console.render(self._inner, options)
            if not segment.control
        )
        for line in Segment.split_lines(shown):
            yield from _without_end(line)
            yield Segment.line()


def _without_end(line: list[Segment]) -> list[Segment]:
    """A line without the blanks at its end, unless one sees them (a coloured ground)."""
    kept = list(line)
    while kept:
        text, style, _ = kept.pop()
        if style is not None and (style.bgcolor is not None or style.reverse):
            return [*kept, Segment(text, style)]
        if text.rstrip(" "):
            return [*kept, Segment(text.rstrip(" "), style)]
    return kept
