"""Which SQLite speaks to the file, and what its errors mean.

Contract: `driver()` chooses one SQLite library per process and never changes its mind: the standard library's if it has
the fix of the WAL-reset bug, else pysqlite3, else the standard library in *safe mode* (checkpoints only under the
ticket, no write without it). `connect` is the only place that opens a database; `HopConnection` runs a function on a
connection's own thread in one hop; `store_error` turns what the library raises into our errors, cause kept.
Limits: two SQLite libraries on one file in one process drop each other's locks, so nothing else here may import one.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Concatenate, Final, Literal, ParamSpec, TypeAlias, TypeVar
from urllib.parse import quote

import aiosqlite

from session_store.errors import (
    IndexDamaged,
    InvalidArgument,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreLost,
    StoreReadOnly,
    StoreUnreadable,
)

__all__ = ["Driver", "HopConnection", "Mode", "connect", "driver", "has_wal_reset_fix", "settle", "store_error"]

P = ParamSpec("P")
T = TypeVar("T")
Mode: TypeAlias = Literal["rwc", "rw", "ro", "immutable"]
Version: TypeAlias = tuple[int, int, int]

_LOG = logging.getLogger(__name__)
#: The bug was mended in 3.51.3 and in these older branches from the given release on.
_FIXED_FROM: Final[Version] = (3, 51, 3)
_FIXED_BRANCHES: Final[tuple[Version, ...]] = ((3, 50, 7), (3, 44, 6))
_STATEMENTS_KEPT: Final = 512
#: Primary result codes; the high bytes of an extended code say more about the same thing.
_PRIMARY: Final = 0xFF
_CORRUPT_VTAB: Final = 11 | (1 << 8)
_READONLY_DBMOVED: Final = 8 | (4 << 8)
_ERRORS: Final[dict[int, tuple[type[StoreError], str | None]]] = {
    3: (StoreUnreadable, None),  # PERM
    5: (StoreBusy, None),  # BUSY
    6: (StoreBusy, None),  # LOCKED
    7: (StoreError, "There was not enough memory. Nothing was written; try again."),  # NOMEM
    8: (StoreReadOnly, None),  # READONLY
    9: (StoreBusy, "The query took too long and was stopped. Narrow it down or try again."),  # INTERRUPT
    10: (StoreUnreadable, "The disk reported an error. Check the disk; work goes on by itself afterwards."),  # IOERR
    11: (StoreDamaged, None),  # CORRUPT
    13: (StoreFull, None),  # FULL
    14: (StoreUnreadable, None),  # CANTOPEN
    15: (StoreBusy, None),  # PROTOCOL: the race of several first opens
    18: (InvalidArgument, "The value is too big to be stored."),  # TOOBIG
    26: (StoreForeign, None),  # NOTADB
}


@dataclass(frozen=True, slots=True)
class Driver:
    """The chosen library. safe_mode: its SQLite can damage a file when checkpoints race, so they must not."""

    name: str
    module: ModuleType
    version: Version
    safe_mode: bool


def has_wal_reset_fix(version: Version) -> bool:
    """Whether this SQLite can checkpoint from several connections at once without damage."""
    return version >= _FIXED_FROM or any(fix <= version < (3, fix[1] + 1, 0) for fix in _FIXED_BRANCHES)


@functools.cache
def driver() -> Driver:
    """The SQLite library of this process, chosen at the first call."""
    chosen = _standard()
    if chosen.safe_mode:
        chosen = _pysqlite3() or chosen
    version = ".".join(map(str, chosen.version))
    _LOG.info("SQLite %s through %s%s", version, chosen.name, ", safe mode" if chosen.safe_mode else "")
    return chosen


def _standard() -> Driver:
    version = sqlite3.sqlite_version_info
    return Driver("sqlite3", sqlite3, version, safe_mode=not has_wal_reset_fix(version))


def _pysqlite3() -> Driver | None:
    try:
        module = importlib.import_module("pysqlite3.dbapi2")
    except ImportError:
        return None
    version: Version = module.sqlite_version_info
    return Driver("pysqlite3", module, version, safe_mode=False) if has_wal_reset_fix(version) else None


def connect(path: Path, mode: Mode, *, mode_of: Path | None = None) -> sqlite3.Connection:
    """Open a database file; to be called on the thread that will use the connection.

    mode: rwc makes a missing file, rw does not, ro never writes, immutable touches neither locks nor side files.
    mode_of: a file whose permissions a newly made database takes over. Raises the library's errors.
    """
    options = "immutable=1" if mode == "immutable" else f"mode={mode}"
    if mode_of is not None:
        options += f"&modeof={quote(str(mode_of))}"
    connection: sqlite3.Connection = driver().module.connect(
        f"file:{quote(str(path))}?{options}", uri=True, isolation_level=None, cached_statements=_STATEMENTS_KEPT
    )
    return connection


def store_error(error: Exception) -> Exception:
    """Our error for what the library raised, with the cause kept; other exceptions come back as they are."""
    if isinstance(error, StopIteration):  # cannot pass through a future
        return RuntimeError("An operation of the store raised StopIteration.")
    if isinstance(error, OverflowError):
        ours: StoreError = InvalidArgument("A number is too large to be stored: at most 2^63 - 1.")
    elif isinstance(error, driver().module.Error):
        code: int = getattr(error, "sqlite_errorcode", 0)
        ours = _by_code(code, error)
    else:
        return error
    ours.__cause__ = error
    return ours


def _by_code(code: int, error: Exception) -> StoreError:
    if code == _CORRUPT_VTAB:
        return IndexDamaged()
    if code == _READONLY_DBMOVED:
        return StoreLost()
    kind, message = _ERRORS.get(code & _PRIMARY, (StoreError, f"The store refused this: {error}."))
    return kind(message)


class HopConnection(aiosqlite.Connection):
    """An aiosqlite connection that runs a whole function on its thread: one hop, however many statements."""

    _stopping: asyncio.Future[None] | None = None

    async def hop(
        self, function: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `function(raw, ...)` on the connection's thread. A cancelled wait does not stop the function."""
        result: T = await self._execute(function, self._conn, *args, **kwargs)  # type: ignore[no-untyped-call]
        return result

    @property
    def raw(self) -> sqlite3.Connection:
        """The library's connection. Only `interrupt` may be called on it from another thread."""
        return self._conn

    @classmethod
    async def open(cls, connector: Callable[[], sqlite3.Connection]) -> HopConnection:
        """Start the thread and connect. Cancelled meanwhile, it waits for the connector and closes what came."""
        connection = cls(connector, iter_chunk_size=64)
        try:
            await settle(_started(connection))
        except BaseException:
            await settle(connection.close())
            raise
        return connection

    async def close(self) -> None:
        """Close, and wait for the thread to end: after a failed opening too, where aiosqlite only tells it to."""
        await super().close()
        if self._stopping is not None:
            await self._stopping

    def stop(self) -> asyncio.Future[None] | None:
        """Tell the thread to close the connection and end."""
        self._stopping = super().stop()
        return self._stopping


async def _started(connection: HopConnection) -> None:
    _ = await connection


async def settle(work: Awaitable[T]) -> T:
    """Await `work` to its end, also when the caller is cancelled; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # seen, so that it is not reported as forgotten
        raise cancelled
    return task.result()
