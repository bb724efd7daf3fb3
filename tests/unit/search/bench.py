"""A small engine for tests of the search: one connection, transactions that end with an update of the index.

`write` is a transaction of ours; `foreign` is one by another tool, which knows nothing of the index. Nothing here
waits, so searches run to their end at once and no event loop is needed.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from session_store import index
from session_store.rows import SearchHits
from session_store.search import Search
from session_store.tx import Param, Row, Rx, Tx, dict_row

T = TypeVar("T")

PACKAGE = Path(__file__).parents[3] / "session_store"

#: Every posting of an index: term, message, column, position.
POSTINGS = "SELECT term, doc, col, offset FROM temp.postings ORDER BY doc, col, offset"
ADD = "INSERT INTO messages (session_id, role, content, tool_name, tool_calls, timestamp) VALUES (?, ?, ?, ?, ?, ?)"


class Bench:
    """The search over a database of its own."""

    def __init__(self, library: ModuleType = sqlite3, path: str | Path = ":memory:") -> None:
        self.library = library
        self.path = path
        self.connection = self.connect()
        for name in ("schema.sql", "search_schema.sql"):
            self.connection.executescript((PACKAGE / name).read_text(encoding="utf-8"))
        self.engine = _Engine(self)
        self._search = Search(self.engine)
        self.write(lambda _: None)

    def connect(self) -> sqlite3.Connection:
        """Another connection to the database."""
        connection: sqlite3.Connection = self.library.connect(self.path, isolation_level=None)
        connection.row_factory = dict_row
        return connection

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def reopen(self) -> None:
        """Go on with a fresh connection to the same file."""
        self.connection.close()
        self.connection = self.connect()

    # --- transactions ---

    def write(self, op: Callable[[Tx], T]) -> T:
        """One transaction of ours."""

        def whole(tx: Tx) -> T:
            result = op(tx)
            index.update(tx)
            return result

        return self.apply(whole)

    def apply(self, op: Callable[[Tx], T]) -> T:
        """One transaction of ours that leaves the index alone."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            result = op(Tx(self.connection, time.time(), time.monotonic()))
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")
        return result

    def foreign(self, sql: str, *params: Param) -> None:
        """One statement of another tool."""
        self.connection.execute(sql, params)

    def catch_up(self, limit: int = 256) -> None:
        """What the store does when it is idle."""
        for _ in range(1000):
            if not self.apply(lambda tx: index.rebuild_step(tx, limit)):
                return
        raise AssertionError("The index is never done.")

    # --- content ---

    def session(
        self, session_id: str = "s", *, source: str = "cli", owner: str | None = "owner", room: str | None = None
    ) -> str:
        """A session."""
        self.write(
            lambda tx: tx.run(
                "INSERT INTO sessions (id, source, started_at, owner, room_id, model, title)"
                " VALUES (?, ?, 5, ?, ?, ?, ?)",
                (session_id, source, owner, room, "a-model", f"title of {session_id}"),
            )
        )
        return session_id

    def add(  # noqa: PLR0913 - one parameter per column
        self,
        content: str | None,
        *,
        session: str = "s",
        role: str = "user",
        name: str | None = None,
        calls: str | None = None,
        at: float = 1.0,
    ) -> int:
        """A message of ours."""
        return self.write(lambda tx: tx.insert(ADD, (session, role, content, name, calls, at)))

    def foreign_add(self, content: str, *, session: str = "s") -> int:
        """A message that another tool puts in."""
        self.foreign(ADD, session, "user", content, None, None, 1.0)
        return int(self.value("SELECT max(id) FROM messages"))

    # --- looking ---

    def search(self, query: Any, *args: Any, **options: Any) -> SearchHits:
        """What the public search gives."""
        return finish(self._search.search_messages(query, *args, **options))

    def found(self, query: Any, *args: Any, **options: Any) -> list[int]:
        """The ids of what the public search gives."""
        return [hit["id"] for hit in self.search(query, *args, **options)]

    def value(self, sql: str, *params: Param) -> Any:
        """One value of the database."""
        return Rx(self.connection).value(sql, params)

    def postings(self) -> list[Row]:
        """Everything that the index holds."""
        self.connection.execute("CREATE VIRTUAL TABLE temp.postings USING fts5vocab(main, messages_fts, instance)")
        try:
            return self.connection.execute(POSTINGS).fetchall()
        finally:
            self.connection.execute("DROP TABLE temp.postings")

    def check_integrity(self) -> None:
        """The index's own check; raises when it is damaged."""
        self.connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('integrity-check')")


class _Engine:
    """The engine that the search asks."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    async def write(self, op: Callable[[Tx], T], *, size: int = 0) -> T:
        """One transaction."""
        del size
        return self._bench.write(op)

    async def read(self, query: Callable[[Rx], T], *, timeout: float | None = None) -> T:  # noqa: ASYNC109 - as the engine
        """One query."""
        del timeout
        return query(Rx(self._bench.connection))


def finish(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("It waits.")


def fresh_postings(bench: Bench) -> list[Row]:
    """What an index would hold that is built now from the messages alone."""
    other = Bench(bench.library)
    try:
        for table in ("sessions", "messages"):
            for row in bench.connection.execute(f"SELECT * FROM {table}").fetchall():  # noqa: S608 - one of the two
                columns = ", ".join(row)
                marks = ", ".join("?" * len(row))
                other.foreign(f"INSERT INTO {table} ({columns}) VALUES ({marks})", *row.values())  # noqa: S608 - the same
        other.catch_up()
        return other.postings()
    finally:
        other.close()
