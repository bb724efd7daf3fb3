"""The single writer: group commits, isolation of operations, back-pressure, cancellation."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from session_store import InvalidArgument, NotFound, StoreBusy, StoreClosed, StoreError, StoreNewer
from session_store import writer as writer_module
from session_store.engine import StoreEngine
from session_store.tx import Rx, Tx
from tests.conftest import Elsewhere
from tests.unit.store_engine.conftest import Hold

PUT = "INSERT INTO state_meta (key, value) VALUES (?, ?)"
KEYS = "SELECT key FROM state_meta WHERE key LIKE 'k%' ORDER BY rowid LIMIT 5000"


def put(key: str, value: str = "") -> Callable[[Tx], float]:
    """An operation that stores one row and tells the time of its transaction."""

    def apply(tx: Tx) -> float:
        tx.insert(PUT, (key, value))
        return tx.now

    return apply


async def keys(engine: StoreEngine) -> list[str]:
    """All rows that the tests stored, in order."""
    return await engine.read(lambda rx: [row["key"] for row in rx.all(KEYS)])


async def settled(work: list[asyncio.Task[Any]]) -> list[Any]:
    """Results and errors of all tasks."""
    return await asyncio.gather(*work, return_exceptions=True)


def start(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """A task of its own, for calls that overlap."""
    return asyncio.create_task(work)


async def steps(number: int = 5) -> None:
    """Let the other tasks run as far as they get without the database thread."""
    for _ in range(number):
        await asyncio.sleep(0)


async def test_a_result_means_that_other_processes_see_it(engine: StoreEngine, elsewhere: Elsewhere) -> None:
    """`write` returns after the commit, never before."""
    await engine.write(put("k1", "v"))

    assert elsewhere("SELECT value FROM state_meta WHERE key = 'k1'") == [{"value": "v"}]


async def test_of_twelve_operations_the_failing_one_fails_alone(engine: StoreEngine, held: Hold) -> None:
    """They share one transaction; the failed one leaves nothing of itself, the others are committed."""

    def fails_late(tx: Tx) -> None:
        put("k-half")(tx)
        raise NotFound("no such thing")

    async with held():
        work = [start(engine.write(fails_late if number == 6 else put(f"k{number:02}"))) for number in range(12)]
        await steps()
    results = await settled(work)

    assert [type(result) for result in results] == [float] * 6 + [NotFound] + [float] * 5
    assert len({result for result in results if isinstance(result, float)}) == 1
    assert await keys(engine) == [f"k{number:02}" for number in range(12) if number != 6]


@pytest.mark.parametrize(
    ("operation", "kind", "says"),
    [
        (lambda tx: tx.run("INSERT INTO state_meta (key) SELECT key FROM state_meta"), StoreError, "UNIQUE"),
        (lambda tx: tx.insert(PUT, ("k", 2**70)), InvalidArgument, "too large"),
        (lambda tx: tx.run("NOT SQL"), StoreError, "syntax error"),
        (lambda _: os.environ["NO_SUCH_VARIABLE"], KeyError, "NO_SUCH"),
        (lambda _: next(iter(())), RuntimeError, "StopIteration"),
    ],
)
async def test_an_operation_gets_its_own_error(
    engine: StoreEngine, operation: Callable[[Tx], Any], kind: type[Exception], says: str
) -> None:
    """Errors of the database come as ours, bugs as what they are; the writer goes on."""
    with pytest.raises(kind, match=says):
        await engine.write(operation)

    await engine.write(put("k1"))
    assert await keys(engine) == ["k1"]


async def test_operations_are_committed_in_the_order_of_submission(engine: StoreEngine) -> None:
    """Also over many batches."""
    await settled([start(engine.write(put(f"k{number:04}"))) for number in range(1500)])

    assert await keys(engine) == [f"k{number:04}" for number in range(1500)]


async def test_what_comes_during_a_commit_shares_the_next_one(engine: StoreEngine, held: Hold) -> None:
    """Batches form by themselves and hold at most 256 operations."""
    async with held():
        work = [start(engine.write(put(f"k{number}"))) for number in range(300)]
        await steps()
    moments = await settled(work)

    sizes = [moments.count(moment) for moment in dict.fromkeys(moments)]
    assert max(sizes) <= 256
    assert len(sizes) < 30


async def test_a_batch_is_bounded_in_bytes(engine: StoreEngine, held: Hold) -> None:
    """Two operations of 600 KiB do not share a transaction, so no lock is held for long."""
    async with held():
        work = [start(engine.write(put(f"k{number}"), size=600 * 1024)) for number in range(4)]
        await steps()

    assert len(set(await settled(work))) == 4


async def test_a_batch_is_bounded_in_time(engine: StoreEngine, held: Hold) -> None:
    """Slow operations do not add up under one lock; those left over come next, in order."""

    def slow(key: str) -> Callable[[Tx], float]:
        def apply(tx: Tx) -> float:
            time.sleep(0.03)  # longer than a batch may take; runs on the database thread
            return put(key)(tx)

        return apply

    async with held():
        work = [start(engine.write(slow(f"k{number}"))) for number in range(3)]
        await steps()

    assert len(set(await settled(work))) == 3
    assert await keys(engine) == ["k0", "k1", "k2"]


async def test_a_full_queue_makes_callers_wait_in_line(engine: StoreEngine, held: Hold) -> None:
    """Nobody is refused and nobody overtakes, the queue just does not grow."""
    async with held():
        work = [start(engine.write(put(f"k{number:04}"))) for number in range(1030)]
        await steps()
        last = start(engine.write(put("k9999")))
        await steps()
        assert not last.done()
    await settled([*work, last])

    assert await keys(engine) == [*(f"k{number:04}" for number in range(1030)), "k9999"]


async def test_a_value_larger_than_the_whole_queue_gets_its_turn(engine: StoreEngine, held: Hold) -> None:
    """It waits until it is alone; what comes after it waits behind it."""
    async with held():
        work = [start(engine.write(put("k1"), size=40 * 1024 * 1024)), start(engine.write(put("k2"), size=10))]
        await steps()
    await settled(work)

    assert await keys(engine) == ["k1", "k2"]


async def test_no_room_in_time_is_busy(engine: StoreEngine, held: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller is told after its time, and nothing of it is written."""
    async with held():
        work = [start(engine.write(put(f"k{number:04}"))) for number in range(1023)]
        await steps()
        monkeypatch.setattr(writer_module, "WAIT_LIMIT", 0.01)
        with pytest.raises(StoreBusy, match="nothing was written"):
            await engine.write(put("k-late"))
    await settled(work)

    assert "k-late" not in await keys(engine)
    assert len(await keys(engine)) == 1023


