"""The only doors to SQL: `Rx` inside a read, `Tx` inside the write transaction.

Contract: operations are plain functions of a `Tx` (or `Rx`). They run on a database thread, never on the event loop,
hold no state of their own and must not catch driver errors. Every bound string passes `clean_text`, which makes any
Python string storable; this is the one place where text is cleaned. Rows come back as plain dicts.
Limits: an operation must be short; a read must carry a LIMIT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from session_store.othervalues import put_right
from session_store.redaction import redact
from session_store.text import clean_text

if TYPE_CHECKING:
    import sqlite3

__all__ = ["Param", "Row", "Rx", "Tx", "dict_row"]

Param: TypeAlias = str | int | float | bytes | None
Row: TypeAlias = dict[str, Any]

_WRITING: Final = re.compile(
    r"\s*(?:(?:INSERT|REPLACE)(?:\s+OR\s+\w+)?\s+INTO|UPDATE(?:\s+OR\s+\w+)?|DELETE\s+FROM)\s+(\w+)", re.IGNORECASE
)


def dict_row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> Row:
    """Row factory: column name -> value, of the kind that its column is for."""
    return put_right({column[0]: value for column, value in zip(cursor.description, values, strict=True)})


def _bind(params: Sequence[Param]) -> list[Param]:
    return [clean_text(param) if isinstance(param, str) else param for param in params]


#: Steps of SQLite's machine between two looks at the clock; some tenths of a millisecond.
_STEPS: Final = 10_000


class Rx:
    """Reading half: one consistent view for the time of the call."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._over: Callable[[], bool] | None = None
        self._stopped = False

    def one(self, sql: str, params: Sequence[Param] = ()) -> Row | None:
        """First row or None."""
        row: Row | None = self._connection.execute(sql, _bind(params)).fetchone()
        return row

    def all(self, sql: str, params: Sequence[Param] = ()) -> list[Row]:
        """All rows; the statement must have a LIMIT or a bound by key."""
        return self._connection.execute(sql, _bind(params)).fetchall()

    def each(self, sql: str, params: Sequence[Param] = ()) -> Iterator[Row]:
        """Rows one at a time, where they may be many or large; the statement must have a LIMIT or a bound by key."""
        cursor = self._connection.cursor()
        try:
            for row in cursor.execute(sql, _bind(params)):
                yield row
                if self._over is not None and self._over():
                    return
        except Exception:
            # The driver says "interrupted"; its class is not known here.
            if self._over is None or not self._over():
                raise
        finally:
            cursor.close()

    @contextmanager
    def stopping(self, over: Callable[[], bool]) -> Iterator[None]:
        """Within the block, once `over` says so, `each` gives no more rows: what it runs is interrupted."""
        self._stopped = False

        def look() -> bool:
            self._stopped = self._stopped or over()
            return self._stopped

        self._over = look
        self._connection.set_progress_handler(look, _STEPS)
        try:
            yield
        finally:
            self._over = None
            self._connection.set_progress_handler(None, 0)

    @property
    def stopped(self) -> bool:
        """Whether the last `stopping` has stopped anything."""
        return self._stopped

    def value(self, sql: str, params: Sequence[Param] = ()) -> Any:
        """First column of the first row, or None."""
        row = self.one(sql, params)
        return None if row is None else next(iter(row.values()))


@lru_cache(maxsize=2048)
def _written_by(sql: str) -> str:
    """The table that a statement writes, "*" if that cannot be told."""
    written = _WRITING.match(sql)
    return "*" if written is None else written[1]


class Tx(Rx):
    """Writing half. `now` is the wall clock of the transaction, `boot_now` the boot clock, both in seconds.

    touched: the tables that its statements may have written, "*" for any. redact: messages are stored without secrets.
    """

    def __init__(self, connection: sqlite3.Connection, now: float, boot_now: float) -> None:
        super().__init__(connection)
        self.now = now
        self.boot_now = boot_now
        self.touched: set[str] = set()
        self.redact = False

    def kept(self, text: str) -> str:
        """What may be stored of a text that people or agents wrote: all of it, or all but its secrets."""
        return redact(text) if self.redact else text

    def run(self, sql: str, params: Sequence[Param] = ()) -> int:
        """Execute a statement; returns the number of changed rows."""
        changed: int = self._connection.execute(sql, _bind(params)).rowcount
        if changed:
            self.touched.add(_written_by(sql))
        return changed

    def insert(self, sql: str, params: Sequence[Param] = ()) -> int:
        """Execute an INSERT; returns the new row id."""
        self.touched.add(_written_by(sql))
        return self._connection.execute(sql, _bind(params)).lastrowid or 0

    def run_returning(self, sql: str, params: Sequence[Param] = ()) -> Any:
        """Execute a writing statement; returns the first column of the first row that it returns, or None."""
        self.touched.add(_written_by(sql))
        return self.value(sql, params)

    def run_many(self, sql: str, rows: Iterable[Sequence[Param]]) -> None:
        """Execute a statement once per row."""
        self.touched.add(_written_by(sql))
        self._connection.executemany(sql, (_bind(row) for row in rows))
