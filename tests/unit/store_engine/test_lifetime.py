"""Opening and closing: repeated, cancelled, forked, forgotten; nothing is left behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest

from session_store import SessionDB, StoreClosed, StoreForeign
from session_store.engine import StoreEngine
from tests.conftest import Elsewhere


async def database_threads() -> int:
    """How many connections' threads go on running; one that has been told to end gets the time to do so."""
    found = [thread for thread in threading.enumerate() if "connection_worker" in thread.name]
    for thread in found:
        await asyncio.to_thread(thread.join, 0.5)
    return sum(thread.is_alive() for thread in found)


def descriptors() -> int:
    """Open files of this process."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def test_a_store_that_is_not_open_says_so(home: Path) -> None:
    """Before opening and after closing, the sentence tells how to use it."""
    db = SessionDB(home / "state.db")
    with pytest.raises(StoreClosed, match="async with SessionDB"):
        await db.get_session("s")

    async with db:
        await db.create_session("s", "cli")

    with pytest.raises(StoreClosed):
        await db.create_session("t", "cli")
    with pytest.raises(StoreClosed):
        await db.get_session("s")


async def test_opening_and_closing_may_be_repeated(home: Path) -> None:
    """Twice open is open, twice closed is closed, and a closed store can be opened again."""
    db = SessionDB(home / "state.db")
    for _ in range(2):
        await db.open()
        await db.open()
        await db.create_session("s", "cli")
        await db.close()
        await db.close()

    async with db:
        assert await db.get_session("s") is not None


async def test_nothing_is_left_after_closing(home: Path) -> None:
    """No thread, no open file, no side file: the database is one file again."""
    async with SessionDB(home / "state.db") as db:  # loads what is loaded lazily
        await db.create_session("s", "cli")
    files = descriptors()

    for _ in range(5):
        async with SessionDB(home / "state.db") as db:
            await asyncio.gather(*(db.get_session("s") for _ in range(10)))

    assert not await database_threads()
    assert descriptors() == files
    assert sorted(path.name for path in home.iterdir()) == ["state.db", "state.db.lock"]


async def test_a_cancelled_closing_closes_all_the_same(home: Path) -> None:
    """The cancellation arrives after the work is done."""
    db = await SessionDB(home / "state.db").open()
    await db.create_session("s", "cli")
    closing = asyncio.create_task(db.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing

    assert not await database_threads()
    async with SessionDB(home / "state.db") as again:
        assert await again.get_session("s") is not None


@pytest.mark.parametrize("turns_of_the_loop", range(0, 12, 2))
async def test_a_cancelled_opening_leaves_nothing(home: Path, turns_of_the_loop: int) -> None:
    """Cancelled at any moment: no thread, no open file, no lock; the next one opens."""
    files = descriptors()
    opening = asyncio.create_task(SessionDB(home / "state.db").open())
    for _ in range(turns_of_the_loop):
        await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening

    assert not await database_threads()
    assert descriptors() == files
    async with SessionDB(home / "state.db") as db:
        await db.create_session("s", "cli")


async def test_a_failed_opening_leaves_nothing(home: Path) -> None:
    """The same when the file is refused."""
    (home / "state.db").write_text("not a database " * 1000)
    files = descriptors()
    with pytest.raises(StoreForeign):
        await SessionDB(home / "state.db").open()

    assert not await database_threads()
    assert descriptors() == files


async def test_a_cancelled_scope_closes_the_store(home: Path) -> None:
    """Scopes that cancel again and again until they are left do no harm either."""
    with anyio.CancelScope() as scope:
        async with SessionDB(home / "state.db") as db:
            await db.create_session("s", "cli")
            scope.cancel()
            await db.get_session("s")

    assert scope.cancelled_caught
    assert not await database_threads()
    assert not (home / "state.db-wal").exists()


async def test_two_stores_in_one_process_share_the_file(home: Path) -> None:
    """Each has its own connections; neither harms the locks of the other."""
    async with SessionDB(home / "state.db") as one:
        async with SessionDB(home / "state.db") as two:
            await asyncio.gather(*(db.create_session(f"{name}", "cli") for name, db in (("a", one), ("b", two))))
        await one.create_session("c", "cli")

        assert [await one.get_session(name) is not None for name in "abc"] == [True] * 3


async def test_an_exception_inside_closes_the_store(home: Path) -> None:
    """As any context manager does."""
    with pytest.raises(RuntimeError, match="mine"):
        await _fail_inside(SessionDB(home / "state.db"))

    assert not await database_threads()


async def _fail_inside(db: SessionDB) -> None:
    async with db:
        raise RuntimeError("mine")


FORKING = """
import asyncio, os, sys, warnings
from tests.conftest import Elsewhere
from session_store import SessionDB, StoreError
warnings.simplefilter("ignore")
async def main():
    async with SessionDB(sys.argv[1]) as db:
        await db.create_session("parent", "cli")
        child = os.fork()
        if not child:
            for call in (db.get_session("parent"), db.create_session("child", "cli")):
                try:
                    await call
                    print("used a connection of the parent", flush=True)
                except StoreError as error:
                    print(type(error).__name__, error, flush=True)
            await db.close()
            os._exit(0)
        os.waitpid(child, 0)
        print(await db.get_session("child"), flush=True)
        await db.create_session("after", "cli")
asyncio.run(main())
"""


def test_a_forked_child_is_refused_and_the_parent_goes_on(home: Path) -> None:
    """The child's copy of the connections must not be used: its locks and threads are not there."""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", FORKING, str(home / "state.db")], capture_output=True, text=True, timeout=30, check=True
    )
    lines = done.stdout.splitlines()

    assert len(lines) == 3
    assert all(line.startswith("StoreClosed") and "forked" in line for line in lines[:2])
    assert lines[2] == "None"


KILLED_LOOP = """
import asyncio, sys
from tests.conftest import Elsewhere
from session_store import SessionDB
async def work(db):
    for number in range(10**9):
        await db.create_session(f"s{number}", "cli")
async def main():
    async with SessionDB(sys.argv[1]) as db:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work(db))]
            await asyncio.sleep(0.2)
            raise KeyboardInterrupt
asyncio.run(main())
"""


def test_an_interrupted_program_ends(home: Path) -> None:
    """Ctrl-C in the middle of writing: the store is closed on the way out and the interpreter does not hang."""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", KILLED_LOOP, str(home / "state.db")], capture_output=True, timeout=30, check=False
    )

    assert b"KeyboardInterrupt" in done.stderr
    assert sorted(path.name for path in home.iterdir()) == ["state.db", "state.db.lock"]


async def test_the_writer_survives_callers_that_vanish(home: Path) -> None:
    """A whole group of callers is cancelled at once; the next write works."""
    engine = StoreEngine(home / "state.db")
    await engine.open()
    try:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(_keep_writing(engine, number) for number in range(50))), 0.05)
        assert await engine.write(lambda tx: tx.value("SELECT 7")) == 7
    finally:
        await engine.close()


async def _keep_writing(engine: StoreEngine, number: int) -> None:
    while True:
        await engine.write(lambda tx: tx.run("UPDATE state_meta SET value = value WHERE key = ?", (str(number),)))


async def test_plans_do_not_depend_on_how_small_the_file_once_was(home: Path, elsewhere: Elsewhere) -> None:
    """No statistics are left behind by a close, and the sessions of a conversation are found by their indexes."""
    for number in range(2):
        async with SessionDB(home / "state.db") as db:
            await db.create_session(f"s{number}", "cli")
            await db.conversation_of(f"s{number}")
    assert elsewhere("SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite_stat%'") == []
