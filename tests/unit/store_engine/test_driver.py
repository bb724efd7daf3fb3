"""The choice of the SQLite library, one-hop calls, and what its errors become."""

from __future__ import annotations

import asyncio
import importlib.metadata
import sqlite3
import threading
from pathlib import Path

import pytest

from session_store import driver as driver_module
from session_store.driver import HopConnection, connect, driver, has_wal_reset_fix, settle, store_error
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


@pytest.mark.parametrize(
    ("version", "fixed"),
    [
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 0), False),
        ((3, 50, 4), False),
        ((3, 50, 7), True),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 53, 4), True),
    ],
)
def test_versions_with_the_checkpoint_fix_are_known(version: tuple[int, int, int], fixed: bool) -> None:  # noqa: FBT001 - a parametrised value
    """Only SQLite releases that carry the fix count as safe."""
    assert has_wal_reset_fix(version) is fixed


def test_the_choice_is_made_once() -> None:
    """Two libraries in one process would drop each other's locks, so the first choice stays."""
    assert driver() is driver()
    assert driver().safe_mode is not has_wal_reset_fix(driver().version)


@pytest.mark.parametrize(
    ("standard", "other", "name", "safe_mode"),
    [
        ((3, 51, 3), (3, 53, 4), "sqlite3", False),
        ((3, 40, 1), (3, 53, 4), "pysqlite3", False),
        ((3, 40, 1), (3, 51, 1), "sqlite3", True),
        ((3, 40, 1), None, "sqlite3", True),
    ],
)
def test_the_standard_library_comes_first_and_safe_mode_last(
    monkeypatch: pytest.MonkeyPatch,
    standard: tuple[int, int, int],
    other: tuple[int, int, int] | None,
    name: str,
    safe_mode: bool,  # noqa: FBT001 - a parametrised value
) -> None:
    """A good standard library wins, else a good pysqlite3, else the standard library with its checkpoints guarded."""

    class Other:
        sqlite_version_info = other

    def find(_: str) -> type[Other]:
        if other is None:
            raise ImportError
        return Other

    monkeypatch.setattr(sqlite3, "sqlite_version_info", standard)
    monkeypatch.setattr(driver_module.importlib, "import_module", find)  # type: ignore[attr-defined]

    chosen = driver.__wrapped__()

    assert (chosen.name, chosen.safe_mode) == (name, safe_mode)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (5, StoreBusy),
        (517, StoreBusy),
        (8, StoreReadOnly),
        (1032, StoreLost),
        (10, StoreUnreadable),
        (778, StoreUnreadable),
        (11, StoreDamaged),
        (267, IndexDamaged),
        (13, StoreFull),
        (14, StoreUnreadable),
        (26, StoreForeign),
        (18, InvalidArgument),
        (19, StoreError),
    ],
)
def test_each_kind_of_failure_has_its_error(code: int, kind: type[StoreError]) -> None:
    """The library's result codes become errors that people can act on, with the cause kept."""
    raised: Exception = driver().module.OperationalError("as SQLite says it")
    raised.sqlite_errorcode = code  # type: ignore[attr-defined]

    ours = store_error(raised)

    assert type(ours) is kind
    assert ours.__cause__ is raised


def test_numbers_too_large_for_sqlite_are_a_wrong_argument() -> None:
    """An integer beyond 64 bits is the caller's mistake, told as one."""
    connection = connect(Path(":memory:"), "rwc")
    with pytest.raises(OverflowError) as raised:
        connection.execute("SELECT ?", (2**63,))
    connection.close()

    assert isinstance(store_error(raised.value), InvalidArgument)


def test_errors_that_are_not_the_drivers_stay_as_they_are() -> None:
    """A bug in an operation is not dressed up as a failure of the store."""
    error = KeyError("x")

    assert store_error(error) is error


async def test_a_hop_runs_a_whole_function_on_the_connections_thread(tmp_path: Path) -> None:
    """However many statements: one hop, one thread, and not the loop's."""
    connection = await HopConnection.open(lambda: connect(tmp_path / "x.db", "rwc"))

    def work(raw: sqlite3.Connection) -> tuple[int, int]:
        raw.execute("CREATE TABLE t (x)")
        raw.execute("INSERT INTO t VALUES (7)")
        return raw.execute("SELECT x FROM t").fetchone()[0], threading.get_ident()

    try:
        value, first = await connection.hop(work)
        second = await connection.hop(lambda _: threading.get_ident())
    finally:
        await connection.close()

    assert value == 7
    assert first == second != threading.get_ident()


async def test_no_thread_is_left_when_opening_is_cancelled(tmp_path: Path) -> None:
    """The worker thread would keep the interpreter alive, so a cancelled opening closes what it opened."""
    entered, leave = threading.Event(), threading.Event()
    threads = set(threading.enumerate())

    def slow() -> sqlite3.Connection:
        entered.set()
        leave.wait(10)
        return connect(tmp_path / "x.db", "rwc")

    opening = asyncio.create_task(HopConnection.open(slow))
    await asyncio.to_thread(entered.wait, 10)
    opening.cancel()
    leave.set()
    with pytest.raises(asyncio.CancelledError):
        _ = await opening

    for thread in set(threading.enumerate()) - threads:
        if "connection_worker" in thread.name:
            await asyncio.to_thread(thread.join, 10)
            assert not thread.is_alive()


async def test_settling_finishes_the_work_before_the_cancellation_arrives() -> None:
    """What must be finished is finished; the cancellation is not swallowed."""
    started, go = asyncio.Event(), asyncio.Event()
    done = False

    async def work() -> None:
        nonlocal done
        started.set()
        await go.wait()
        done = True

    task = asyncio.create_task(settle(work()))
    await started.wait()
    task.cancel()
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert done


def test_the_pinned_driver_is_installed() -> None:
    """`HopConnection` leans on one protected method of aiosqlite, so its minor version is fixed."""
    assert importlib.metadata.version("aiosqlite").startswith("0.22.")
