"""With an old SQLite everything works, but nothing is written and nothing checkpointed without the ticket."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from session_store import SessionDB, StoreBusy
from session_store import batch as batch_module
from session_store import driver as driver_module
from session_store.engine import StoreEngine
from session_store.ticket import Ticket


@pytest.fixture(autouse=True)
def safe_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chosen library counts as an old one for the time of a test."""
    chosen = driver_module.driver()
    old = driver_module.Driver(chosen.name, chosen.module, (3, 40, 1), safe_mode=True)
    for module in ("batch", "engine", "opening"):
        monkeypatch.setattr(f"session_store.{module}.driver", lambda: old)


async def test_the_documented_operations_work(home: Path) -> None:
    """Also over many checkpoints and with several processes' worth of connections."""
    async with SessionDB(home / "state.db") as db, SessionDB(home / "state.db") as other:
        await db.create_session("s", "cli")
        await asyncio.gather(
            *(one.append_message("s", "user", f"{n} tapir") for n in range(300) for one in (db, other))
        )

        assert len(await db.get_messages("s")) == 600
        assert await other.search_messages("tapir")


async def test_sqlite_does_not_checkpoint_by_itself(home: Path) -> None:
    """Neither on the writer nor on a reader."""
    engine = StoreEngine(home / "state.db")
    await engine.open()
    try:
        assert await engine.write(lambda tx: tx.value("PRAGMA wal_autocheckpoint")) == 0
        assert await engine.read(lambda rx: rx.value("PRAGMA wal_autocheckpoint")) == 0
    finally:
        await engine.close()


async def test_nothing_is_written_without_the_ticket(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is told that the store is busy; afterwards it goes on."""
    monkeypatch.setattr(batch_module, "TICKET_WAIT_SAFE_MODE", 0.1)
    monkeypatch.setattr(batch_module, "TICKET_WAIT", 0.1)
    async with SessionDB(home / "state.db") as db:
        await db.create_session("s", "cli")
        ticket = Ticket(home / "state.db.lock", patient=False)
        assert await asyncio.to_thread(ticket.acquire, 5)
        for _ in range(2):
            with pytest.raises(StoreBusy):
                await db.append_message("s", "user", "not yet")
        ticket.close()
        await db.append_message("s", "user", "now")

        assert [row["content"] for row in await db.get_messages("s")] == ["now"]


async def test_the_log_does_not_grow_without_bound(home: Path) -> None:
    """Checkpoints under the ticket replace those that SQLite would make."""
    async with SessionDB(home / "state.db") as db:
        await db.create_session("s", "cli")
        for number in range(400):
            await db.append_message("s", "user", f"{number} " + "words " * 100)

        assert (home / "state.db-wal").stat().st_size < 4 * 1024 * 1024


STANDARD_LIBRARY_ONLY = """
import asyncio, sys
sys.modules["pysqlite3"] = sys.modules["pysqlite3.dbapi2"] = None
from session_store import SessionDB
from session_store.driver import driver
async def main():
    async with SessionDB(sys.argv[1]) as db:
        await db.create_session("s", "cli", title="one")
        await db.append_message("s", "user", "a tapir", tool_calls=[{"id": "1"}])
        print(len(await db.search_messages("tapir")), len(await db.list_sessions()), len(await db.processes.list()))
        await db.delete_session("s")
    print(driver().name)
asyncio.run(main())
"""


def test_the_standard_library_alone_is_enough(home: Path) -> None:
    """Where pysqlite3 has no wheel, the SQLite that came with Python does all of it."""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", STANDARD_LIBRARY_ONLY, str(home / "state.db")],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.stdout.splitlines() == ["1 1 0", "sqlite3"], done.stderr
