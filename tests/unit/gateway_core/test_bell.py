"""The bell that the parts of the gateway wait for."""

from __future__ import annotations

import asyncio

from gateway.bell import Bell
from session_store import SessionDB


async def test_a_commit_rings_the_bells_of_its_tables(db: SessionDB) -> None:
    """And no other."""
    sessions, outbox = Bell(db, "sessions"), Bell(db, "outbox")
    waiting = asyncio.create_task(outbox.wait(30))
    await asyncio.sleep(0)
    await db.create_session("s", "cli")
    await sessions.wait(30)
    assert not waiting.done()
    outbox.ring()
    await waiting


async def test_many_commits_in_a_row_are_one_reason_to_look_and_none_is_lost(db: SessionDB) -> None:
    """Between two waits lies the rest; what came in it ends the next wait."""
    bell, looks, last = Bell(db, "messages", rest=0.05), 0, 0
    await db.create_session("s", "cli")

    async def look() -> None:
        nonlocal looks, last
        while last < 100:
            await bell.wait(30)
            looks += 1
            last = len(await db.get_messages("s"))

    looking = asyncio.create_task(look())
    for number in range(100):
        await db.append_message("s", "user", str(number))
    await looking
    assert looks < 100
