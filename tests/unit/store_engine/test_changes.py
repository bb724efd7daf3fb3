"""Knowing of commits: one's own at once, those of others soon, none invented."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from session_store import SessionDB, StoreClosed
from tests.conftest import Elsewhere


async def test_an_own_commit_wakes_a_waiter(db: SessionDB) -> None:
    """While it waits."""
    waiting = asyncio.create_task(db.changes.wait(30))
    await asyncio.sleep(0)
    await db.create_session("s", "cli")

    assert await waiting


async def test_a_commit_between_two_calls_is_not_missed(db: SessionDB) -> None:
    """And it is told once."""
    await db.changes.wait(0)
    await db.create_session("s", "cli")

    assert await db.changes.wait(30)
    assert not await db.changes.wait(0.3)


async def test_a_commit_of_another_process_wakes_a_waiter(db: SessionDB, elsewhere: Elsewhere) -> None:
    """Found by asking the database."""
    await db.changes.wait(0)
    assert not await db.changes.wait(0.25)
    waiting = asyncio.create_task(db.changes.wait(30))
    await asyncio.to_thread(elsewhere, "INSERT INTO state_meta (key) VALUES ('k')")

    assert await waiting
    assert not await db.changes.wait(0.25)


async def test_a_foreign_commit_while_nobody_waited_is_found_later(db: SessionDB, elsewhere: Elsewhere) -> None:
    """Nobody asks the database while nobody waits, but nothing gets lost by that."""
    await db.changes.wait(0.15)
    await asyncio.to_thread(elsewhere, "INSERT INTO state_meta (key) VALUES ('k')")

    assert await db.changes.wait(30)


async def test_an_operation_that_changed_nothing_wakes_nobody(db: SessionDB) -> None:
    """Waiters look for work; there is none."""
    await db.create_session("s", "cli")
    await db.changes.wait(0)
    waiting = asyncio.create_task(db.changes.wait(0.3))
    await db.end_session("missing", "user_exit")

    assert not await waiting


async def test_each_subscription_sees_each_change(db: SessionDB) -> None:
    """One waiter takes nothing from another."""
    subscriptions = [db.changes.subscribe() for _ in range(3)]
    waiting = [asyncio.create_task(subscription.wait(30)) for subscription in subscriptions]
    await asyncio.sleep(0)
    await db.create_session("s", "cli")

    assert await asyncio.gather(*waiting) == [True] * 3
    assert await asyncio.gather(*(subscription.wait(0) for subscription in subscriptions)) == [False] * 3


async def test_a_new_subscription_has_seen_the_past(db: SessionDB) -> None:
    """It tells of what comes."""
    await db.create_session("s", "cli")

    assert not await db.changes.subscribe().wait(0)


async def test_closing_wakes_waiters(db: SessionDB) -> None:
    """They learn that nothing will come."""
    waiting = asyncio.create_task(db.changes.wait(30))
    await asyncio.sleep(0)
    await db.close()

    with pytest.raises(StoreClosed):
        await waiting


async def test_a_cancelled_waiter_is_forgotten(db: SessionDB) -> None:
    """Others go on."""
    gone, stays = (asyncio.create_task(db.changes.subscribe().wait(30)) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.sleep(0)
    await db.create_session("s", "cli")

    assert await stays
    assert gone.cancelled()


async def test_a_foreign_commit_before_the_first_wait_is_told(home: Path, elsewhere: Elsewhere) -> None:
    """What happens between opening and the first look is not lost."""
    async with SessionDB(home / "state.db") as db:
        await asyncio.to_thread(elsewhere, "INSERT INTO state_meta (key) VALUES ('k')")

        assert await db.changes.wait(30)


async def test_an_own_transaction_does_not_hide_a_foreign_one(db: SessionDB, elsewhere: Elsewhere) -> None:
    """A transaction of ours that changes nothing sees the foreign commit; the waiters are told all the same."""
    await db.changes.wait(0)
    await asyncio.to_thread(elsewhere, "INSERT INTO state_meta (key) VALUES ('k')")
    await db.end_session("missing", "user_exit")

    assert await db.changes.wait(30)


async def test_a_subscription_to_tables_sleeps_through_the_rest(db: SessionDB) -> None:
    """It is woken by what it is about, in whatever statement of whatever operation that was written."""
    about = db.changes.subscribe("control", "messages")
    await db.create_session("s", "cli")
    assert not await about.wait(0)

    await db.append_message("s", "user", "hello")
    assert await about.wait(30)
    assert not await about.wait(0)


async def test_a_statement_that_changed_no_row_is_no_change(db: SessionDB) -> None:
    """An operation may write one table and find nothing to do in another."""
    await db.create_session("s", "cli")
    about = db.changes.subscribe("control")
    await db.delete_session("s")
    assert await db.control.request_stop("s", None) is False
    assert not await about.wait(0)


async def test_a_commit_of_another_process_wakes_every_subscription(db: SessionDB, elsewhere: Elsewhere) -> None:
    """Nobody knows what it wrote."""
    about = db.changes.subscribe("outbox")
    assert not await about.wait(0.25)
    await asyncio.to_thread(elsewhere, "INSERT INTO state_meta (key) VALUES ('k')")

    assert await about.wait(30)


async def test_an_own_commit_does_not_hide_what_another_process_wrote_elsewhere(
    db: SessionDB, elsewhere: Elsewhere
) -> None:
    """The own one is told with its tables; who waits for others is woken by the foreign one that it overtook."""
    about = db.changes.subscribe("outbox")
    await asyncio.to_thread(elsewhere, "INSERT INTO state_meta (key) VALUES ('k')")
    await db.create_session("s", "cli")

    assert await about.wait(30)
    assert not await about.wait(0.25)


async def test_a_ring_reaches_its_subscription_alone(db: SessionDB) -> None:
    """Also between two waits; it is told once."""
    rung, other = db.changes.subscribe("outbox"), db.changes.subscribe("outbox")
    rung.ring()
    assert await rung.wait(30)
    waiting = asyncio.create_task(rung.wait(30))
    await asyncio.sleep(0)
    rung.ring()

    assert await waiting
    assert not await rung.wait(0)
    assert not await other.wait(0)
