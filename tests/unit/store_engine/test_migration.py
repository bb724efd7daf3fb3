"""Files of the documented history are copied, taken over whole, and searched right away."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from session_store import SessionDB, StoreForeign, Visibility
from session_store.history import plan
from session_store.schema import APPLICATION_ID, SCHEMA_NUMBER
from tests.conftest import Elsewhere
from tests.unit.store_engine.histories import TITLES_SINCE, make_history

VERSIONS = range(1, 12)
EVERYTHING = None


def content(path: Path) -> dict[str, list[dict[str, Any]]]:
    """All rows of the documented tables, by the names that their columns have."""
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    try:
        return {
            table: [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY rowid")]  # noqa: S608
            for table in ("sessions", "messages")
        }
    finally:
        connection.close()


def same_where_known(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> bool:
    """Whether every value that was there is there."""
    return len(old) == len(new) and all(
        {name: after[name] for name in before} == before for before, after in zip(old, new, strict=True)
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("wal", [False, True])
async def test_every_version_of_the_history_is_taken_over(home: Path, version: int, wal: bool) -> None:  # noqa: FBT001
    """Rows unchanged, a copy beside it, and words of every script found by the first search."""
    path = home / "state.db"
    make_history(path, version, wal=wal)
    before = content(path)

    async with SessionDB(path) as db:
        for query in ("harbour", "src/main.py", "北京", "上海", "москвы", "terminal", "violet branch"):
            assert len(await db.search_messages(query)) >= 1, query

    after = content(path)
    assert same_where_known(before["sessions"], after["sessions"])
    assert same_where_known(before["messages"], after["messages"])
    assert content(path.with_name(f"state.db.v{version}-backup")) == before


async def test_a_file_that_was_taken_over_is_ours(home: Path, elsewhere: Elsewhere) -> None:
    """Marked, with our number, without the old tables and triggers, with what others kept in the meta table."""
    make_history(home / "state.db", 11)
    await (await SessionDB(home / "state.db").open()).close()

    assert elsewhere("PRAGMA application_id") == [{"application_id": APPLICATION_ID}]
    assert elsewhere("SELECT version FROM schema_version") == [{"version": SCHEMA_NUMBER}]
    assert elsewhere("SELECT name FROM sqlite_master WHERE name LIKE 'messages_fts_trigram%'") == []
    assert elsewhere("SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'messages_fts_%'") == []
    assert elsewhere("SELECT value FROM state_meta WHERE key = 'last_auto_prune'") == [{"value": "12.5"}]
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    async with SessionDB(home / "state.db") as db:
        await db.append_message("20250103_branch", "user", "goes on in the new house")
        assert len(await db.search_messages("new house")) == 1
    assert [path.name for path in home.glob("*backup*")] == ["state.db.v11-backup"]


async def test_what_came_from_a_terminal_is_the_owners_and_the_rest_its_senders(home: Path) -> None:
    """Nobody is given what somebody else said on a platform; without a sender it is nobody's."""
    make_history(home / "state.db", 11)
    async with SessionDB(home / "state.db") as db:
        person = await db.people.person_of("telegram", "", "42")
        assert person is not None
        mine = Visibility(frozenset({"owner"}))
        theirs = Visibility(frozenset({person[0]}))

        assert len(await db.search_messages("harbour", visible_to=mine)) == 1
        assert await db.search_messages("москвы", visible_to=mine) == []
        assert len(await db.search_messages("москвы", visible_to=theirs)) == 1
        assert await db.search_messages("channel", visible_to=theirs) == []
        assert await db.search_messages("channel", visible_to=mine) == []
        assert len(await db.search_messages("channel")) == 1


async def test_conversations_branches_and_scheduled_runs_are_told_apart(home: Path) -> None:
    """A compressed chain is one conversation with its live tip; a branch and a scheduled run are their own."""
    make_history(home / "state.db", 11)
    async with SessionDB(home / "state.db") as db:
        assert await db.conversation_of("20250101_first1") == ["20250101_first1", "20250102_second"]
        assert await db.conversation_of("20250103_branch") == ["20250103_branch"]
        sessions = [await db.get_session(name) for name in ("20250103_branch", "20250104_timer1")]
        assert [session["kind"] for session in sessions if session is not None] == ["branch", "scheduled"]
        assert await db.resolve_session_by_title("harbour") == "20250102_second"
        session = await db.get_session("20250102_second")
        assert session is not None
        assert session["last_active"] == 201.0


async def test_a_run_that_a_session_started_is_its_owners_and_no_part_of_the_conversation(home: Path) -> None:
    """Whatever its source is called."""
    make_history(home / "state.db", 11)
    connection = sqlite3.connect(home / "state.db", isolation_level=None)
    connection.execute(
        """INSERT INTO sessions (id, source, parent_session_id, started_at)
        VALUES ('20250107_helper', 'helper', '20250101_first1', 150.0)"""
    )
    connection.close()
    async with SessionDB(home / "state.db") as db:
        run = await db.get_session("20250107_helper")
        assert run is not None
        assert (run["kind"], run["owner"]) == ("tool", "owner")
        assert await db.conversation_of("20250101_first1") == ["20250101_first1", "20250102_second"]


async def test_equal_titles_from_before_the_rule_keep_their_text(home: Path) -> None:
    """The newest answers to the title; the other keeps its words."""
    make_history(home / "state.db", TITLES_SINCE)
    async with SessionDB(home / "state.db") as db:
        first, branch = await db.get_session("20250101_first1"), await db.get_session("20250103_branch")
        assert first is not None
        assert branch is not None
        assert (first["title"], first["title_key"]) == ("Harbour", None)
        assert (branch["title"], branch["title_key"]) == ("Harbour", "harbour")


