"""What opening makes of a file: ours, not ours, newer, older, damaged, unreadable, brand new."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from session_store import SessionDB, StoreDamaged, StoreError, StoreForeign, StoreNewer, StoreReadOnly, StoreUnreadable
from session_store.engine import StoreEngine
from session_store.schema import APPLICATION_ID, SCHEMA_NUMBER, declared
from tests.conftest import Elsewhere


def make(path: Path, script: str, *, wal: bool = False) -> None:
    """Make a database with the standard library; closed again before anything of ours opens it."""
    connection = sqlite3.connect(path, isolation_level=None)
    if wal:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(script)
    connection.close()


def traces(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Everything in a folder with its content, its time of change and its mode."""
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns, path.stat().st_mode)
        for path in folder.iterdir()
    }


def foreign_table(path: Path) -> None:
    """A database of another program."""
    make(path, "CREATE TABLE notes (x); INSERT INTO notes VALUES (1)")


def foreign_wal_file(path: Path) -> None:
    """The same in WAL mode, closed: its side files are gone."""
    make(path, "CREATE TABLE notes (x)", wal=True)


def foreign_application(path: Path) -> None:
    """A database that says whose it is."""
    make(path, "PRAGMA application_id = 252006673; CREATE TABLE t (x)")


def newer(path: Path) -> None:
    """Ours, from the future."""
    make(
        path, f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_NUMBER + 1}; CREATE TABLE t(x)"
    )


def text_file(path: Path) -> None:
    """No database at all."""
    path.write_text("Dear diary, " * 500)


def zeros(path: Path) -> None:
    """What a crash of the file system may leave."""
    path.write_bytes(bytes(8192))


@pytest.mark.parametrize(
    ("prepare", "kind", "sentence"),
    [
        (foreign_table, StoreForeign, r"not a Threadline database.*not changed"),
        (foreign_wal_file, StoreForeign, r"not a Threadline database.*not changed"),
        (foreign_application, StoreForeign, r"not a Threadline database.*not changed"),
        (newer, StoreNewer, rf"newer Threadline \(schema {SCHEMA_NUMBER + 1}.*Upgrade.*not changed"),
        (text_file, StoreForeign, r"not a Threadline database.*not changed"),
        (zeros, StoreForeign, r"not a Threadline database.*not changed"),
    ],
)
async def test_a_file_that_is_not_ours_is_refused_and_stays_as_it_is(
    home: Path, prepare: Callable[[Path], None], kind: type[StoreError], sentence: str
) -> None:
    """One sentence; not one byte changed, no side file left, no lock file made."""
    prepare(home / "state.db")
    before = traces(home)

    with pytest.raises(kind, match=sentence):
        await SessionDB(home / "state.db").open()

    assert traces(home) == before


OTHER_PROGRAM = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute('PRAGMA journal_mode = WAL'); c.execute('CREATE TABLE notes (x)')
print('ready', flush=True); sys.stdin.readline()
c.execute('INSERT INTO notes VALUES (1)'); print(c.execute('SELECT count(*) FROM notes').fetchone()[0], flush=True)
"""


async def test_a_foreign_file_in_use_is_refused_and_stays_in_use(home: Path) -> None:
    """Another program has the file open with a write-ahead log: it loses nothing by our look."""
    path = home / "state.db"
    with subprocess.Popen([sys.executable, "-c", OTHER_PROGRAM, str(path)], stdin=-1, stdout=-1, text=True) as other:  # noqa: S603, ASYNC220 - our own interpreter
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        before = traces(home)
        with pytest.raises(StoreForeign):
            await SessionDB(path).open()
        after = traces(home)
        other.stdin.write("go on\n")
        other.stdin.flush()
        assert other.stdout.readline() == "1\n"

    assert {name: after[name] for name in ("state.db", "state.db-wal")} == {
        name: before[name] for name in ("state.db", "state.db-wal")
    }
    assert set(after) == set(before)


async def test_a_folder_in_place_of_the_file_is_refused(home: Path) -> None:
    """It is named as what it is not."""
    (home / "state.db").mkdir()

    with pytest.raises(StoreUnreadable, match="not a plain file"):
        await SessionDB(home / "state.db").open()


async def test_a_damaged_table_of_contents_is_refused_unchanged(db: SessionDB, home: Path) -> None:
    """What cannot be read is not written over."""
    await db.close()
    path = home / "state.db"
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * (4096 - 100)
    path.write_bytes(content)
    before = traces(home)

    with pytest.raises((StoreDamaged, StoreForeign)):
        await SessionDB(path).open()

    assert traces(home) == before


def as_nobody(code: str, *arguments: str) -> str:
    """Run code in a process that may not do everything; returns what it printed."""
    prologue = """
