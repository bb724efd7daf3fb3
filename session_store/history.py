"""The documented older schema, versions 1 to 11: is a file of that history, and what has to be done to it.

Contract: only looks. A file belongs to the history if it has no application id, the tables `schema_version`, `sessions`
and `messages`, a version of at most 11 (none counts as the first), and the columns without which a row means nothing.
The number is only a hint: it may be ahead of the columns or behind them, so what is missing is told by comparison.
Failure: `StoreForeign` for a higher version and for a form that is not the documented one.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from session_store.driver import connect, driver, store_error
from session_store.errors import StoreForeign
from session_store.files import StoreFiles
from session_store.schema import declared, pragma, tables
from session_store.tx import dict_row

__all__ = ["HIGHEST", "MigrationPlan", "backup_path", "judge", "look", "plan", "version_of"]

#: The last version of the documented history.
HIGHEST: Final = 11

_TABLES: Final = frozenset({"schema_version", "sessions", "messages"})
#: What cannot be made up for a row that lacks it.
_ESSENTIAL: Final = {
    "sessions": frozenset({"id", "source", "started_at"}),
    "messages": frozenset({"id", "session_id", "role", "content", "timestamp"}),
}

#: The number that the documented schema keeps in a table.
_VERSION: Final = "SELECT max(version) AS version FROM schema_version"
_COLUMNS: Final = "SELECT name FROM pragma_table_info(?) LIMIT 2000"
_VIEWS: Final = "SELECT name FROM sqlite_master WHERE type = 'view' LIMIT 2000"
_SESSIONS: Final = "SELECT count(*) AS number FROM sessions"
_MESSAGES: Final = "SELECT count(*) AS number FROM messages"
#: Search tables of the history, whatever their form, without the parts they consist of.
_SEARCH: Final = "SELECT name FROM sqlite_master WHERE name IN ('messages_fts', 'messages_fts_trigram') LIMIT 2"


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What taking over a file would do. columns: `table.column` that would be added; search: tables replaced by ours.

    backup: where a whole copy is put before anything changes.
    """

    path: Path
    version: int
    sessions: int
    messages: int
    columns: tuple[str, ...]
    search: tuple[str, ...]
    backup: Path
    size: int


def version_of(connection: sqlite3.Connection) -> int | None:
    """The version of a file of the history; None when it is nothing of the kind. Ours has none: it has a mark."""
    if pragma(connection, "application_id") or not tables(connection) >= _TABLES:
        return None
    found = connection.execute(_VERSION).fetchone()["version"]
    return found if isinstance(found, int) else 1


def judge(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Raise `StoreForeign` unless a file of this version can be taken over."""
    if version > HIGHEST:
        raise StoreForeign(
            f"{path} was written by another tool with a newer schema (version {version}; up to {HIGHEST} can be taken "
            "over). Choose another home or move the file away; it was not changed."
        )
    views = {row["name"] for row in connection.execute(_VIEWS).fetchall()}
    for name in sorted(views & declared().objects.keys()):
        raise StoreForeign(
            f"{path} cannot be taken over: it has a view named {name} where a table of Threadline belongs. Rename "
            "the view. Choose another home or move the file away; it was not changed."
        )
    for table, essential in _ESSENTIAL.items():
        lacking = sorted(essential - _columns(connection, table))
        if lacking:
            raise StoreForeign(
                f"{path} cannot be taken over: its table {table} has no column {lacking[0]}. Choose another home or "
                "move the file away; it was not changed."
            )


def look(path: Path, connection: sqlite3.Connection, version: int) -> MigrationPlan:
    """What would be done to a file of the history."""
    found = {table: _columns(connection, table) for table in tables(connection)}
    return MigrationPlan(
        path=path,
        version=version,
        sessions=connection.execute(_SESSIONS).fetchone()["number"],
        messages=connection.execute(_MESSAGES).fetchone()["number"],
        columns=tuple(
            f"{table}.{column}"
            for table, columns in declared().columns.items()
            if table in found
            for column in columns
            if column not in found[table]
        ),
        search=tuple(row["name"] for row in connection.execute(_SEARCH).fetchall()),
        backup=backup_path(path, version),
        size=pragma(connection, "page_count") * pragma(connection, "page_size"),
    )


def plan(path: Path) -> MigrationPlan | None:
    """What opening `path` would do if it is a file of the history, without touching it; None for any other file.

    Raises the store's error when the file cannot be read or is refused.
    """
    files = StoreFiles(path)
    if not files.size():
        return None
    try:
        connection = connect(files.path, "ro" if files.wal.exists() else "immutable")
        try:
            connection.row_factory = dict_row
            version = version_of(connection)
            if version is None:
                return None
            judge(connection, files.path, version)
            return look(files.path, connection, version)
        finally:
            connection.close()
    except driver().module.Error as error:
        raise store_error(error) from error


def backup_path(path: Path, version: int) -> Path:
    """Where the copy of a file goes: beside it, under a name that is not taken."""
    first = path.with_name(f"{path.name}.v{version}-backup")
    number = 2
    found = first
    while found.exists():
        found = path.with_name(f"{first.name}-{number}")
        number += 1
    return found


def _columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    return frozenset(row["name"] for row in connection.execute(_COLUMNS, (table,)).fetchall())
