"""SQLite stores any kind of value in any column, and other tools did: nothing of ours stumbles over it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from session_store import SessionDB, Visibility
from session_store.othervalues import put_right
from tests.conftest import Elsewhere
from tests.unit.store_engine.histories import make_history

ODD = [
    "UPDATE sessions SET started_at = '2025-01-01 10:00', ended_at = 'yesterday'",
    "UPDATE messages SET timestamp = '2025-01-01T00:00:00+01:00'",
    "UPDATE sessions SET title = x'ff00', model = user_id = x'0102', model_config = x'ff' WHERE id = '20250103_branch'",
    "UPDATE sessions SET source = x'ff00'",
    "UPDATE sessions SET message_count = 'many'",
    "UPDATE messages SET content = x'fffe', role = x'01', tool_calls = x'ff'",
    "UPDATE sessions SET parent_session_id = id, end_reason = 'compression'",
]


@pytest.mark.parametrize("statement", ODD)
async def test_a_file_with_values_of_other_kinds_is_taken_over_and_used(home: Path, statement: str) -> None:
    """Listed, read, exported as JSON, searched, counted, written to, deleted."""
    make_history(home / "state.db", 11)
    other = sqlite3.connect(home / "state.db", isolation_level=None)
    other.execute(statement)
    other.close()

    async with SessionDB(home / "state.db") as db:
        listed = await db.list_sessions(limit=50)
        for row in listed:
            json.dumps([await db.export_session(row["id"]), await db.get_messages(row["id"])])
        assert all(isinstance(row["last_active"], float | int) for row in listed)
        hits = await db.search_messages("harbour")
        assert all(isinstance(hit["timestamp"], float | int) for hit in hits)
        assert sorted((await db.stats())["by_source"])
        await db.append_message("20250103_branch", "user", "after all that")
        assert len(await db.search_messages("after all that")) == 1
        assert await db.delete_session("20250103_branch")


async def test_a_setting_nested_without_end_is_no_setting(home: Path) -> None:
    """The deepest brackets are taken over as they are."""
    make_history(home / "state.db", 11)
    other = sqlite3.connect(home / "state.db", isolation_level=None)
    other.execute("UPDATE sessions SET model_config = ?", ("[" * 200_000,))
    other.close()
    async with SessionDB(home / "state.db") as db:
        assert len(await db.search_messages("harbour")) >= 1


@pytest.mark.parametrize("column", ["owner", "room_id"])
async def test_an_owner_in_bytes_does_not_end_the_index(home: Path, elsewhere: Elsewhere, column: str) -> None:
    """It is found by nobody but who may see everything; what others say is indexed on."""
    async with SessionDB(home / "state.db") as db:
        for name in ("odd", "mine"):
            await db.create_session(name, "cli", owner="owner")
            await db.append_message(name, "user", f"first word in {name}")
        elsewhere(f"UPDATE sessions SET {column} = x'ff01' WHERE id = 'odd'")  # noqa: S608 - names of ours
        await db.append_message("odd", "user", "second word")
        await db.append_message("mine", "user", "third word")

        assert elsewhere("SELECT value FROM state_meta WHERE key = 'fts_health'") == [{"value": "ok"}]
        assert len(await db.search_messages("word")) == 4
        found = await db.search_messages("third", visible_to=Visibility(frozenset({"owner"})))
        assert [hit["session_id"] for hit in found] == ["mine"]


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ("12.5", 12.5),
        ("1970-01-01T00:01:00", 60.0),
        ("1970-01-01 01:00:00+01:00", 0.0),
        ("soon", 0.0),
        ("", 0.0),
        ("inf", 0.0),
    ],
)
def test_a_time_in_words_reads_as_seconds(stored: str, read: float) -> None:
    """Digits, a date, or nothing of the kind."""
    assert put_right({"timestamp": stored, "content": stored}) == {"timestamp": read, "content": stored}


def test_what_is_right_passes_through() -> None:
    """Nothing is changed without need."""
    row = {"timestamp": 1.5, "ended_at": None, "content": "12", "number": 7}
    assert put_right(dict(row)) == row
