"""Opening a database: is it ours, is it whole, does it have the declared schema.

Contract: `open_writer` looks before it touches anything. A file that is not ours, is newer, cannot be read or lies on
a network file system is refused in one sentence and stays as it was, to the byte. A missing or empty file becomes ours
in one transaction under the ticket; an older file of ours is completed the same way (see schema.py). A file that is
whole is opened without waiting for anybody who writes.
Failure: StoreForeign, StoreNewer, StoreLost, StoreUnreadable, StoreReadOnly, StoreUnsafePlace, StoreDamaged, StoreBusy,
StoreFull.
A file of the documented older schema (versions 1 to 11) is taken over the same way, after a copy of it was made; see
migration.py. Who comes meanwhile waits for that.
All functions run on a database thread.
"""

from __future__ import annotations

import functools
import os
import random
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from session_store.driver import Mode, connect, driver, store_error
from session_store.errors import (
    StoreBusy,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreLost,
    StoreNewer,
    StoreReadOnly,
    StoreUnreadable,
)
from session_store.files import StoreFiles
from session_store.history import MigrationPlan, judge, plan, version_of
from session_store.migration import migrate
from session_store.schema import APPLICATION_ID, SCHEMA_NUMBER, missing, pragma, tables
from session_store.ticket import Ticket
from session_store.tx import dict_row

__all__ = ["examine", "open_reader", "open_writer"]

T = TypeVar("T")

_TICKET_WAIT: Final = 2.0
#: How long is waited for another process that takes over a large file.
_MIGRATION_WAIT: Final = 900.0
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

#: Our number where the documented schema keeps its own, for whoever asks there.
_WRITE_VERSION: Final = "INSERT INTO schema_version (version) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM schema_version)"
_RAISE_VERSION: Final = "UPDATE schema_version SET version = ? WHERE version < ?"


@dataclass(slots=True)
class _Look:
    """What a look at a file found."""

    application_id: int = 0
    user_version: int = 0
    tables: frozenset[str] = field(default_factory=frozenset)
    old_version: int | None = None

    @property
    def empty(self) -> bool:
        return not (self.application_id or self.user_version or self.tables)


# --- looking, without touching ---------------------------------------------------------------------------------------


def _inspect(files: StoreFiles) -> None:
    """Raise if the file is not one that we may write to. Changes nothing.

    A refusal is looked at again: a file that another process is making at this moment can look odd for an instant.
    """
    for attempt in range(_LOOKS):
        try:
            if files.size():
                _judge(files, _look(files))
            else:
                _refuse_orphaned_log(files)
        except StoreBusy:
            raise
        except StoreError:
            if attempt == _LOOKS - 1:
                raise
            time.sleep(_LOOK_PAUSE)
        else:
            return


def _refuse_orphaned_log(files: StoreFiles) -> None:
    """SQLite would delete the log of a database that is gone; it may hold the only copy of what was said last."""
    if files.wal_size():
        raise StoreLost(
            f"{files.path} is missing or empty but its log {files.wal.name} is there. Put the database back beside it, "
            "or move the log away to begin anew; nothing was changed."
        )


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


def _look_through(files: StoreFiles, mode: Mode) -> _Look:
    try:
        connection = connect(files.path, mode)
        try:
            connection.row_factory = dict_row
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_READER_MS}")
            look = _read_marks(connection)
            if look.old_version is not None:
                judge(connection, files.path, look.old_version)
        finally:
            connection.close()
    except driver().module.Error as error:
        raise store_error(error) from error
    return look


def _read_marks(connection: sqlite3.Connection) -> _Look:
    return _Look(
        pragma(connection, "application_id"),
        pragma(connection, "user_version"),
        tables(connection),
        version_of(connection),
    )


def _judge(files: StoreFiles, look: _Look) -> None:
    if look.application_id == APPLICATION_ID:
        if look.user_version > SCHEMA_NUMBER:
            raise StoreNewer(
                f"{files.path} was written by a newer Threadline (schema {look.user_version}, this one knows "
                f"{SCHEMA_NUMBER}). Upgrade this one; the file was not changed."
            )
    elif look.old_version is None and not look.empty:
        raise StoreForeign(
            f"{files.path} is not a Threadline database. Choose another home or move the file away; it was not changed."
        )


def examine(path: str | os.PathLike[str]) -> MigrationPlan | None:
    """Raise what opening `path` would raise at first sight; tell what taking it over would do. Changes nothing.

    None: the file is ours, or will be made.
    """
    files = StoreFiles(path)
    files.refuse_unsafe_place()
    _inspect(files)
    return plan(files.path)


