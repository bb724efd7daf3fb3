"""Knowing that something was committed, by this process or another one.

Contract: a subscription's `wait` returns True as soon as anything that it is about was committed since its last call
returned. Commits of this process are told at once, with the tables that they wrote, so that a subscription to some
tables sleeps through the rest; those of others are found by asking SQLite every 100 ms while somebody waits (later only
if the writer is itself waiting for the lock), and are told to everybody, since nobody knows what they wrote.
A change is a reason to look, not a promise to find something. Limits: changes are not counted and not described.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from session_store.errors import StoreClosed

__all__ = ["ANYTHING", "Changes", "Subscription"]

POLL: Final = 0.1

#: Stands for every table where the tables of a change are told.
ANYTHING: Final = frozenset({"*"})


class Changes:
    """Tells waiters about commits. `wait` serves one waiter; each further one needs a subscription of its own."""

    def __init__(self, others_committed: Callable[[], Awaitable[bool]]) -> None:
        self._others_committed = others_committed
        self._generation = 0
        #: The generation of the last change of each table, and of everything.
        self._last: dict[str, int] = {}
        self._waiters: dict[asyncio.Future[None], Subscription] = {}
        self._wanted = asyncio.Event()
        self._closed = False
        self._own = Subscription(self)
        self._task = asyncio.create_task(self._poll(), name="threadline-changes")

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109 - the limit is part of the result
        """True as soon as anything was committed since the last call returned; False after `timeout` seconds."""
        return await self._own.wait(timeout)

    def subscribe(self, *tables: str) -> Subscription:
        """A waiter of its own, which has seen everything up to now. tables: what it is about; none: everything."""
        return Subscription(self, tables)

    def generation(self, tables: Collection[str]) -> int:
        """Grows with every change of these tables that was noticed; no tables: with every change."""
        if not tables:
            return self._generation
        return max(self._last.get(table, 0) for table in ("*", *tables))

    def note(self, tables: Collection[str] = ANYTHING) -> None:
        """These tables were changed: wake who waits for one of them."""
        self._generation += 1
        self._last |= dict.fromkeys(tables, self._generation)
        for waiter, subscription in self._waiters.items():
            if subscription.changed and not waiter.done():
                waiter.set_result(None)

    async def next(self, subscription: Subscription, seconds: float) -> None:
        """Wait until a subscription is woken, at most so long. Raises `StoreClosed` when the store is closed."""
        if self._closed:
            raise StoreClosed
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds, _wake, waiter)
        self._waiters[waiter] = subscription
        self._wanted.set()
        try:
            await waiter
        finally:
            timer.cancel()
            del self._waiters[waiter]
        if self._closed:
            raise StoreClosed

    def wake(self, subscription: Subscription) -> None:
        """End the wait of one subscription."""
        for waiter, owner in self._waiters.items():
            if owner is subscription:
                _wake(waiter)

    async def close(self) -> None:
        """Stop asking and wake everybody. Safe to repeat."""
        self._closed = True
        self._task.cancel()
        self.note()
        await asyncio.wait({self._task})

    async def _poll(self) -> None:
        while True:
            if not self._waiters:
                self._wanted.clear()
                await self._wanted.wait()
            await asyncio.sleep(POLL)
            if await self._others_committed():
                self.note()


class Subscription:
    """One waiter's view of the changes."""

    def __init__(self, changes: Changes, tables: Collection[str] = ()) -> None:
        self._changes = changes
        self._tables = tables
        self._seen = changes.generation(tables)
        self._rung = False

    @property
    def changed(self) -> bool:
        """Whether there is a reason to look that the last `wait` has not told of."""
        return self._rung or self._changes.generation(self._tables) != self._seen

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109 - the limit is part of the result
        """True as soon as there is a reason to look since the last call returned; False after `timeout` seconds."""
        if not self.changed:
            await self._changes.next(self, timeout)
        changed = self.changed
        self._seen = self._changes.generation(self._tables)
        self._rung = False
        return changed

    def ring(self) -> None:
        """Give this subscription alone a reason to look."""
        self._rung = True
        self._changes.wake(self)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
