"""The `threadline` command: a chat when called alone, and the sub-commands.

Contract: a sub-command's module is imported when it is called (or listed by --help), so that a question in a script
does not wait for the web server or a chat screen. What is wrong is one sentence on stderr.
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import importlib
import sys
from collections import UserDict
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gateway.cli.options import Continue, Resume, with_optional_title
from gateway.cli.streams import finish_output, output_failed, prepare_output

__all__ = ["app", "run"]

#: Where each sub-command is, in the order of the help: module and the name of its typer app.
_COMMANDS = {
    "chat": "gateway.cli.chat:app",
    "sessions": "gateway.cli.sessions:app",
    "insights": "gateway.cli.insights:app",
    "handoff": "gateway.cli.handoff:app",
    "search": "gateway.cli.sessions.finding:alone",
    "gateway": "gateway.cli.gateway_commands:app",
    "inbox": "gateway.cli.inbox_commands:app",
    "outbox": "gateway.cli.outbox_commands:app",
    "pair": "gateway.cli.pair:app",
    "mcp": "gateway.cli.mcp:app",
    "config": "gateway.cli.config_commands:app",
    "doctor": "gateway.cli.doctor:app",
}


class _Commands(UserDict[str, Any]):
    """Sub-commands by name, each imported when it is first looked at."""

    def __getitem__(self, name: str) -> Any:
        found = self.data[name]
        if isinstance(found, str):
            module, _, attribute = found.partition(":")
            found = typer.main.get_command(getattr(importlib.import_module(module), attribute))
            found.name = name
            self.data[name] = found
        return found


class _Threadline(TyperGroup):
    """The group of all sub-commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands(_COMMANDS)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as every group does; the title of -c may be left out."""
        return super().parse_args(ctx, with_optional_title(args))


app = typer.Typer(
    cls=_Threadline,
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - only this option needs it

        typer.echo(f"threadline {version('threadline')}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and end.")
]


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    *,
    continued: Continue = None,
    resumed: Resume = None,
    version: Version = False,  # noqa: ARG001 - the callback acts on it
) -> None:
    """One line of work, unbroken across terminal, web and chat platforms.

    Without a command: chat in the terminal. Input from a pipe or a file is one message; its answer goes to stdout.
    """
    if context.invoked_subcommand is None:
        from gateway.cli.chat import chat  # noqa: PLC0415 - see the module

        chat(continued=continued, resumed=resumed)
    elif continued is not None or resumed is not None:
        raise typer.BadParameter(
            f"-c and -r go behind the command: `threadline chat -r SESSION`, not before `{context.invoked_subcommand}`."
        )


def run() -> None:
    """Entry point of the console script."""
    prepare_output()
    code: int | str | None
    try:
        app(prog_name="threadline")
        code = 0
    except SystemExit as end:
        code = end.code
    except OSError as error:
        code = output_failed(error)
    sys.exit(finish_output(code))
