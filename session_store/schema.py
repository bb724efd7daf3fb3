"""The declared schema, and what a database lacks of it.

Contract: schema.sql and search_schema.sql say what there is; SQLite itself reads them (in memory), so that a database
is compared with what the statements make, not with their text. `missing` gives the statements that lead from a
database as it stands to the declared schema: tables, columns, indexes, triggers. Nothing is removed but one retired
index; triggers of other tools are left alone and reported.
Limits: a column is added with its type, default and reference, not with its CHECKs; types of columns are not changed.
"""

from __future__ import annotations

import functools
import logging
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from session_store.driver import driver
from session_store.tx import Row, dict_row

__all__ = ["APPLICATION_ID", "SCHEMA_NUMBER", "Declared", "declared", "missing", "pragma", "tables"]

_LOG = logging.getLogger(__name__)
#: Marks our files ("Thln"); never changes.
APPLICATION_ID: Final = 0x54686C6E
#: Number of the declared schema, in `PRAGMA user_version` and in the row of `schema_version`.
SCHEMA_NUMBER: Final = 13
_FILES: Final = ("schema.sql", "search_schema.sql")
#: The index of the documented older schema that would tell people of each other's titles. (Its search triggers are the
#: business of index.py, which must also see what they did.)
_RETIRED_INDEXES: Final = frozenset({"idx_sessions_title_unique"})

#: Every named object of a database with the statement that made it.
_OBJECTS: Final = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid LIMIT 2000"
#: What kind each table is: table, virtual, or shadow (a part of a virtual one).
_KINDS: Final = "SELECT name, type FROM pragma_table_list WHERE schema = 'main'"
#: Columns of one table as they stand.
_COLUMNS: Final = 'SELECT name, type, "notnull" AS required, dflt_value FROM pragma_table_info(?) LIMIT 2000'
#: Foreign keys of one table: column and what it points at.
_KEYS: Final = 'SELECT "from" AS name, "table" AS parent, "to" AS target FROM pragma_foreign_key_list(?) LIMIT 2000'


@dataclass(frozen=True, slots=True)
class Declared:
    """The schema as the .sql files say it.

    objects: name -> kind and statement. columns: table -> column -> its definition for ALTER TABLE. The tables that a
    virtual table consists of are left out of both: they are its own business.
    """

    statements: tuple[str, ...]
    objects: dict[str, tuple[str, str]]
    columns: dict[str, dict[str, str]]


@functools.cache
def declared() -> Declared:
    """Read the .sql files and let SQLite itself tell what they declare."""
    statements = tuple(statement for name in _FILES for statement in _statements(_text(name)))
    memory: sqlite3.Connection = driver().module.connect(":memory:", isolation_level=None)
    try:
        memory.row_factory = dict_row
        for statement in statements:
            memory.execute(statement)
        kinds = {row["name"]: row["type"] for row in memory.execute(_KINDS)}
        objects = {
            row["name"]: (row["type"], row["sql"])
            for row in memory.execute(_OBJECTS)
            if kinds.get(row["name"]) != "shadow"
        }
        columns = {name: _columns(memory, name) for name in objects if kinds.get(name) == "table"}
        return Declared(statements, objects, columns)
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


def missing(connection: sqlite3.Connection) -> list[str]:
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


def tables(connection: sqlite3.Connection) -> frozenset[str]:
    """Names of the tables of a database."""
    return frozenset(row["name"] for row in connection.execute(_OBJECTS).fetchall() if row["type"] == "table")


def pragma(connection: sqlite3.Connection, name: str) -> Any:
    """The single value of a pragma."""
    row = connection.execute(f"PRAGMA {name}").fetchone()
    return next(iter(row.values()))
