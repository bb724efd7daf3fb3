"""What the commands on sessions share: the app, the store, finding the session that an id means."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import typer

from gateway.cli.choosing import unclear
from gateway.cli.options import sub_command
from gateway.cli.running import async_run, fail, our_home
from gateway.owner import owner_sees
from gateway.resuming import meant
from session_store import SessionDB, Visibility

__all__ = ["app", "gone", "on_store", "one_session"]

T = TypeVar("T")

app = sub_command("List, read, search, name, export and clear sessions.")


def on_store(work: Callable[[SessionDB, Visibility | None], Awaitable[T]], *, everything: bool = False) -> T:
    """Run `work` with the store of the home and what may be seen of it; errors end the command.

    That is what the owner sees in private; with `everything`, asked for in so many words, all there is (None).
    """
    home = our_home()

    async def run() -> T:
        async with SessionDB(home.state_db) as db:
            return await work(db, None if everything else await owner_sees(db))

    return async_run(run())


def gone(session_id: str) -> typer.Exit:
    """End the command because somebody deleted the session meanwhile; raise the result."""
    return fail(f"There is no session “{session_id}” any more.")


async def one_session(db: SessionDB, visible_to: Visibility | None, ref: str) -> str:
    """The one session that `ref` means; ends the command with the candidates otherwise."""
    found = await db.resolve_session(ref, visible_to=visible_to)
    if len(found) == 1:
        return found[0]
    result = await meant(db, ref, visible_to)
    if result.one is not None:
        return result.one["id"]
    raise fail(unclear(result, ref))
