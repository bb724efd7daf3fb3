"""Damage: of the index it costs no message, of a table it stops the writing; neither hides."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from session_store import SessionDB, StoreDamaged, index
from session_store import upkeep as upkeep_module
from session_store import writer as writer_module
from session_store.driver import driver
from session_store.schema import pragma
from session_store.tx import Tx
from tests.conftest import Elsewhere

HEALTH = "SELECT value FROM state_meta WHERE key = 'fts_health'"
#: Asks FTS5 itself; it has no answer for a broken one but an error.
CHECK = "INSERT INTO messages_fts (messages_fts) VALUES ('integrity-check')"


async def until(condition: Callable[[], Any], what: str) -> None:
    """Wait for something that happens by itself."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(what)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quiet moment comes at once."""
    monkeypatch.setattr(writer_module, "QUIET", 0.05)
    monkeypatch.setattr(writer_module, "BETWEEN_STEPS", 0.001)


ANY_DAMAGE = pytest.mark.parametrize(
    "damage",
    [
        "UPDATE messages_fts_data SET block = x'ffffffffffff' WHERE id = 10",
        "UPDATE messages_fts_data SET block = x'00' WHERE id > 10",
        "DELETE FROM messages_fts_data",
        "DROP TABLE messages_fts_data",
    ],
    ids=["structure", "segments", "emptied", "dropped"],
)


