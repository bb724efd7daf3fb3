"""The `threadline` command: a chat when called alone, and the sub-commands.

Exit codes: 0 done, 1 failed, 2 wrong usage.
"""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.cli.chat import chat_in_terminal, one_shot
from gateway.cli.config_commands import app as config_app
from gateway.cli.gateway_commands import app as gateway_app
from gateway.cli.pair import pair
from gateway.cli.running import async_run, settings_of_home
from gateway.cli.sessions_commands import app as sessions_app

__all__ = ["app", "run"]

app = typer.Typer(
    help="One line of work, unbroken across terminal, web and chat platforms.",
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(gateway_app, name="gateway")
app.add_typer(sessions_app, name="sessions")
app.add_typer(config_app, name="config")
app.command()(pair)

Continue = Annotated[bool, typer.Option("--continue", "-c", help="Take up the session last used in a terminal.")]


@app.callback(invoke_without_command=True)
def main(context: typer.Context, *, resume: Continue = False) -> None:
    """Without a sub-command: chat in the terminal. Input from a pipe is one message; its answer goes to stdout."""
    if context.invoked_subcommand is None:
        home, settings = settings_of_home()
        async_run(chat_in_terminal(home, settings, resume=resume))


@app.command()
def chat(
    *,
    query: Annotated[str | None, typer.Option("--query", "-q", help="Say this, print the answer, end.")] = None,
    resume: Continue = False,
) -> None:
    """Chat in the terminal, or ask once with -q. With -q and a pipe, what the pipe brings is added to the question."""
    home, settings = settings_of_home()
    if query is None:
        async_run(chat_in_terminal(home, settings, resume=resume))
    else:
        async_run(one_shot(home, settings, query, resume=resume))


def run() -> None:
    """Entry point of the console script."""
    app()