import asyncio, os, sys, session_store, session_store.schema
session_store.schema.declared()  # all that is read from our own files, while they can be read
if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", prologue + code, *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert not done.returncode, done.stderr
    return done.stdout.strip()


TRY_TO_OPEN = """
async def main():
    try:
        async with session_store.SessionDB(sys.argv[1]) as db:
            print(await db.create_session('s', 'cli'))
    except session_store.StoreError as error:
        print(type(error).__name__, error)
asyncio.run(main())
"""


@pytest.fixture
def open_to_nobody() -> Iterator[Path]:
    """A folder that an unprivileged process can reach (pytest's own are closed to others)."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        place = Path(folder) / "place"
        place.mkdir()
        yield place


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "expected"),
    [
        (0o600, 0o755, "StoreUnreadable"),
        (0o644, 0o755, "StoreReadOnly"),
        (0o666, 0o755, "StoreReadOnly"),
    ],
)
async def test_without_permission_nothing_changes_and_the_reason_is_told(
    open_to_nobody: Path, file_mode: int, folder_mode: int, expected: str
) -> None:
    """Unreadable file, read-only file, read-only folder: one sentence that says what to check."""
    if os.geteuid() != 0:
        pytest.skip("needs files of another user")
    path = open_to_nobody / "state.db"
    async with SessionDB(path) as db:
        await db.create_session("s", "cli")
    path.chmod(file_mode)
    open_to_nobody.chmod(folder_mode)
    before = traces(open_to_nobody)

    answer = as_nobody(TRY_TO_OPEN, str(path))

    assert answer.startswith(expected)
    assert "permissions" in answer
    assert traces(open_to_nobody) == before


async def test_a_read_only_folder_without_a_database_is_named(open_to_nobody: Path) -> None:
    """A home that cannot be written is told before anything else."""
    if os.geteuid() != 0:
        pytest.skip("needs a folder of another user")
    open_to_nobody.chmod(0o755)

    assert as_nobody(TRY_TO_OPEN, str(open_to_nobody / "state.db")).startswith(StoreReadOnly.__name__)


async def test_an_empty_file_becomes_ours(home: Path, elsewhere: Elsewhere) -> None:
    """Nothing is lost by writing to a file of zero bytes."""
    (home / "state.db").touch()

    async with SessionDB(home / "state.db") as db:
        await db.create_session("s", "cli")

    assert elsewhere("PRAGMA application_id") == [{"application_id": APPLICATION_ID}]


async def test_the_schema_number_answers_the_documented_question(db: SessionDB, elsewhere: Elsewhere) -> None:
    """Other tools ask the table, SQLite keeps the same number in its header."""
    await db.create_session("s", "cli")

    assert elsewhere("SELECT version FROM schema_version") == [{"version": SCHEMA_NUMBER}]
    assert elsewhere("PRAGMA user_version") == [{"user_version": SCHEMA_NUMBER}]
    assert elsewhere("PRAGMA journal_mode") == [{"journal_mode": "wal"}]


async def test_the_declared_safety_settings_are_in_force(home: Path) -> None:
    """Durable commits, foreign keys, no memory mapping, no functions smuggled in by a schema."""
    engine = StoreEngine(home / "state.db")
    await engine.open()
    try:
        found = {
            name: await engine.write(lambda tx, name=name: tx.value(f"PRAGMA {name}"))  # type: ignore[misc]
            for name in ("synchronous", "foreign_keys", "mmap_size", "trusted_schema", "journal_size_limit")
        }
        reading = await engine.read(lambda rx: rx.value("PRAGMA query_only"))
    finally:
        await engine.close()

    assert found == {
        "synchronous": 2,
        "foreign_keys": 1,
        "mmap_size": 0,
        "trusted_schema": 0,
        "journal_size_limit": 64 * 1024 * 1024,
    }
    assert reading == 1


async def test_an_older_file_of_ours_gets_what_is_missing(db: SessionDB, home: Path, elsewhere: Elsewhere) -> None:
    """Tables, columns, indexes and triggers of the declared schema appear; rows stay; the number rises."""
    await db.create_session("s", "cli", model="m")
    await db.append_message("s", "user", "kept")
    await db.close()
    for statement in (
        "DROP TABLE control",
        "DROP INDEX idx_sessions_title_owner",
        "ALTER TABLE sessions DROP COLUMN context_from",
        "ALTER TABLE messages DROP COLUMN edited_at",
        "DROP TRIGGER search_message_delete",
        "UPDATE schema_version SET version = 11",
        "PRAGMA user_version = 11",
    ):
        elsewhere(statement)

    async with SessionDB(home / "state.db") as again:
        session = await again.get_session("s")
        messages = await again.get_messages("s")

    assert session is not None
    assert (session["model"], session["context_from"]) == ("m", None)
    assert [(row["content"], row["edited_at"]) for row in messages] == [("kept", None)]
    there = {row["name"] for row in elsewhere("SELECT name FROM sqlite_master WHERE sql IS NOT NULL")}
    assert there >= set(declared().objects)
    assert elsewhere("SELECT version FROM schema_version") == [{"version": SCHEMA_NUMBER}]


async def test_a_trigger_that_reads_otherwise_is_made_anew(db: SessionDB, home: Path, elsewhere: Elsewhere) -> None:
    """Triggers and indexes are derived from the declaration, so a differing one gives way."""
    await db.close()
    elsewhere("DROP TRIGGER search_message_delete")
    elsewhere("CREATE TRIGGER search_message_delete AFTER DELETE ON messages BEGIN SELECT 1; END")

    async with SessionDB(home / "state.db"):
        pass
    sql = elsewhere("SELECT sql FROM sqlite_master WHERE name = 'search_message_delete'")

    assert sql == [{"sql": declared().objects["search_message_delete"][1]}]


async def test_triggers_of_others_are_left_alone_and_reported(
    db: SessionDB, home: Path, elsewhere: Elsewhere, caplog: pytest.LogCaptureFixture
) -> None:
    """They are not ours to remove, but the owner of the home should know."""
    await db.close()
    elsewhere("CREATE TRIGGER backup_tool AFTER INSERT ON messages BEGIN SELECT 1; END")
    elsewhere("PRAGMA user_version = 11")

    with caplog.at_level(logging.WARNING, "session_store"):
        async with SessionDB(home / "state.db"):
            pass

    assert "backup_tool on messages" in caplog.text
    assert elsewhere("SELECT count(*) AS n FROM sqlite_master WHERE name = 'backup_tool'") == [{"n": 1}]


async def test_the_index_that_told_titles_across_people_goes(db: SessionDB, home: Path, elsewhere: Elsewhere) -> None:
    """Another tool may make the documented global title index again; two people may still use one title."""
    await db.close()
    elsewhere("CREATE UNIQUE INDEX idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL")

    async with SessionDB(home / "state.db") as again:
        await again.create_session("a", "cli", owner="owner", title="Plans")
        await again.create_session("b", "cli", owner="p1", title="Plans")


async def test_opening_what_is_whole_waits_for_nobody(db: SessionDB, home: Path) -> None:
    """A second opening needs no write lock, so it works while a transaction is under way."""
    inside, leave = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(_: object) -> None:
        loop.call_soon_threadsafe(inside.set)
        asyncio.run_coroutine_threadsafe(leave.wait(), loop).result(30)

    writing = asyncio.create_task(db._store.write(slow))  # noqa: SLF001 - the only way to hold a transaction open
    await inside.wait()
    async with SessionDB(home / "state.db") as other:
        assert await other.get_session("s") is None
        leave.set()
        await writing


OPEN_AT_ONCE = """
import asyncio, sys, time
from session_store import SessionDB
async def main():
    sys.stdin.readline()
    async with SessionDB(sys.argv[1]) as db:
        await db.create_session(sys.argv[2], 'cli')
asyncio.run(main())
"""


def test_ten_processes_may_open_a_fresh_path_at_once(home: Path, elsewhere: Elsewhere) -> None:
    """All succeed, whoever makes the file, the log and the tables."""
    children = [
        subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", OPEN_AT_ONCE, str(home / "state.db"), f"s{number}"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(10)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    errors = [child.communicate(timeout=50)[1] for child in children]

    assert [child.returncode for child in children] == [0] * 10, errors
    assert elsewhere("SELECT count(*) AS n FROM sessions") == [{"n": 10}]
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
