"""Options and arguments that several commands share, each with the same words, and the form of their help."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["AsJson", "Continue", "SessionId", "Source", "Yes", "sub_command"]

Continue = Annotated[bool, typer.Option("--continue", "-c", help="Take up the session last used in a terminal.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Source = Annotated[
    str | None, typer.Option(metavar="ENTRANCE", help="Only sessions born there: cli, web, telegram, ...")
]
SessionId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the session, a unique beginning of it, or a title.")
]


def sub_command(summary: str | None = None) -> typer.Typer:
    """The app of a sub-command, with plain help as `threadline --help` has it.

    summary: what a group of commands is for; without commands it shows its help. None: the app is one command.
    """
    return typer.Typer(help=summary, no_args_is_help=summary is not None, rich_markup_mode=None, add_completion=False)
