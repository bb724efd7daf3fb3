"""The only doors to SQL: `Rx` inside a read, `Tx` inside the write transaction.

Contract: operations are plain functions of a `Tx` (or `Rx`). They run on a database thread, never on the event loop,
hold no state of their own and must not catch driver errors. Every bound string passes `clean_text`, which makes any
Python string storable; this is the one place where text is cleaned. Rows come back as plain dicts.
Limits: an operation must be short; a read must carry a LIMIT.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from session_store.text import clean_text

if TYPE_CHECKING:
    import sqlite3

__all__ = ["Param", "Row", "Rx", "Tx", "dict_row"]

Param: TypeAlias = str | int | float | bytes | None
Row: TypeAlias = dict[str, Any]


def dict_row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> Row:
    """Row factory: column name -> value."""
    return {column[0]: value for column, value in zip(cursor.description, values, strict=True)}


def _bind(params: Sequence[Param]) -> list[Param]:
    return [clean_text(param) if isinstance(param, str) else param for param in params]


class Rx:
    """Reading half: one consistent view for the time of the call."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def one(self, sql: str, params: Sequence[Param] = ()) -> Row | None:
        """First row or None."""
        row: Row | None = self._connection.execute(sql, _bind(params)).fetchone()
        return row

    def all(self, sql: str, params: Sequence[Param] = ()) -> list[Row]:
        """All rows; the statement must have a LIMIT or a bound by key."""
        return self._connection.execute(sql, _bind(params)).fetchall()

    def each(self, sql: str, params: Sequence[Param] = ()) -> Iterator[Row]:
        """Rows one at a time, where they may be many or large; the statement must have a LIMIT or a bound by key."""
        cursor = self._connection.execute(sql, _bind(params))
        try:
            yield from cursor
        finally:
            cursor.close()

    def value(self, sql: str, params: Sequence[Param] = ()) -> Any:
        """First column of the first row, or None."""
        row = self.one(sql, params)
        return None if row is None else next(iter(row.values()))


class Tx(Rx):
    """Writing half. `now` is the wall clock of the transaction, `boot_now` the boot clock, both in seconds."""

    def __init__(self, connection: sqlite3.Connection, now: float, boot_now: float) -> None:
        super().__init__(connection)
        self.now = now
        self.boot_now = boot_now

    def run(self, sql: str, params: Sequence[Param] = ()) -> int:
        """Execute a statement; returns the number of changed rows."""
        return self._connection.execute(sql, _bind(params)).rowcount

    def insert(self, sql: str, params: Sequence[Param] = ()) -> int:
        """Execute an INSERT; returns the new row id."""
        return self._connection.execute(sql, _bind(params)).lastrowid or 0

    def run_many(self, sql: str, rows: Iterable[Sequence[Param]]) -> None:
        """Execute a statement once per row."""
        self._connection.executemany(sql, (_bind(row) for row in rows))
