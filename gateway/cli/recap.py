"""Where one was: the small recap that is shown when a session is taken up again.

Contract: `minimal` is one line; `full` adds the last exchanges, cut for the eye, the last answer whole, tool calls
folded to count and names, and says how many messages came before.
Limits: the last `LOOKED_AT` messages are looked at.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from gateway.cli.screen import rendered
from gateway.cli.transcript import text_of, tool_names
from gateway.phrases import age, folded, harmless, one_line, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from gateway.cli.screen import Screen
    from session_store import MessageRow, SessionRow

__all__ = ["LOOKED_AT", "recap", "recap_line"]

LOOKED_AT: Final = 60
_EXCHANGES: Final = 3
_QUESTION: Final = 300
_ANSWER: Final = 200


def recap_line(session: SessionRow, messages: int) -> str:
    """The session in one line."""
    name = f"“{session['title']}”" if session["title"] else session["id"]
    last = age(session["last_active"] or session["started_at"], time.time())
    return f"Going on with {name}: {plural(messages, 'message')}, the last one {last}."


def recap(screen: Screen, rows: Sequence[MessageRow], total: int) -> None:
    """Show the last exchanges of `rows` in a panel. total: messages of the whole conversation."""
    shown = [row for row in rows if not row["rewound"] and row["role"] in {"user", "assistant"}]
    asked = [number for number, row in enumerate(shown) if row["role"] == "user"]
    first = asked[-_EXCHANGES] if len(asked) > _EXCHANGES else 0
    last_answer = next((row["id"] for row in reversed(shown) if row["role"] == "assistant" and text_of(row)), None)
    parts: list[RenderableType] = []
    tools: list[str] = []
    for row in shown[first:]:
        tools += tool_names(row)
        if not text_of(row):
            continue
        if row["role"] == "assistant" and tools:
            parts.append(Text(f"  {folded(tools)}", style="dim"))
        tools = []
        parts.append(_line(row, whole=row["id"] == last_answer))
    if not parts:
        return
    earlier = total - sum(row["id"] >= shown[first]["id"] for row in rows)
    title = plural(earlier, "earlier message") if earlier > 0 else None
    screen.show(Panel(Group(*parts), title=title, title_align="left", border_style="dim", padding=(0, 1)))


def _line(row: MessageRow, *, whole: bool) -> RenderableType:
    text = harmless(text_of(row))
    if row["role"] == "user":
        return Text(f"> {one_line(text, _QUESTION)}", style="bold")
    return rendered(text, indent=2) if whole else Text(f"  {one_line(text, _ANSWER)}")
