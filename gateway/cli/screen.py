"""What the terminal shows: answers rendered from Markdown, tool calls folded, live text while an answer is made.

Contract: nothing that came from a message can move the cursor or change the terminal: control characters are removed
before anything is printed. Without a terminal (a pipe) plain text is printed, one answer after another.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.terminal import Answer

__all__ = ["Screen", "folded", "harmless"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
LIVE_LINES = 12


def harmless(text: str) -> str:
    """`text` without control and direction characters; newlines and tabs stay."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def folded(tools: Sequence[str]) -> str:
    """Tool calls as one line: `3 tool calls: session_search x2, other`."""
    names = Counter(tools)
    listed = ", ".join(f"{name} x{count}" if count > 1 else name for name, count in names.items())
    return f"{len(tools)} tool call{'s' if len(tools) != 1 else ''}: {listed}"


class Screen:
    """One terminal screen."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)

    def say(self, text: str, style: str = "dim") -> None:
        """A line of the program itself."""
        self.console.print(Text(harmless(text), style=style))

    def markdown(self, text: str) -> None:
        """A rendered text."""
        self.console.print(Markdown(harmless(text), code_theme="ansi_dark"))

    def answer(self, answer: Answer) -> None:
        """An answer: its tool calls folded, then its text."""
        if answer.tools:
            self.say(f"  {folded(answer.tools)}")
        if answer.text:
            self.markdown(answer.text)
        if answer.stopped:
            self.say("Stopped. What you said is kept.")
        self.console.print()

    def live(self) -> Live:
        """A region for text that is still growing; it vanishes when it ends."""
        return Live(console=self.console, transient=True, auto_refresh=False, vertical_overflow="crop")

    def growing(self, text: str) -> Text:
        """The last lines of a growing answer."""
        return Text("\n".join(harmless(text).splitlines()[-LIVE_LINES:]) or "…", style="dim")
