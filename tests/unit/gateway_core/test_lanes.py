"""Order within a lane, lanes beside each other, and rows that cannot be worked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from gateway import lanes
from gateway.lanes import MAX_ATTEMPTS, MAX_LANES, Lanes
from session_store import InboxRow, InvalidArgument, NewInbox, PlaceRef, SessionDB, StoreFull
from tests.unit.gateway_core.hall import failing

OWN = [("telegram", "main")]


class FakeWorker:
    """Works rows as the test says; without more, marks them done. `seen`: texts in the order they were begun."""

    def __init__(self, db: SessionDB) -> None:
        self.db = db
        self.seen: list[str] = []
        self.aside: list[tuple[str, str]] = []
        self.now = 0
        self.most = 0
        self.work: Callable[[str], Awaitable[bool]] | None = None
        self.enough = asyncio.Event()
        self.wanted = 0

    async def handle(self, row: InboxRow) -> bool:
        """Work one row."""
        text = str(row["payload"]["text"])
        self.seen.append(text)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            worked = await self.work(text) if self.work is not None else True
        finally:
            self.now -= 1
        if worked:
            await self.db.inbox.complete(row["id"])
            self._count()
        return worked

    async def set_aside(self, row: InboxRow, reason: str) -> None:
        """Note it and do it."""
        await self.db.inbox.set_aside(row["id"], reason)
        self.aside.append((str(row["payload"]["text"]), reason))
        self._count()

    def _count(self) -> None:
        self.wanted -= 1
        if self.wanted <= 0:
            self.enough.set()

    async def done(self, rows: int) -> None:
        """Return when so many more rows have been worked or set aside."""
        self.wanted += rows
        if self.wanted > 0:
            self.enough = asyncio.Event()
            async with asyncio.timeout(20):
                await self.enough.wait()


@pytest.fixture
async def worker(db: SessionDB) -> FakeWorker:
    """The worker."""
    return FakeWorker(db)


@pytest.fixture
async def holder(db: SessionDB) -> str:
    """This process."""
    return await db.processes.register("gateway", ["telegram/main"])


@asynccontextmanager
async def dispatching(worker: FakeWorker, holder: str) -> AsyncIterator[Lanes]:
    """Lanes that run inside the context."""
    running = Lanes(worker.db, lambda: OWN, holder, worker)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.run)
        yield running
        running.close()


async def put(db: SessionDB, lane: str, *texts: str) -> None:
    """Rows of one lane, in this order."""
    for text in texts:
        place = PlaceRef("telegram", "main", "dm", lane)
        await db.inbox.accept(NewInbox(place, f"{lane}:{text}", "message", lane, 1.0, {"text": text}, {}))


async def test_rows_of_a_lane_are_worked_in_order(db: SessionDB, worker: FakeWorker, holder: str) -> None:
    """One after another, however many there are."""
    texts = [f"{number:03}" for number in range(60)]
    await put(db, "a", *texts)
    async with dispatching(worker, holder):
        await worker.done(len(texts))
    assert worker.seen == texts
    assert worker.most == 1


async def test_a_lane_that_waits_holds_up_no_other(db: SessionDB, worker: FakeWorker, holder: str) -> None:
    """The slow one is still at its first row when the others are through."""
    go_on = asyncio.Event()

    async def work(text: str) -> bool:
        if text == "slow 1":
            await go_on.wait()
        return True

    worker.work = work
    await put(db, "slow", "slow 1", "slow 2")
    await put(db, "quick", "quick 1", "quick 2")
    async with dispatching(worker, holder):
        await worker.done(2)
        assert worker.seen.count("slow 2") == 0
        assert {"quick 1", "quick 2"} <= set(worker.seen)
        go_on.set()
        await worker.done(2)
    assert worker.seen.index("slow 2") > worker.seen.index("slow 1")


async def test_no_more_lanes_than_the_limit_are_worked_at_once(db: SessionDB, worker: FakeWorker, holder: str) -> None:
    """In a flood of chats the rest waits in the inbox and is worked afterwards."""
    go_on = asyncio.Event()
    full = asyncio.Event()

    async def work(_text: str) -> bool:
        if worker.now == MAX_LANES:
            full.set()
        await go_on.wait()
        return True

    worker.work = work
    many = MAX_LANES + 20
    await asyncio.gather(*(put(db, f"lane {number}", f"{number}") for number in range(many)))
    async with dispatching(worker, holder):
        async with asyncio.timeout(20):
            await full.wait()
        go_on.set()
        await worker.done(many)
    assert worker.most == MAX_LANES


async def test_a_flooded_lane_lets_others_in(
    db: SessionDB, worker: FakeWorker, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one worker only, the second lane is heard long before the first is empty."""
    monkeypatch.setattr(lanes, "MAX_LANES", 1)
    await put(db, "flood", *(f"flood {number}" for number in range(100)))
    await put(db, "other", "hello")
    async with dispatching(worker, holder):
        await worker.done(101)
    assert worker.seen.index("hello") <= 2 * lanes.IN_A_ROW
    flood = [text for text in worker.seen if text.startswith("flood")]
    assert flood == [f"flood {number}" for number in range(100)]