# --- opening ---------------------------------------------------------------------------------------------------------


def open_writer(files: StoreFiles, ticket: Ticket) -> sqlite3.Connection:
    """Open the database for the writer, make or complete its schema, and remember the files' identity.

    A file that is whole is opened without waiting for anybody who writes.
    """
    files.refuse_unsafe_place()
    files.prepare_folder()
    files.refuse_odd_side_files()
    _inspect(files)
    files.refuse_read_only()
    ticket.open()
    connection = _patiently(lambda: _connect_writer(files), files)
    try:
        if not _patiently(lambda: _is_whole(connection), files):
            _complete_politely(connection, files, ticket)
        files.make_private()
        files.remember()
    except BaseException:
        connection.close()
        raise
    return connection


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


def _patiently(work: Callable[[], T], files: StoreFiles, budget: float = _OPEN_BUDGET) -> T:
    """Repeat `work` while others hold the file: first opens at once, recovery of the log, long writers."""
    deadline = time.monotonic() + budget
    while True:
        try:
            return work()
        except driver().module.Error as error:
            mapped = store_error(error)
            if isinstance(mapped, StoreUnreadable) and files.disk_is_full():
                raise StoreFull from error  # side files that cannot grow are an I/O error to SQLite
            # CANTOPEN shows for an instant when the last user of the log removes it while we come.
            if not isinstance(mapped, (StoreBusy, StoreUnreadable)) or time.monotonic() > deadline:
                raise mapped from error
        time.sleep(random.uniform(*_RETRY_PAUSE))  # noqa: S311 - jitter, not a secret


def _connect_writer(files: StoreFiles) -> sqlite3.Connection:
    connection = connect(files.path, "rwc", mode_of=files.lock if files.lock.exists() else None)
    try:
        large = (files.size() or 0) > _LARGE
        _configure(connection, busy_ms=_BUSY_WRITER_MS, cache_kib=_CACHE_LARGE_KIB if large else _CACHE_WRITER_KIB)
        _use_log(connection, files)
    except BaseException:
        connection.close()
        raise
    return connection


def _configure(connection: sqlite3.Connection, *, busy_ms: int, cache_kib: int) -> None:
    connection.row_factory = dict_row
    # Another tool may have stored text that is not UTF-8: it must be readable, not a trap.
    connection.text_factory = functools.partial(str, encoding="utf-8", errors="replace")
    for setting in (
        f"busy_timeout = {busy_ms}",
        "trusted_schema = OFF",
        "mmap_size = 0",
        "synchronous = FULL",
        "fullfsync = ON",
        "checkpoint_fullfsync = ON",
        "foreign_keys = ON",
        # What is deleted is overwritten: a message that was deleted is in no page of the file any more.
        "secure_delete = ON",
        f"cache_size = -{cache_kib}",
        "temp_store = MEMORY",
        f"wal_autocheckpoint = {0 if driver().safe_mode else _WAL_PAGES}",
        f"journal_size_limit = {_WAL_LIMIT}",
        "analysis_limit = 400",
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()


def _use_log(connection: sqlite3.Connection, files: StoreFiles) -> None:
    if pragma(connection, "journal_mode = WAL") != "wal":
        raise StoreUnreadable(f"{files.path} cannot use a write-ahead log here. Move the home to a local disk.")


def _is_whole(connection: sqlite3.Connection) -> bool:
    return pragma(connection, "user_version") == SCHEMA_NUMBER and not missing(connection)


def _complete_politely(connection: sqlite3.Connection, files: StoreFiles, ticket: Ticket) -> None:
    old = _patiently(lambda: version_of(connection), files) is not None
    wait = _MIGRATION_WAIT if old else _TICKET_WAIT
    held = ticket.acquire(wait)
    try:
        if driver().safe_mode and not held:
            raise StoreBusy
        _patiently(lambda: _complete(connection, files), files, wait if old else _OPEN_BUDGET)
    finally:
        if held:
            ticket.release()


def _complete(connection: sqlite3.Connection, files: StoreFiles) -> None:
    """Bring the schema to what is declared, in one transaction; a file of the documented history is taken over."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        look = _read_marks(connection)
        _judge(files, look)
        if look.old_version is not None:
            judge(connection, files.path, look.old_version)
            migrate(connection, files, look.old_version)
        for statement in missing(connection):
            connection.execute(statement)
        connection.execute(_WRITE_VERSION, (SCHEMA_NUMBER,))
        connection.execute(_RAISE_VERSION, (SCHEMA_NUMBER, SCHEMA_NUMBER))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_NUMBER}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
