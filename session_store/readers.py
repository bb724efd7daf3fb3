"""The readers of a process: two connections that cannot write, handed out first come, first served.

Contract: one hop per query, one consistent view for its time, no cursor outlives it. Whoever waits longest is next, so
a busy caller cannot starve others. A query that takes longer than its time limit is interrupted: StoreBusy. A query
whose caller was cancelled is interrupted too.
Failure: `StoreLost` when the path no longer leads to the file that was opened. A connection that met an error of the
disk is thrown away; the next query opens a new one.
Limits: Python code inside a query is not interrupted, only SQLite is; queries must carry a LIMIT.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from session_store.driver import HopConnection, driver, settle, store_error
from session_store.errors import StoreBusy, StoreClosed, StoreUnreadable
from session_store.files import StoreFiles
from session_store.opening import open_reader
from session_store.tx import Rx

__all__ = ["Readers"]

T = TypeVar("T")

POOL: Final = 2
#: Seconds for the wait and the query together, where the caller sets no limit.
READ_LIMIT: Final = 30.0
#: SQLite forgets an interrupt that meets no running statement, so it is repeated until the query has ended.
INTERRUPT_EVERY: Final = 0.05


class Readers:
    """A pool of read-only connections, opened when they are first needed."""

    def __init__(self, files: StoreFiles) -> None:
        self._files = files
        self._idle: list[HopConnection] = []
        self._slots = asyncio.Semaphore(POOL)  # wakes its waiters in the order they came
        self._closed = False

    async def read(self, query: Callable[[Rx], T], limit: float | None) -> T:
        """Run `query` on the next free connection, within `limit` seconds."""
        seconds = READ_LIMIT if limit is None else limit
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(deadline):
                await self._slots.acquire()
        except TimeoutError as error:
            raise StoreBusy(f"All readers were busy for {seconds:.1f} s. Try again.") from error
        try:
            async with self._connection() as connection, _interrupted_at(deadline, connection):
                return await connection.hop(_look, self._files, query)
        finally:
            self._slots.release()

    async def close(self) -> None:
        """Close the connections; queries that run are waited for. Safe to repeat."""
        self._closed = True
        for _ in range(POOL):
            await self._slots.acquire()
        while self._idle:
            await self._idle.pop().close()
        for _ in range(POOL):
            self._slots.release()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[HopConnection]:
        if self._closed:
            raise StoreClosed
        connection = self._idle.pop() if self._idle else await HopConnection.open(lambda: open_reader(self._files))
        try:
            yield connection
        except StoreUnreadable:
            await settle(connection.close())
            raise
        except BaseException:
            self._idle.append(connection)
            raise
        self._idle.append(connection)


@asynccontextmanager
async def _interrupted_at(deadline: float, connection: HopConnection) -> AsyncIterator[None]:
    """Interrupt what the connection runs when the time is over, again and again until the block is left."""
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []

    def interrupt() -> None:
        connection.raw.interrupt()
        timers[:] = [loop.call_later(INTERRUPT_EVERY, interrupt)]

    timers.append(loop.call_at(deadline, interrupt))
    try:
        yield
    except asyncio.CancelledError:
        connection.raw.interrupt()
        raise
    finally:
        timers[0].cancel()


def _look(raw: sqlite3.Connection, files: StoreFiles, query: Callable[[Rx], T]) -> T:
    files.verify()
    try:
        raw.execute("BEGIN")
        try:
            return query(Rx(raw))
        finally:
            if raw.in_transaction:
                raw.execute("ROLLBACK")
    except (driver().module.Error, OverflowError, StopIteration) as error:
        raise store_error(error) from error