async def test_a_row_that_always_fails_is_set_aside_and_the_next_is_worked(
    db: SessionDB, worker: FakeWorker, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many tries; also when what it raises is a wrong argument of the store."""
    monkeypatch.setattr(lanes, "RETRY_SECONDS", 0.0)

    async def work(text: str) -> bool:
        await asyncio.sleep(0)
        if text == "bad":
            msg = "no good"
            raise RuntimeError(msg)
        if text == "too big":
            raise InvalidArgument("The value is too big to be stored.")
        return True

    worker.work = work
    await put(db, "a", "bad", "good")
    await put(db, "b", "too big")
    async with dispatching(worker, holder):
        await worker.done(3)
    assert worker.seen.count("bad") == MAX_ATTEMPTS
    assert worker.seen.count("too big") == MAX_ATTEMPTS
    assert dict(worker.aside) == {
        "bad": "RuntimeError: no good",
        "too big": "InvalidArgument: The value is too big to be stored.",
    }
    assert worker.seen.count("good") == 1
    assert (await db.inbox.counts())["set_aside"] == 2


async def test_a_row_that_fails_twice_is_worked_in_its_order(
    db: SessionDB, worker: FakeWorker, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes behind it waits meanwhile."""
    monkeypatch.setattr(lanes, "RETRY_SECONDS", 0.0)

    async def work(text: str) -> bool:
        await asyncio.sleep(0)
        if text == "first" and worker.seen.count("first") < 3:
            raise RuntimeError
        return True

    worker.work = work
    await put(db, "a", "first", "second")
    async with dispatching(worker, holder):
        await worker.done(2)
    assert worker.seen == ["first", "first", "first", "second"]
    assert worker.aside == []


async def test_a_failing_store_sets_nothing_aside(
    db: SessionDB, worker: FakeWorker, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it fails; then the row is worked as if nothing had been."""
    monkeypatch.setattr(lanes, "RETRY_SECONDS", 0.0)

    async def work(_text: str) -> bool:
        await asyncio.sleep(0)
        if len(worker.seen) < 10:
            raise StoreFull
        return True

    worker.work = work
    await put(db, "a", "first")
    async with dispatching(worker, holder):
        await worker.done(1)
    assert len(worker.seen) == 10
    assert worker.aside == []


async def test_a_row_that_cannot_be_set_aside_now_does_not_end_the_dispatcher(
    db: SessionDB, worker: FakeWorker, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk at that very moment is tried again."""
    monkeypatch.setattr(lanes, "RETRY_SECONDS", 0.0)

    async def work(text: str) -> bool:
        await asyncio.sleep(0)
        if text == "bad":
            raise RuntimeError
        return True

    worker.work = work
    with failing(db.inbox, "set_aside", 2):
        await put(db, "a", "bad", "good")
        async with dispatching(worker, holder):
            await worker.done(2)
    assert [text for text, _ in worker.aside] == ["bad"]
    assert worker.seen[-1] == "good"


async def test_an_inbox_that_cannot_be_read_is_read_again(
    db: SessionDB, worker: FakeWorker, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dispatcher outlives it."""
    monkeypatch.setattr(lanes, "RETRY_SECONDS", 0.0)
    await put(db, "a", "first")
    with failing(db.inbox, "heads", 3) as calls:
        async with dispatching(worker, holder):
            await worker.done(1)
    assert len(calls) >= 4


async def test_a_held_conversation_is_waited_for_and_its_order_kept(
    db: SessionDB, worker: FakeWorker, holder: str
) -> None:
    """The row stays in the inbox and is taken up when the conversation is free."""
    free = asyncio.Event()
    asked = asyncio.Event()

    async def work(text: str) -> bool:
        await asyncio.sleep(0)
        if text == "first" and not free.is_set():
            asked.set()
            return False
        return True

    worker.work = work
    await put(db, "a", "first", "second")
    async with dispatching(worker, holder):
        async with asyncio.timeout(20):
            await asked.wait()
        assert (await db.inbox.counts())["new"] == 2
        free.set()
        await worker.done(2)
    assert [text for text in worker.seen if text == "second"] == ["second"]
    assert worker.seen[-2:] == ["first", "second"]


async def test_after_close_the_running_row_ends_and_none_is_begun(
    db: SessionDB, worker: FakeWorker, holder: str
) -> None:
    """What waits stays new for the next process."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def work(_text: str) -> bool:
        begun.set()
        await go_on.wait()
        return True

    worker.work = work
    await put(db, "a", "first", "second")
    await put(db, "b", "third")
    async with dispatching(worker, holder) as running:
        async with asyncio.timeout(20):
            while len(worker.seen) < 2:
                await begun.wait()
                await asyncio.sleep(0)
        running.close()
        go_on.set()
    assert sorted(worker.seen) == ["first", "third"]
    assert (await db.inbox.counts())["new"] == 1


async def test_rows_of_other_accounts_and_other_processes_are_left_alone(
    db: SessionDB, worker: FakeWorker, holder: str
) -> None:
    """A terminal's reserved row and a foreign account's row are not ours."""
    other = await db.processes.register("terminal", [])
    place = PlaceRef("telegram", "main", "dm", "a")
    foreign = PlaceRef("telegram", "second", "dm", "a")
    await db.inbox.accept(NewInbox(place, "1", "message", "a", 1.0, {"text": "reserved"}, {}, holder=other))
    await db.inbox.accept(NewInbox(foreign, "2", "message", "b", 1.0, {"text": "foreign"}, {}))
    await put(db, "c", "ours")
    async with dispatching(worker, holder):
        await worker.done(1)
    assert worker.seen == ["ours"]