async def test_an_operation_that_waited_too_long_is_not_written_later(
    engine: StoreEngine, held: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Busy means that nothing was written, also for what was already in the queue."""
    async with held():
        monkeypatch.setattr(writer_module, "WAIT_LIMIT", 0.01)
        late = start(engine.write(put("k-late")))
        await asyncio.sleep(0.05)
    with pytest.raises(StoreBusy):
        await late

    assert await keys(engine) == []


async def test_a_cancelled_caller_does_not_take_its_operation_back(engine: StoreEngine, held: Hold) -> None:
    """Submitted is submitted: it commits, and nothing is broken for the next one."""
    async with held():
        queued = start(engine.write(put("k1")))
        await steps()
        queued.cancel()
        await steps()
    await engine.write(put("k2"))

    assert queued.cancelled()
    assert await keys(engine) == ["k1", "k2"]


async def test_cancelling_while_the_operation_runs_breaks_nothing(engine: StoreEngine) -> None:
    """The transaction is one hop, so no cancellation can leave it open."""
    loop = asyncio.get_running_loop()
    task: asyncio.Task[Any]

    def cancelled_inside(tx: Tx) -> None:
        loop.call_soon_threadsafe(task.cancel)
        put("k1")(tx)

    task = start(engine.write(cancelled_inside))
    await settled([task])
    await engine.write(put("k2"))

    assert await keys(engine) == ["k1", "k2"]


async def test_a_caller_cancelled_in_line_never_submitted(engine: StoreEngine, held: Hold) -> None:
    """Whoever still waits for room can leave, and its place goes to the next."""
    async with held():
        work = [start(engine.write(put(f"k{number:04}"))) for number in range(1023)]
        await steps()
        leaving, staying = start(engine.write(put("k-gone"))), start(engine.write(put("k-stays")))
        await steps()
        leaving.cancel()
        await steps()
    await settled([*work, staying])

    assert leaving.cancelled()
    assert (await keys(engine))[-1] == "k-stays"
    assert "k-gone" not in await keys(engine)


async def test_room_that_came_with_the_cancellation_is_given_on(engine: StoreEngine, held: Hold) -> None:
    """A place in the queue that its owner can no longer use must not be lost."""
    for _ in range(3):
        async with held():
            work = [start(engine.write(lambda _: None)) for _ in range(1023)]
            await steps()
            waiting = [start(engine.write(lambda _: None)) for _ in range(40)]
            await steps()
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await settled([*work, *waiting])

    async with held():
        full = [start(engine.write(put(f"k{number:04}"))) for number in range(1023)]
        await steps()
    await settled(full)
    assert len(await keys(engine)) == 1023


async def test_closing_commits_what_was_submitted(engine: StoreEngine, held: Hold, elsewhere: Elsewhere) -> None:
    """Intake stops at once, the queue is drained."""
    async with held():
        work = [start(engine.write(put(f"k{number}"))) for number in range(20)]
        await steps()
        closing = start(engine.close())
        await steps()
        with pytest.raises(StoreClosed):
            await engine.write(put("k-late"))
    await settled([*work, closing])

    assert elsewhere("SELECT count(*) AS n FROM state_meta WHERE key LIKE 'k%'") == [{"n": 20}]


async def test_callers_without_room_are_told_at_closing(engine: StoreEngine, held: Hold) -> None:
    """They were not submitted, so they are not drained."""
    async with held():
        work = [start(engine.write(lambda _: None)) for _ in range(1023)]
        await steps()
        waiting = start(engine.write(put("k-late")))
        await steps()
        closing = start(engine.close())
        with pytest.raises(StoreClosed):
            await waiting
    await settled([*work, closing])


async def test_a_newer_form_of_the_database_stops_the_writing(engine: StoreEngine, elsewhere: Elsewhere) -> None:
    """Another process migrated the file while this one ran: it must not write with old ideas; reading goes on."""
    await engine.write(put("k1"))
    elsewhere("PRAGMA user_version = 99")

    for _ in range(2):
        with pytest.raises(StoreNewer, match="Upgrade and restart"):
            await engine.write(put("k2"))

    assert await keys(engine) == ["k1"]


async def test_a_database_thread_knows_the_time_of_both_clocks(engine: StoreEngine) -> None:
    """Wall clock for people, boot clock for leases."""
    wall, boot = await engine.write(lambda tx: (tx.now, tx.boot_now))

    assert abs(wall - time.time()) < 60
    assert 0 < boot <= time.clock_gettime(time.CLOCK_BOOTTIME)


async def test_a_read_after_a_write_sees_it(engine: StoreEngine) -> None:
    """Every time, not only mostly."""

    def count(rx: Rx) -> int:
        return int(rx.value("SELECT count(*) FROM state_meta WHERE key LIKE 'k%'"))

    for number in range(50):
        await engine.write(put(f"k{number}"))
        assert await engine.read(count) == number + 1