@pytest.mark.parametrize(
    "lost", ["messages.reasoning_content", "sessions.api_call_count", "sessions.parent_session_id"]
)
async def test_a_number_ahead_of_its_columns_is_no_trouble(home: Path, lost: str) -> None:
    """What is missing is added, whatever the file says of itself; an index on such a column comes after it."""
    path = home / "state.db"
    make_history(path, 11)
    table, _, column = lost.partition(".")
    connection = sqlite3.connect(path)
    kept = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != column]
    connection.executescript(
        f"""PRAGMA foreign_keys = OFF; CREATE TABLE kept AS SELECT {", ".join(kept)} FROM {table};
        DROP TABLE {table}; ALTER TABLE kept RENAME TO {table};"""  # noqa: S608
    )
    connection.close()

    async with SessionDB(path) as db:
        assert len(await db.search_messages("harbour")) == 1
        assert len(await db.list_sessions()) >= 1


async def test_a_damaged_old_search_table_stops_nothing(home: Path) -> None:
    """It is replaced anyway."""
    path = home / "state.db"
    make_history(path, 11)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE messages_fts_data SET block = x'00ff00ff'")
    connection.execute("DELETE FROM messages_fts_trigram_config")
    connection.close()

    async with SessionDB(path) as db:
        assert len(await db.search_messages("harbour")) == 1


@pytest.mark.parametrize(
    ("number", "script", "sentence"),
    [
        (12, "", r"newer schema \(version 12; up to 11"),
        (11, "ALTER TABLE messages RENAME COLUMN timestamp TO at", r"table messages has no column timestamp"),
        (11, "CREATE VIEW people AS SELECT 1 AS one", r"a view named people"),
    ],
)
async def test_what_cannot_be_taken_over_is_refused_and_stays_as_it_is(
    home: Path, number: int, script: str, sentence: str
) -> None:
    """One sentence with the way out; not one byte changed, nothing left beside it."""
    path = home / "state.db"
    make_history(path, 9, number=number)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(script)
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StoreForeign, match=sentence + r".*Choose another home or move the file away.*not changed"):
        await SessionDB(path).open()

    assert path.read_bytes() == before
    assert [entry.name for entry in home.iterdir()] == ["state.db"]


OPENER = """
import asyncio, sys
from session_store import SessionDB
async def main():
    sys.stdin.readline()
    async with SessionDB(sys.argv[1]) as db:
        print(len(await db.search_messages("harbour")), len(await db.get_messages("20250101_first1")), flush=True)
asyncio.run(main())
"""


async def test_four_processes_may_open_an_old_file_at_the_same_instant(home: Path) -> None:
    """One takes it over, the others wait for that; all find everything, and there is one copy."""
    path = home / "state.db"
    make_history(path, 10)
    openers = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            OPENER,
            str(path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for _ in range(4)
    ]
    outputs = await asyncio.gather(*(opener.communicate(b"go\n") for opener in openers))

    assert [out.decode().strip() for out, _ in outputs] == ["1 3"] * 4, [errors.decode() for _, errors in outputs]
    assert [entry.name for entry in home.glob("*backup*")] == ["state.db.v10-backup"]


KILLED = """
import asyncio, os, signal, sys
from session_store import SessionDB, index, migration
def die(*ignored):
    os.kill(os.getpid(), signal.SIGKILL)
place = {
    "copy": (migration, "_copy"),
    "old search": (index, "discard_documented"),
    "rows": (migration, "_settle_titles"),
    "index": (index, "rebuild_step"),
}
setattr(*place[sys.argv[2]], die)
asyncio.run(SessionDB(sys.argv[1]).open())
"""


@pytest.mark.parametrize("step", ["copy", "old search", "rows", "index"])
async def test_a_process_killed_on_the_way_leaves_the_file_as_it_was(home: Path, step: str) -> None:
    """It has happened or it has not; the next one does it."""
    path = home / "state.db"
    make_history(path, 11)
    before = content(path)
    opener = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, str(path), step)
    assert await opener.wait() == -signal.SIGKILL

    assert content(path) == before
    async with SessionDB(path) as db:
        assert len(await db.search_messages("harbour")) == 1
    assert same_where_known(before["messages"], content(path)["messages"])


def test_the_plan_says_beforehand_what_would_be_done(home: Path) -> None:
    """It is told without touching anything; a file of ours or none needs no plan."""
    path = home / "state.db"
    assert plan(path) is None
    make_history(path, 7)
    before = path.read_bytes()

    told = plan(path)

    assert told is not None
    assert (told.version, told.sessions, told.messages) == (7, 6, 8)
    assert "sessions.api_call_count" in told.columns
    assert "messages.reasoning_content" not in told.columns
    assert told.search == ("messages_fts",)
    assert told.backup == home / "state.db.v7-backup"
    assert path.read_bytes() == before
    assert [entry.name for entry in home.iterdir()] == ["state.db"]


async def test_a_copy_never_replaces_another(home: Path) -> None:
    """A copy that is there already keeps its name."""
    make_history(home / "state.db", 11)
    (home / "state.db.v11-backup").write_text("precious")
    await (await SessionDB(home / "state.db").open()).close()

    assert (home / "state.db.v11-backup").read_text() == "precious"
    assert content(home / "state.db.v11-backup-2")["messages"]
