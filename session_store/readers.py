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
from collections.abc import Callable
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
        loop = asyncio.get_running_loop()
        seconds = READ_LIMIT if limit is None else limit
        deadline = loop.time() + seconds
        await self._wait_in_line(deadline, seconds)
        whole = True
        try:
            connection = await self._taken()
            interrupting = _Interrupting(connection, loop, deadline)
            try:
                return await connection.hop(_look, self._files, query)
            except asyncio.CancelledError:
                connection.raw.interrupt()
                raise
            except StoreUnreadable:
                whole = False
                await settle(connection.close())
                raise
            finally:
                interrupting.end()
                if whole:
                    self._idle.append(connection)
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

    async def _wait_in_line(self, deadline: float, seconds: float) -> None:
        if not self._slots.locked():  # as mostly; a time limit costs more than the acquiring
            await self._slots.acquire()
            return
        try:
            async with asyncio.timeout_at(deadline):
                await self._slots.acquire()
        except TimeoutError as error:
            raise StoreBusy(f"All readers were busy for {seconds:.1f} s. Try again.") from error

    async def _taken(self) -> HopConnection:
        if self._closed:
            raise StoreClosed
        return self._idle.pop() if self._idle else await HopConnection.open(lambda: open_reader(self._files))


class _Interrupting:
    """Interrupts what a connection runs when the time is over, again and again until the end."""

    def __init__(self, connection: HopConnection, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        self._connection = connection
        self._loop = loop
        self._timer = loop.call_at(deadline, self._interrupt)

    def end(self) -> None:
        self._timer.cancel()

    def _interrupt(self) -> None:
        self._connection.raw.interrupt()
        self._timer = self._loop.call_later(INTERRUPT_EVERY, self._interrupt)


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
