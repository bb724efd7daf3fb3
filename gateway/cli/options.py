"""Options and arguments that several commands share, each with the same words."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["AsJson", "Continue", "SessionId", "Source", "Yes"]

Continue = Annotated[bool, typer.Option("--continue", "-c", help="Take up the session last used in a terminal.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Source = Annotated[
    str | None, typer.Option(metavar="ENTRANCE", help="Only sessions born there: cli, web, telegram, ...")
]
SessionId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the session, a unique beginning of it, or a title.")
]
