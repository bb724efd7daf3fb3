"""What is done when nobody writes, and that it stands back when somebody does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from session_store import SessionDB
from session_store import upkeep as upkeep_module
from session_store import writer as writer_module
from tests.conftest import Elsewhere

SEGMENTS = "SELECT count(DISTINCT segid) AS n FROM messages_fts_idx"


@pytest.fixture
async def busy_store(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store whose index lies in several pieces, since each message was committed by itself."""
    monkeypatch.setattr(writer_module, "BETWEEN_STEPS", 0.001)
    async with SessionDB(home / "state.db") as db:
        await db.create_session("s", "cli")
        for number in range(7):
            await db.append_message("s", "user", f"{number} " + " ".join(f"word{number}x{k}" for k in range(200)))
    return home / "state.db"


async def until_quiet(db: SessionDB) -> None:
    """Wait until there is nothing more to do."""
    writer = db._store._opened().writer  # noqa: SLF001 - nothing outside tells when the upkeep is done
    for _ in range(500):
        if not writer._untidy:  # noqa: SLF001 - the same
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the upkeep never ended")


async def test_pieces_of_the_index_are_merged(
    busy_store: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches get faster again after many small commits, and find the same."""
    monkeypatch.setattr(writer_module, "QUIET", 0.02)
    (before,) = elsewhere(SEGMENTS)
    async with SessionDB(busy_store) as db:
        await db.append_message("s", "user", "one more")
        await until_quiet(db)
        (hit,) = await db.search_messages("word3x7")

    (after,) = elsewhere(SEGMENTS)
    assert after["n"] < before["n"]
    assert not hit["approximate"]


async def test_a_large_log_is_shrunk(busy_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes back to nothing, also while the store stays open."""
    monkeypatch.setattr(writer_module, "QUIET", 0.02)
    monkeypatch.setattr(upkeep_module, "LARGE_LOG", 1000)
    async with SessionDB(busy_store) as db:
        await db.append_message("s", "user", "one more")
        await until_quiet(db)
        log = busy_store.with_name("state.db-wal").stat().st_size

        assert log == 0
        await db.append_message("s", "user", "and on")


async def test_nothing_is_done_while_somebody_writes(
    busy_store: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A moment is quiet only when no operation came for a while."""
    steps: list[object] = []
    monkeypatch.setattr(writer_module, "QUIET", 30.0)
    monkeypatch.setattr("session_store.upkeep.Upkeep.step", lambda *_: steps.append(1))
    async with SessionDB(busy_store) as db:
        for number in range(20):
            await db.append_message("s", "user", f"{number}")

    assert not steps
    assert elsewhere("SELECT count(*) AS n FROM messages") == [{"n": 27}]


async def test_upkeep_that_fails_is_put_off_and_writing_goes_on(
    busy_store: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is never worth a failure."""
    monkeypatch.setattr(writer_module, "QUIET", 0.01)

    def fails(*_: object) -> bool:
        raise OSError("not now")

    monkeypatch.setattr("session_store.upkeep.Upkeep.step", fails)
    async with SessionDB(busy_store) as db:
        await until_quiet(db)
        assert "put off: not now" in caplog.text
        await db.append_message("s", "user", "all the same")


async def test_a_commit_that_concerns_no_message_leaves_the_index_alone_unless_it_is_behind(
    home: Path, elsewhere: Elsewhere
) -> None:
    """What another process put in is caught up with by the next commit, whatever that writes."""
    mark = "SELECT value FROM state_meta WHERE key = 'fts_watermark'"
    async with SessionDB(home / "state.db") as db:
        await db.create_session("s", "cli")
        await db.append_message("s", "user", "one")
        await asyncio.to_thread(
            elsewhere, "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'two', 1)"
        )
        (before,) = elsewhere(mark)
        await db.control.expire()
        await db.people.sync_config({}, {"ada": {}})
        (after,) = elsewhere(mark)

    assert (before["value"], after["value"]) == ("1", "2")
