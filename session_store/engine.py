"""The door to the database: `write` an operation, `read` a query, know of `changes`.

Contract: everything else in the store goes through the protocol `Engine`. `write` resolves after the COMMIT, `read`
runs on a reader; both take pure functions. Opening and closing are safe under cancellation; closing commits what was
submitted, closes all connections and ends all threads.
Failure: StoreClosed before `open` and after `close`, and in a forked child, which must not use the connections it got.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from typing import Protocol, TypeVar

from session_store.batch import Committer
from session_store.changes import Changes
from session_store.driver import HopConnection, driver, settle
from session_store.errors import StoreClosed
from session_store.files import StoreFiles, default_path
from session_store.opening import open_writer
from session_store.readers import Readers
from session_store.ticket import Ticket
from session_store.tx import Rx, Tx
from session_store.upkeep import Upkeep
from session_store.writer import Writer

__all__ = ["Engine", "StoreEngine"]

T = TypeVar("T")


class Engine(Protocol):
    """What the classes of the store need: nothing but to write and to read."""

    async def write(self, op: Callable[[Tx], T], *, size: int = 0) -> T:
        """Commit one operation. size: bytes of its payload, for back-pressure."""

    async def read(self, query: Callable[[Rx], T], *, timeout: float | None = None) -> T:  # noqa: ASYNC109 - SQLite is stopped, not only awaited
        """Run one query. timeout: seconds after which it is interrupted (StoreBusy)."""


class StoreEngine:
    """The engine over a database file. Not yet open when made."""

    def __init__(self, path: str | os.PathLike[str] | None = None, *, redact: bool = False) -> None:
        self._path = path
        self._redact = redact
        self._pid = -1
        self._open: _Open | None = None
        self._changing = asyncio.Lock()

    async def open(self) -> None:
        """Open or create the database; see opening.py for what is refused."""
        async with self._changing:
            if self._open is None:
                self._open = await _Open.start(self._path, redact=self._redact)
                self._pid = os.getpid()

    async def close(self) -> None:
        """Commit what was submitted and close everything. Safe to repeat; a cancellation is raised afterwards."""
        if self._open is not None and self._pid == os.getpid():
            await settle(self._close())

    async def _close(self) -> None:
        async with self._changing:
            opened, self._open = self._open, None
            if opened is not None:
                await opened.stop()

    async def write(self, op: Callable[[Tx], T], *, size: int = 0) -> T:
        """Commit one operation; see `Engine`."""
        result: T = await self._opened().writer.submit(op, size)
        return result

    async def read(self, query: Callable[[Rx], T], *, timeout: float | None = None) -> T:  # noqa: ASYNC109 - see `Engine`
        """Run one query; see `Engine`."""
        return await self._opened().readers.read(query, timeout)

    @property
    def changes(self) -> Changes:
        """Who waits for commits asks here."""
        return self._opened().changes

    def _opened(self) -> _Open:
        if self._open is None:
            raise StoreClosed
        if self._pid != os.getpid():
            raise StoreClosed("The store was opened before this process forked. Open it again in this process.")
        return self._open


class _Open:
    """What belongs to one opening of the store."""

    def __init__(self, files: StoreFiles, committer: Committer, connection: HopConnection) -> None:
        self._committer = committer
        self._connection = connection
        self.readers = Readers(files)
        self.changes = Changes(self._others_committed)
        self.writer = Writer(connection, committer, Upkeep(files, committer), self.changes.note)

    @classmethod
    async def start(cls, path: str | os.PathLike[str] | None, *, redact: bool) -> _Open:
        """Open the database on a thread of its own."""
        opening = _Opening(path, redact=redact)
        try:
            connection = await HopConnection.open(opening)
        except BaseException:
            opening.abandon()
            raise
        return cls(opening.files, opening.committer, connection)

    async def stop(self) -> None:
        """Drain and close, readers first: the last connection to close is the one that holds the ticket."""
        try:
            await self.writer.close()
            await self.changes.close()
            await self.readers.close()
            await self._connection.hop(self._committer.close)
        finally:
            await self._connection.close()

    async def _others_committed(self) -> bool:
        changed = await self._connection.hop(self._committer.others_committed)
        if changed:
            self.writer.nudge()
        return changed


class _Opening:
    """Opens the writer connection, on its thread; keeps what else is made on the way."""

    files: StoreFiles
    committer: Committer

    def __init__(self, path: str | os.PathLike[str] | None, *, redact: bool) -> None:
        self._path = path
        self._redact = redact
        self._ticket: Ticket | None = None

    def __call__(self) -> sqlite3.Connection:
        self.files = StoreFiles(default_path() if self._path is None else self._path)
        self._ticket = Ticket(self.files.lock, patient=driver().safe_mode)
        raw = open_writer(self.files, self._ticket)
        self.committer = Committer(self.files, self._ticket, raw, redact=self._redact)
        return raw

    def abandon(self) -> None:
        """Let go of what was made, after a failure or a cancellation; the connection is closed already."""
        if self._ticket is not None:
            self._ticket.close()
