"""A process that is killed in the middle of a transaction, by itself. Run as a script: PATH WHAT [whole].

WHAT is `compression`, `handoff` or `migration` of the store at PATH, which the test has prepared. With `whole` nobody
dies.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from session_store import Compress, SessionDB, binding, compress, migration
from tests.unit.handoff.stage import SESSION, Stage

#: What is called when most of the transaction is written.
LATE = {
    "compression": (compress, "_tell"),
    "handoff": (binding, "add_rows"),
    "migration": (migration, "_settle_titles"),
}


def die(*_given: Any) -> None:
    """Be killed, here and now."""
    os.kill(os.getpid(), signal.SIGKILL)


async def work(db: SessionDB, what: str) -> None:
    """Compress the conversation, or bring it to a direct chat."""
    stage = Stage(db)
    stage.gateway = await db.processes.register("gateway", ["telegram/main"])
    if what == "handoff":
        await stage.brought("op")
    if what == "compression":
        held = await db.holding.take(SESSION, stage.gateway, stage.gateway, "compression")
        assert held.fence is not None
        await db.compressions.compress(Compress(held.fence, SESSION, "child", "A key and a mat.", context_from=2))


async def main(path: str, what: str, *whole: str) -> None:
    """Do it, or die of it; a migration is what opening comes to."""
    if not whole:
        setattr(*LATE[what], die)
    async with SessionDB(path) as db:
        await work(db, what)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
