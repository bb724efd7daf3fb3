"""Knowing that something was committed, by this process or another one.

Contract: a subscription's `wait` returns True as soon as anything was committed since its last call returned. Commits
of this process are told at once; those of others are found by asking SQLite every 100 ms while somebody waits (later
only if the writer is itself waiting for the lock).
A change is a reason to look, not a promise to find something. Limits: changes are not counted and not described.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from session_store.errors import StoreClosed

__all__ = ["Changes", "Subscription"]

POLL: Final = 0.1


class Changes:
    """Tells waiters about commits. `wait` serves one waiter; each further one needs a subscription of its own."""

    def __init__(self, others_committed: Callable[[], Awaitable[bool]]) -> None:
        self._others_committed = others_committed
        self._generation = 0
        self._waiters: set[asyncio.Future[None]] = set()
        self._wanted = asyncio.Event()
        self._closed = False
        self._own = Subscription(self)
        self._task = asyncio.create_task(self._poll(), name="threadline-changes")

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109 - the limit is part of the result
        """True as soon as anything was committed since the last call returned; False after `timeout` seconds."""
        return await self._own.wait(timeout)

    def subscribe(self) -> Subscription:
        """A waiter of its own, which has seen everything up to now."""
        return Subscription(self)

    @property
    def generation(self) -> int:
        """Grows with every change that was noticed."""
        return self._generation

    def note(self) -> None:
        """Something was committed: wake everybody."""
        self._generation += 1
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def next(self, timeout: float) -> None:  # noqa: ASYNC109 - the limit is part of the result
        """Wait for the next change, at most `timeout` seconds. Raises `StoreClosed` when the store is closed."""
        if self._closed:
            raise StoreClosed
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        self._wanted.set()
        try:
            await asyncio.wait({waiter}, timeout=timeout)
        finally:
            self._waiters.discard(waiter)
            waiter.cancel()
        if self._closed:
            raise StoreClosed

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

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._seen = changes.generation

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109 - the limit is part of the result
        """True as soon as anything was committed since the last call returned; False after `timeout` seconds."""
        if self._changes.generation == self._seen:
            await self._changes.next(timeout)
        changed = self._changes.generation != self._seen
        self._seen = self._changes.generation
        return changed
