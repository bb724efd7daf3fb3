"""Opening a database: is it ours, is it whole, does it have the declared schema.

Contract: `open_writer` looks before it touches anything. A file that is not ours, is newer, cannot be read or lies on
a network file system is refused in one sentence and stays as it was, to the byte. A missing or empty file becomes ours
in one transaction under the ticket. An older file of ours gets what the declared schema (schema.sql,
search_schema.sql) has and it has not: tables, columns, indexes, triggers; nothing is removed but one retired index.
Failure: StoreForeign, StoreNewer, StoreUnreadable, StoreReadOnly, StoreUnsafePlace, StoreDamaged, StoreBusy.
Limits: files of the documented older schema (versions 1 to 11) are recognised and refused, not taken over.
All functions run on a database thread.
"""

from __future__ import annotations

import functools
import logging
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final, TypeVar

from session_store.driver import connect, driver, store_error
from session_store.errors import (
    StoreBusy,
    StoreError,
    StoreForeign,
    StoreNewer,
    StoreReadOnly,
    StoreUnreadable,
)
from session_store.files import StoreFiles
from session_store.ticket import Ticket
from session_store.tx import Row, dict_row

__all__ = ["APPLICATION_ID", "SCHEMA_NUMBER", "declared", "open_reader", "open_writer", "pragma"]

T = TypeVar("T")

_LOG = logging.getLogger(__name__)
#: Marks our files ("Thln"); never changes.
APPLICATION_ID: Final = 0x54686C6E
#: Number of the declared schema, in `PRAGMA user_version` and in the row of `schema_version`.
SCHEMA_NUMBER: Final = 12
_FILES: Final = ("schema.sql", "search_schema.sql")
#: The index of the documented older schema that would tell people of each other's titles. (Its search triggers are the
#: business of index.py, which must also see what they did.)
_RETIRED_INDEXES: Final = frozenset({"idx_sessions_title_unique"})
_OLD_TABLES: Final = frozenset({"schema_version", "sessions", "messages"})

_TICKET_WAIT: Final = 2.0
_OPEN_BUDGET: Final = 16.0
_RETRY_PAUSE: Final = (0.020, 0.150)
_LOOKS: Final = 3
_LOOK_PAUSE: Final = 0.05

_BUSY_WRITER_MS: Final = 1000
_BUSY_READER_MS: Final = 5000
_CACHE_WRITER_KIB: Final = 16_000
_CACHE_LARGE_KIB: Final = 64_000
_CACHE_READER_KIB: Final = 8_000
_LARGE: Final = 500 * 1024 * 1024
_WAL_PAGES: Final = 1000
_WAL_LIMIT: Final = 64 * 1024 * 1024

#: Every named object of a database with the statement that made it.
_OBJECTS: Final = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid LIMIT 2000"
#: Columns of one table as they stand.
_COLUMNS: Final = 'SELECT name, type, "notnull" AS required, dflt_value FROM pragma_table_info(?) LIMIT 2000'
#: Foreign keys of one table: column and what it points at.
_KEYS: Final = 'SELECT "from" AS name, "table" AS parent, "to" AS target FROM pragma_foreign_key_list(?) LIMIT 2000'
#: The number that the documented schema keeps in a table.
_OLD_VERSION: Final = "SELECT max(version) AS version FROM schema_version"
#: The same number for ours, for whoever asks the documented way.
_WRITE_VERSION: Final = "INSERT INTO schema_version (version) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM schema_version)"
_RAISE_VERSION: Final = "UPDATE schema_version SET version = ? WHERE version < ?"


@dataclass(frozen=True, slots=True)
class Declared:
    """The schema as the .sql files say it. columns: table -> column -> its definition for ALTER TABLE."""

    statements: tuple[str, ...]
    objects: dict[str, tuple[str, str]]
    columns: dict[str, dict[str, str]]


@dataclass(slots=True)
class _Look:
    """What a look at a file found."""

    application_id: int = 0
    user_version: int = 0
    tables: frozenset[str] = field(default_factory=frozenset)
    old_version: int | None = None

    @property
    def empty(self) -> bool:
        return not self.application_id and not self.tables


# --- the declared schema ---------------------------------------------------------------------------------------------


@functools.cache
def declared() -> Declared:
    """Read the .sql files and let SQLite itself tell what they declare."""
    statements = tuple(statement for name in _FILES for statement in _statements(_text(name)))
    memory: sqlite3.Connection = driver().module.connect(":memory:", isolation_level=None)
    try:
        memory.row_factory = dict_row
        for statement in statements:
            memory.execute(statement)
        objects = {row["name"]: (row["type"], row["sql"]) for row in memory.execute(_OBJECTS)}
        tables = [name for name, (kind, sql) in objects.items() if kind == "table" and "VIRTUAL" not in sql[:20]]
        return Declared(statements, objects, {table: _columns(memory, table) for table in tables})
    finally:
        memory.close()