@ANY_DAMAGE
async def test_a_damaged_index_costs_no_message(
    db: SessionDB, elsewhere: Elsewhere, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    """Whether it shows at INSERT or at COMMIT: what was said is stored, the index is marked, search still finds."""
    await db.create_session("s", "cli")
    for number in range(40):
        await db.append_message("s", "user", f"before {number}")
    elsewhere(damage)

    with caplog.at_level(logging.WARNING, "session_store"):
        ids = [await db.append_message("s", "user", f"afterwards {number}") for number in range(60)]

    messages = await db.get_messages("s")
    assert [row["id"] for row in messages][-60:] == ids
    assert len(messages) == 100
    assert elsewhere(HEALTH)[0]["value"].startswith("broken: ")
    assert caplog.text.count("marked broken") == 1
    hits = await db.search_messages("afterwards")
    assert hits
    assert all(hit["approximate"] for hit in hits)


@ANY_DAMAGE
@pytest.mark.usefixtures("quick")
async def test_a_broken_index_is_rebuilt_in_a_quiet_moment(db: SessionDB, elsewhere: Elsewhere, damage: str) -> None:
    """Without a restart, and what was said meanwhile is in it."""
    await db.create_session("s", "cli")
    await db.append_message("s", "user", "before the damage")
    elsewhere(damage)
    for number in range(600):
        await db.append_message("s", "user", f"afterwards {number}")
    await until(lambda: elsewhere(HEALTH) == [{"value": "ok"}], "the index was not rebuilt")
    elsewhere(CHECK)

    for word in ("damage", "599"):
        (hit,) = await db.search_messages(word)
        assert not hit["approximate"]


@pytest.mark.usefixtures("quick")
async def test_rows_of_other_tools_are_indexed_in_a_quiet_moment(db: SessionDB, elsewhere: Elsewhere) -> None:
    """Nobody has to write for it: a waiter that notices the change is enough."""
    await db.create_session("s", "cli")
    await db.changes.wait(0.2)
    elsewhere("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'quokka', 1.0)")
    await db.changes.wait(5)
    indexed = "SELECT count(*) AS n FROM messages_fts_docsize"
    await until(lambda: elsewhere(indexed) == [{"n": 1}], "the row was not indexed")

    (hit,) = await db.search_messages("quokka")
    assert not hit["approximate"]


async def test_a_message_that_the_index_cannot_take_is_stored(
    db: SessionDB, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug in the making of tokens is trouble of the index only."""
    await db.create_session("s", "cli")

    def fails(_: Tx) -> None:
        raise ValueError("no tokens for this")

    monkeypatch.setattr("session_store.index.update", fails)
    await db.append_message("s", "user", "poison")

    assert [row["content"] for row in await db.get_messages("s")] == ["poison"]
    assert elsewhere(HEALTH) == [{"value": "broken: no tokens for this"}]


@pytest.mark.usefixtures("quick")
async def test_a_rebuild_that_cannot_succeed_is_given_up(
    db: SessionDB, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Repair is tried a few times, not for ever."""
    attempts: list[int] = []

    def fails(_: Tx, limit: int = 256) -> bool:
        attempts.append(limit)
        raise ValueError("not today")

    monkeypatch.setattr("session_store.index.rebuild_step", fails)
    await db._store.write(lambda tx: index.mark_broken(tx, "test"))  # noqa: SLF001 - as the writer does
    with caplog.at_level(logging.ERROR, "session_store"):
        await until(lambda: "until a restart" in caplog.text, "it was never given up")
    await db.create_session("s", "cli")
    await asyncio.sleep(0.2)

    assert len(attempts) == upkeep_module.REBUILD_ATTEMPTS


async def test_damage_of_a_table_stops_the_writing_and_reading_goes_on(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is made worse; the sentence says what to do; what can be read is read."""
    path = home / "state.db"
    async with SessionDB(path) as db:
        await db.create_session("other", "cli")
        await db.create_session("s", "cli")
        for number in range(200):
            await db.append_message("s", "user", f"{number} " + "long text " * 100)
        root = await db._store.read(  # noqa: SLF001 - where the table lies in the file
            lambda rx: rx.value("SELECT rootpage FROM sqlite_master WHERE name = 'messages'")
        )
    content = bytearray(path.read_bytes())
    content[(root - 1) * 4096 : root * 4096] = b"\xa5" * 4096
    path.write_bytes(content)

    async with SessionDB(path) as db:
        for _ in range(2):
            with (
                caplog.at_level(logging.ERROR, "session_store"),
                pytest.raises(StoreDamaged, match=r"writing has stopped.*Restore a backup"),
            ):
                await db.append_message("s", "user", "more")
        assert caplog.text.count("writing has stopped") == 1
        with pytest.raises(StoreDamaged):
            await db.create_session("new", "cli")
        session = await db.get_session("other")

    assert session is not None


@pytest.mark.parametrize("whole", [True, False], ids=["tables whole", "a table damaged"])
@pytest.mark.parametrize("where", ["session_store.index.update", "session_store.index.rebuild_step"])
@pytest.mark.usefixtures("quick")
async def test_a_damaged_page_is_the_indexs_only_if_the_tables_are_whole(
    db: SessionDB,
    elsewhere: Elsewhere,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    whole: bool,  # noqa: FBT001 - a parametrised value
) -> None:
    """SQLite does not say whose page it was, so the tables are checked before the index is blamed."""
    await db.create_session("s", "cli")

    def meets_a_damaged_page(*_: object) -> None:
        error: Exception = driver().module.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = 11  # type: ignore[attr-defined]
        raise error

    def quick_check(raw: Any, name: str) -> Any:
        return "row 7 missing" if name == "quick_check('messages')" and not whole else pragma(raw, name)

    monkeypatch.setattr(where, meets_a_damaged_page)
    monkeypatch.setattr("session_store.batch.pragma", quick_check)
    if where.endswith("rebuild_step"):
        elsewhere("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'x', 1.0)")
        await asyncio.sleep(0.5)  # some quiet moments
    if whole:
        await db.append_message("s", "user", "stored")
        assert (await db.get_messages("s"))[-1]["content"] == "stored"
    else:
        with pytest.raises(StoreDamaged):
            await db.append_message("s", "user", "refused")
        assert await db.get_session("s") is not None


@pytest.mark.usefixtures("quick")
async def test_damage_that_a_merge_meets_marks_the_index(
    db: SessionDB, elsewhere: Elsewhere, caplog: pytest.LogCaptureFixture
) -> None:
    """Found in a quiet moment, mended in the next ones."""
    await db.create_session("s", "cli")
    for number in range(20):
        await db.append_message("s", "user", f"numbat {number}")
    elsewhere("UPDATE messages_fts_data SET block = x'00' WHERE id > 10")
    await until(lambda: "marked broken" in caplog.text, "nobody noticed")
    await until(lambda: elsewhere(HEALTH) == [{"value": "ok"}], "the index was not rebuilt")

    assert len(await db.search_messages("numbat", limit=50)) == 20
