"""`threadline sessions repair`: the search index built anew, beside whatever else goes on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.output import write
from gateway.cli.running import EXIT_USAGE, fail
from gateway.cli.sessions.common import app, on_store
from gateway.phrases import plural

if TYPE_CHECKING:
    from session_store import SessionDB, Visibility

__all__ = ["repair"]


@app.command("repair")
def repair(
    *, search: Annotated[bool, typer.Option("--search", help="Build the search index anew from the messages.")] = False
) -> None:
    """Build anew what can be made again from the messages."""
    if not search:
        raise fail("Say what to repair: --search builds the search index anew.", EXIT_USAGE)
    shown = sys.stderr.isatty()

    def tell(done: int, whole: int) -> None:
        if shown:
            typer.echo(f"\r{done:,} of {plural(whole, 'message')} ", err=True, nl=False)

    async def work(db: SessionDB, _: Visibility | None) -> int:
        return await db.rebuild_search(tell)

    count = on_store(work)
    if shown:
        typer.echo("\r\x1b[K", err=True, nl=False)
    write(f"The search index is new; it holds {plural(count, 'message')}.")
