"""The same over the real store: two openings of one file, as two processes have them, want the same work at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from session_store import NewMessage, NewOutbox, SessionDB
from tests.unit.queues.bench import HOME, TELEGRAM, fence, incoming, never, request


@pytest.fixture
async def other(home: Path, db: SessionDB) -> AsyncIterator[SessionDB]:
    """The home's store opened a second time."""
    del db  # opened first, so that it makes the file
    async with SessionDB(home / "state.db") as store:
        yield store


async def test_a_message_delivered_to_both_is_one_turn_with_one_answer(db: SessionDB, other: SessionDB) -> None:
    """Accept, claim and finish race over all stores; each is won once."""
    tokens = [await store.processes.register("gateway", ["telegram/main"]) for store in (db, other)]
    accepted = await asyncio.gather(*(store.inbox.accept(incoming("m:1")) for store in (db, other) for _ in range(5)))
    assert [one.created for one in accepted].count(True) == 1
    (row,) = {one.inbox_id for one in accepted}
    claims = await asyncio.gather(
        *(
            store.turns.claim(request([row], f"t{n}", token), never)
            for n, (store, token) in enumerate(zip((db, other), tokens, strict=True))
        )
    )
    assert sorted(claim.status for claim in claims) == ["claimed", "gone"]
    (won,) = [claim for claim in claims if claim.status == "claimed"]
    answer = NewMessage("assistant", "hi")
    out = [NewOutbox(HOME, "answer", "hi")]
    ids = await asyncio.gather(*(store.turns.finish(fence(won), answer, out) for store in (db, other)))
    assert ids[0] == ids[1]
    assert len(await db.get_messages("session-" + fence(won).turn_id)) == 2
    (due,) = await other.outbox.due(TELEGRAM)
    begun = await asyncio.gather(
        *(store.outbox.begin(due["id"], token) for store, token in zip((db, other), tokens, strict=True))
    )
    assert sorted(begun) == [False, True]


async def test_a_turn_left_by_one_is_seen_and_taken_by_one(db: SessionDB, other: SessionDB) -> None:
    """What one store commits the other one finds, and two takers do not both win."""
    first = await db.processes.register("gateway")
    row = (await db.inbox.accept(incoming("m:1"))).inbox_id
    await db.turns.claim(request([row], "t1", first), never)
    assert await other.turns.orphaned(TELEGRAM) == []
    await db.processes.remove(first)
    assert [turn["id"] for turn in await other.turns.orphaned(TELEGRAM)] == ["t1"]
    tokens = [await store.processes.register("gateway") for store in (db, other)]
    taken = await asyncio.gather(
        *(store.turns.take_over("t1", token) for store, token in zip((db, other), tokens, strict=True))
    )
    assert sorted(claim.status for claim in taken) == ["busy", "claimed"]
