"""`threadline` and `threadline chat`: which kind of chat it is.

With -q, or with input from a pipe or a file, one message is said and its answer goes to stdout. Otherwise the chat is
interactive: with a full prompt on a terminal that can draw one, line by line on any other.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from gateway.cli.options import Continue, Resume, TakingUpCommand, sub_command, wanted
from gateway.cli.running import async_run, fail, settings_of_home

__all__ = ["MAX_CHARACTERS", "app", "chat", "only_lines"]

#: Longest message from a pipe or a file; whatever is longer is refused, never cut.
MAX_CHARACTERS = 1_000_000

#: UTF-8 needs at most four bytes for a character.
_MAX_BYTES = 4 * MAX_CHARACTERS

app = sub_command()


@app.command(cls=TakingUpCommand)
def chat(
    *,
    query: Annotated[
        str | None, typer.Option("--query", "-q", metavar="TEXT", help="Say this, print the answer, end.")
    ] = None,
    continued: Continue = None,
    resumed: Resume = None,
) -> None:
    """Chat in the terminal, or ask once with -q. With -q and a pipe, what the pipe brings is added to the question."""
    session = wanted(continued, resumed)
    piped = _piped()
    if query is None and piped is None:
        from gateway.cli.interactive import interactive  # noqa: PLC0415 - the prompt and the screen are heavy

        home, settings = settings_of_home()
        async_run(interactive(home, settings, session, lines=only_lines()))
        return
    text = "\n\n".join(part for part in (query, piped) if part and part.strip())
    if not text:
        raise fail("There is nothing to say: the question is empty.", code=2)
    from gateway.cli.oneshot import one_shot  # noqa: PLC0415 - only this kind needs it

    home, settings = settings_of_home()
    async_run(one_shot(home, settings, text, session))


def _piped() -> str | None:
    """What a pipe or a file brings, without the line ends around it; None when a person types."""
    if sys.stdin is None:
        return ""
    if sys.stdin.isatty():
        return None
    data = sys.stdin.buffer.read(_MAX_BYTES + 1)
    text = data.decode("utf-8-sig", "replace").strip("\r\n")
    if len(data) > _MAX_BYTES or len(text) > MAX_CHARACTERS:
        raise fail(f"The input has more than {MAX_CHARACTERS:,} characters. Nothing was said; send it in parts.")
    return text


def only_lines() -> bool:
    """Whether no prompt can be drawn: a dumb terminal, or the output goes elsewhere."""
    return os.environ.get("TERM", "").lower() in {"dumb", "unknown", ""} or not sys.stdout.isatty()
