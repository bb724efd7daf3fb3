"""The panel that is shown when a session is taken up again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from gateway.cli.screen import rendered

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gateway.cli.screen import Screen
    from gateway.recap import Entry, Recap

__all__ = ["show_recap"]


def show_recap(screen: Screen, recap: Recap) -> None:
    """Show the exchanges of a recap in a panel; nothing where nothing was said."""
    if recap.entries:
        parts = Group(*(_drawn(entry) for entry in recap.entries))
        title = recap.before() or None
        screen.show(Panel(parts, title=title, title_align="left", border_style="dim", padding=(0, 1)))


def _drawn(entry: Entry) -> RenderableType:
    if entry.kind == "said":
        return Text(f"> {entry.text}", style="bold")
    if entry.kind == "tools":
        return Text(f"  {entry.text}", style="dim")
    if entry.whole:
        return rendered(entry.text, indent=2)
    return Text("\n".join(f"  {line}" for line in entry.text.split("\n")))
