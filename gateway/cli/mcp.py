"""`threadline mcp`: the history for other agents, over the Model Context Protocol.

Over standard input and output (what clients start by themselves) or, with `--http`, on loopback behind the token of the
web chat. Ends when the client closes its side, or with Ctrl-C. Exit codes: 0 done, 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.numbers import whole_number
from gateway.cli.options import sub_command
from gateway.cli.running import async_run, settings_of_home
from session_store import SessionDB

if TYPE_CHECKING:
    from config import Home, Settings

__all__ = ["app"]

app = sub_command()

_DEFAULT_PORT = 8738


@app.command()
def mcp(
    *,
    http: Annotated[bool, typer.Option("--http", help="Serve on loopback, behind the token of the web chat.")] = False,
    port: Annotated[
        int,
        typer.Option(parser=whole_number(0, 65_535), metavar="PORT", help="With --http: where; 0 takes any free one."),
    ] = _DEFAULT_PORT,
) -> None:
    """Let other agents search and read your sessions, over the Model Context Protocol. Reads only."""
    home, settings = settings_of_home()
    # Standard output belongs to the protocol.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    if http:
        from gateway.web.token import web_token  # noqa: PLC0415 - heavy, and only this way needs it

        async_run(_over_http(home, settings, web_token(home, settings), port))
    else:
        async_run(_over_pipes(home, settings))


async def _over_pipes(home: Home, settings: Settings) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - heavy, and only this command needs it

    from gateway.mcp.history import History  # noqa: PLC0415 - the same
    from gateway.mcp.server import make_server  # noqa: PLC0415 - the same

    async with SessionDB(home.state_db) as db, stdio_server() as (incoming, outgoing):
        server = make_server(History(db, redact=settings.redact != "off"))
        await server.run(incoming, outgoing, server.create_initialization_options())


async def _over_http(home: Home, settings: Settings, token: str, port: int) -> None:
    from gateway.mcp.history import History  # noqa: PLC0415 - heavy, and only this command needs it
    from gateway.mcp.http import serve_http  # noqa: PLC0415 - the same
    from gateway.mcp.server import make_server  # noqa: PLC0415 - the same

    def tell(address: str) -> None:
        typer.echo(f"Serving at {address}. Send the token as `Authorization: Bearer ...`; it is in", err=True)
        typer.echo(f"{home.web_token_file}, or in your settings. Stop with Ctrl-C.", err=True)

    async with SessionDB(home.state_db) as db:
        await serve_http(make_server(History(db, redact=settings.redact != "off")), token, port, tell)
