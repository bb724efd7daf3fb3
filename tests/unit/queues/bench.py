"""A small engine for tests of the queues: one connection in memory, clocks that can be moved, processes that can die.

It runs each operation as one transaction on a thread of its own, as the real engine does. Times move by offsets:
`wall` and `boot` are added to the clocks of every transaction, so that something can be written an hour ago and looked
at now.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from session_store.control import Control
from session_store.effects import Effects
from session_store.inbox import Inbox
from session_store.models import Claim, ClaimRequest, Fence, NewInbox, PlaceRef
from session_store.outbox import Outbox
from session_store.pairing import Pairing
from session_store.people import People
from session_store.places import Places
from session_store.processes import Processes, ProcessIdentity, Registration, boot_clock, identity_of, register
from session_store.routes import Routes
from session_store.rows import SessionRow
from session_store.turns import Turns
from session_store.tx import Param, Row, Rx, Tx, dict_row

T = TypeVar("T")

SCHEMA = Path(__file__).parents[3] / "session_store" / "schema.sql"
HOME = PlaceRef("telegram", "main", "dm", "42")
GROUP = PlaceRef("telegram", "main", "group", "-7", name="The group")
TELEGRAM = [("telegram", "main")]


def never(_session: SessionRow, _received_at: float) -> None:
    """Judge that resets nothing."""
    return


class Bench:
    """The queues over a database of their own."""

    def __init__(self, path: str | Path = ":memory:") -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.row_factory = dict_row
        self.connection.executescript(SCHEMA.read_text(encoding="utf-8"))
        self.connection.execute("PRAGMA foreign_keys = ON")
        self.wall = 0.0
        self.boot = 0.0
        self._thread = ThreadPoolExecutor(max_workers=1)
        self.inbox, self.outbox, self.turns = Inbox(self), Outbox(self), Turns(self)
        self.people, self.places, self.pairing = People(self), Places(self), Pairing(self)
        self.routes, self.control, self.processes, self.effects = (
            Routes(self),
            Control(self),
            Processes(self),
            Effects(self),
        )

    async def write(self, op: Callable[[Tx], T], *, size: int = 0) -> T:
        """One transaction."""
        del size
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, op)

    async def read(self, query: Callable[[Rx], T], *, timeout: float | None = None) -> T:  # noqa: ASYNC109 - as the engine
        """One query."""
        del timeout
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._query, query)

    def apply(self, op: Callable[[Tx], T]) -> T:
        """One transaction, at once."""
        return self._thread.submit(self._commit, op).result()

    def look(self, query: Callable[[Rx], T]) -> T:
        """One query, at once."""
        return self._thread.submit(self._query, query).result()

    def _commit(self, op: Callable[[Tx], T]) -> T:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            result = op(Tx(self.connection, time.time() + self.wall, boot_clock() + self.boot))
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")
        return result

    def _query(self, query: Callable[[Rx], T]) -> T:
        return query(Rx(self.connection))

    def close(self) -> None:
        """End the thread and the connection."""
        self._thread.shutdown()
        self.connection.close()

    def rows(self, sql: str, *params: Param) -> list[Row]:
        """Rows as another tool sees them."""
        return self.look(lambda rx: rx.all(sql, params))

    def value(self, sql: str, *params: Param) -> Any:
        """One value as another tool sees it."""
        return self.look(lambda rx: rx.value(sql, params))

    def dump(self) -> dict[str, list[Row]]:
        """Everything that is stored, to see that nothing changed."""
        tables = self.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return {table["name"]: self.rows(f"SELECT * FROM {table['name']}") for table in tables}  # noqa: S608 - its own name

    def process(self, token: str, who: ProcessIdentity | None = None) -> str:
        """A living process: this one, or the one with the given identity."""

        def enter(tx: Tx) -> None:
            identity = who or identity_of(os.getpid())
            register(tx, Registration(token, identity, "gateway", ("telegram/main",), "{}", tx.now))

        self.apply(enter)
        return token

    def kill(self, token: str) -> None:
        """The process is gone, as after a restart of the machine."""
        self.apply(lambda tx: tx.run("UPDATE processes SET boot_id = 'another boot' WHERE token = ?", (token,)))

    async def arrives(self, key: str, text: str = "hello", place: PlaceRef = HOME, **changes: Any) -> int:
        """A message comes in; returns its inbox row."""
        return (await self.inbox.accept(incoming(key, text, place, **changes))).inbox_id

    async def claimed(self, key: str = "m:1", turn_id: str = "t1", holder: str = "A", **changes: Any) -> Claim:
        """A message comes in and is claimed for a turn."""
        row = await self.arrives(key)
        return await self.turns.claim(request([row], turn_id, holder, **changes), never)


def incoming(key: str, text: str = "hello", place: PlaceRef = HOME, **changes: Any) -> NewInbox:
    """A message as the edge records it."""
    session_key = f"agent:main:{place.platform}:{place.chat_type}:{place.chat}"
    given: dict[str, Any] = {
        "place": place,
        "dedupe_key": key,
        "kind": "message",
        "lane": session_key,
        "received_at": time.time(),
        "payload": {"text": text},
        "sender": {"user_id": "42", "name": "Ada"},
        "session_key": session_key,
    }
    return NewInbox(**given | changes)


def request(inbox_ids: Sequence[int], turn_id: str = "t1", holder: str = "A", **changes: Any) -> ClaimRequest:
    """A request to work rows of the direct chat."""
    given: dict[str, Any] = {
        "lane": "agent:main:telegram:dm:42",
        "place": HOME,
        "source": "telegram",
        "owner": "owner",
        "new_session_id": f"session-{turn_id}",
        "content": "hello",
        "session_key": "agent:main:telegram:dm:42",
    }
    return ClaimRequest(inbox_ids=inbox_ids, turn_id=turn_id, holder=holder, **given | changes)


def fence(claim: Claim) -> Fence:
    """The fence of a claim that was won."""
    assert claim.status == "claimed"
    assert claim.fence is not None
    return claim.fence