def _text(name: str) -> str:
    return resources.files("session_store").joinpath(name).read_text(encoding="utf-8")


def _statements(script: str) -> Iterator[str]:
    """Split a script at the semicolons that end statements (those inside triggers do not)."""
    statement = ""
    for piece in script.split(";"):
        statement += piece + ";"
        if sqlite3.complete_statement(statement):
            if statement.strip(" \n;"):
                yield statement.strip()
            statement = ""


def _columns(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    keys = {row["name"]: row for row in connection.execute(_KEYS, (table,))}
    found = {}
    for row in connection.execute(_COLUMNS, (table,)).fetchall():
        parts = [f'"{row["name"]}"', row["type"]]
        if row["required"]:
            parts.append("NOT NULL")
        if row["dflt_value"] is not None:
            parts.append(f"DEFAULT {row['dflt_value']}")
        if row["name"] in keys:
            key = keys[row["name"]]
            parts.append(f'REFERENCES "{key["parent"]}"("{key["target"]}")')
        found[row["name"]] = " ".join(parts)
    return found


# --- looking, without touching ---------------------------------------------------------------------------------------


def _inspect(files: StoreFiles) -> None:
    """Raise if the file is not one that we may write to. Changes nothing.

    A refusal is looked at again: a file that another process is making at this moment can look odd for an instant.
    """
    for attempt in range(_LOOKS):
        if not files.size():
            return
        try:
            _judge(files, _look(files))
        except StoreBusy:
            raise
        except StoreError:
            if attempt == _LOOKS - 1:
                raise
            time.sleep(_LOOK_PAUSE)
        else:
            return


def _look(files: StoreFiles) -> _Look:
    if not os.access(files.path, os.R_OK):
        raise StoreUnreadable(f"{files.path} cannot be read: check its permissions. It was not changed.")
    # Without a log the file itself is the whole truth, and `immutable` leaves no side files behind.
    if not files.wal.exists():
        return _look_through(files, "immutable")
    try:
        return _look_through(files, "ro")
    except (StoreReadOnly, StoreUnreadable):
        return _look_through(files, "immutable")


def _look_through(files: StoreFiles, mode: Any) -> _Look:
    try:
        connection = connect(files.path, mode)
        try:
            connection.row_factory = dict_row
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_READER_MS}")
            rows = connection.execute(_OBJECTS).fetchall()
            look = _Look(
                pragma(connection, "application_id"),
                pragma(connection, "user_version"),
                frozenset(row["name"] for row in rows if row["type"] == "table"),
            )
            if not look.application_id and look.tables >= _OLD_TABLES:
                look.old_version = connection.execute(_OLD_VERSION).fetchone()["version"]
        finally:
            connection.close()
    except driver().module.Error as error:
        raise store_error(error) from error
    return look


def _judge(files: StoreFiles, look: _Look) -> None:
    if look.application_id == APPLICATION_ID:
        if look.user_version > SCHEMA_NUMBER:
            raise StoreNewer(
                f"{files.path} was written by a newer Threadline (schema {look.user_version}, this one knows "
                f"{SCHEMA_NUMBER}). Upgrade this one; the file was not changed."
            )
    elif look.old_version is not None:
        raise StoreForeign(
            f"{files.path} was written by another tool (schema version {look.old_version}). Taking over such a file is "
            "not available yet: choose another home or move the file away; it was not changed."
        )
    elif not look.empty:
        raise StoreForeign(
            f"{files.path} is not a Threadline database. Choose another home or move the file away; it was not changed."
        )


# --- opening ---------------------------------------------------------------------------------------------------------


def open_writer(files: StoreFiles, ticket: Ticket) -> sqlite3.Connection:
    """Open the database for the writer, make or complete its schema, and remember the files' identity."""
    files.refuse_unsafe_place()
    files.prepare_folder()
    _inspect(files)
    files.refuse_read_only()
    held = ticket.acquire(_TICKET_WAIT)
    try:
        if driver().safe_mode and not held:
            raise StoreBusy
        return _patiently(lambda: _open_prepared(files))
    finally:
        if held:
            ticket.release()


def open_reader(files: StoreFiles) -> sqlite3.Connection:
    """Open a connection that only reads. Raises `StoreLost` if the path leads to another file by now."""
    files.verify()
    connection = connect(files.path, "rw")
    try:
        _configure(connection, busy_ms=_BUSY_READER_MS, cache_kib=_CACHE_READER_KIB)
        connection.execute("PRAGMA query_only = ON")
        pragma(connection, "schema_version")
        files.verify()
    except BaseException:
        connection.close()
        raise
    return connection


def _patiently(work: Callable[[], T]) -> T:
    """Repeat `work` while others hold the file: first opens at once, recovery of the log, long writers."""
    deadline = time.monotonic() + _OPEN_BUDGET
    while True:
        try:
            return work()
        except driver().module.Error as error:
            mapped = store_error(error)
            # CANTOPEN shows for an instant when the last user of the log removes it while we come.
            if not isinstance(mapped, (StoreBusy, StoreUnreadable)) or time.monotonic() > deadline:
                raise mapped from error
        time.sleep(random.uniform(*_RETRY_PAUSE))  # noqa: S311 - jitter, not a secret


def _open_prepared(files: StoreFiles) -> sqlite3.Connection:
    connection = connect(files.path, "rwc", mode_of=files.lock)
    try:
        size = files.size() or 0
        _configure(
            connection, busy_ms=_BUSY_WRITER_MS, cache_kib=_CACHE_LARGE_KIB if size > _LARGE else _CACHE_WRITER_KIB
        )
        _use_log(connection, files)
        _complete(connection, files)
        files.make_private()
        files.remember()
    except BaseException:
        connection.close()
        raise
    return connection


def _configure(connection: sqlite3.Connection, *, busy_ms: int, cache_kib: int) -> None:
    connection.row_factory = dict_row
    # Another tool may have stored text that is not UTF-8: it must be readable, not a trap.
    connection.text_factory = functools.partial(str, encoding="utf-8", errors="replace")
    pages = 0 if driver().safe_mode else _WAL_PAGES
    for setting in (
        f"busy_timeout = {busy_ms}",
        "trusted_schema = OFF",
        "mmap_size = 0",
        "synchronous = FULL",
        "fullfsync = ON",
        "checkpoint_fullfsync = ON",
        "foreign_keys = ON",
        f"cache_size = -{cache_kib}",
        "temp_store = MEMORY",
        f"wal_autocheckpoint = {pages}",
        f"journal_size_limit = {_WAL_LIMIT}",
        "analysis_limit = 400",
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()


def _use_log(connection: sqlite3.Connection, files: StoreFiles) -> None:
    if pragma(connection, "journal_mode = WAL") != "wal":
        raise StoreUnreadable(f"{files.path} cannot use a write-ahead log here. Move the home to a local disk.")


def _complete(connection: sqlite3.Connection, files: StoreFiles) -> None:
    """Bring the schema to what is declared, in one transaction; most often there is nothing to do."""
    if pragma(connection, "user_version") == SCHEMA_NUMBER and not _missing(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        look = _Look(
            pragma(connection, "application_id"),
            pragma(connection, "user_version"),
            frozenset(row["name"] for row in connection.execute(_OBJECTS).fetchall() if row["type"] == "table"),
        )
        _judge(files, look)
        for statement in _missing(connection):
            connection.execute(statement)
        connection.execute(_WRITE_VERSION, (SCHEMA_NUMBER,))
        connection.execute(_RAISE_VERSION, (SCHEMA_NUMBER, SCHEMA_NUMBER))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_NUMBER}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _missing(connection: sqlite3.Connection) -> list[str]:
    """The statements that lead from the schema as it stands to the declared one."""
    wanted = declared()
    found = {row["name"]: row for row in connection.execute(_OBJECTS).fetchall()}
    statements = _retired(found.values())
    for table, columns in wanted.columns.items():
        if table in found:
            there = {row["name"] for row in connection.execute(_COLUMNS, (table,)).fetchall()}
            statements += [
                f'ALTER TABLE "{table}" ADD COLUMN {definition}'
                for name, definition in columns.items()
                if name not in there
            ]
    for name, (kind, sql) in wanted.objects.items():
        if name in found and kind in {"index", "trigger"} and found[name]["sql"] != sql:
            statements.append(f'DROP {kind.upper()} "{name}"')
            found.pop(name)
    if any(name not in found for name in wanted.objects):
        statements += wanted.statements
    return statements


def _retired(rows: Iterable[Row]) -> list[str]:
    ours = declared().objects
    statements = []
    for row in rows:
        name = row["name"]
        if row["type"] == "index" and name in _RETIRED_INDEXES:
            statements.append(f'DROP INDEX "{name}"')
        elif row["type"] == "trigger" and row["tbl_name"] in ours and name not in ours:
            _LOG.warning("A trigger of another tool, %s on %s, is left alone", name, row["tbl_name"])
    return statements


def pragma(connection: sqlite3.Connection, name: str) -> Any:
    """The single value of a pragma."""
    row = connection.execute(f"PRAGMA {name}").fetchone()
    return next(iter(row.values()))
