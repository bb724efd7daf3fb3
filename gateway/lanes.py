"""From the durable inbox to work: rows of one lane one after another, lanes in parallel.

Contract: a lane is a session key (or the root of a session chosen by id). `Lanes.run` looks for new rows whenever
anything was committed, starts at most `MAX_LANES` workers, and each worker takes the oldest new row of its lane until
there is none. A conversation that another turn or process holds is waited for; the rows stay in the inbox meanwhile.
Failure: a row that cannot be worked because of its own content is set aside with a visible record after
`MAX_ATTEMPTS` tries; a store failure pauses the lane and is tried again.
Limits: `MAX_LANES` workers; the queue itself is the inbox table, nothing waits in memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import anyio
import structlog

from gateway.bell import Bell
from session_store import StoreError

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from session_store import InboxRow, SessionDB

__all__ = ["MAX_LANES", "Lanes", "Outcome"]

MAX_LANES = 64
MAX_ATTEMPTS = 3
RETRY_SECONDS = 1.0
BUSY_SECONDS = 0.05
IDLE_SECONDS = 5.0

_log = structlog.get_logger(__name__)

#: What a handler says of a row: True when it is worked, False when the conversation is held elsewhere for now.
Outcome = bool
Handler = Callable[["InboxRow"], Awaitable[Outcome]]


class Lanes:
    """The dispatcher of one process."""

    def __init__(
        self, db: SessionDB, accounts: Callable[[], Sequence[tuple[str, str]]], holder: str, handler: Handler
    ) -> None:
        self._db = db
        self._accounts = accounts
        self._holder = holder
        self._handler = handler
        self._active: set[str] = set()
        self._failures: dict[int, int] = {}
        self._bell = Bell(db)
        self._closing = False

    async def run(self) -> None:
        """Dispatch until `close`; then returns when the workers have ended."""
        async with anyio.create_task_group() as tasks:
            while not self._closing:
                try:
                    await self._dispatch(tasks)
                    await self._bell.wait(IDLE_SECONDS)
                except StoreError as error:
                    _log.warning("inbox_unreadable", error=str(error))
                    await anyio.sleep(RETRY_SECONDS)

    def close(self) -> None:
        """Take no further row; running ones go on."""
        self._closing = True
        self._bell.ring()

    async def _dispatch(self, tasks: TaskGroup) -> None:
        free = MAX_LANES - len(self._active)
        if free > 0:
            rows = await self._db.inbox.heads(self._accounts(), self._holder, limit=free, busy_lanes=list(self._active))
            for row in rows:
                if not self._closing:
                    self._active.add(row["lane"])
                    tasks.start_soon(self._work, row)

    async def _work(self, row: InboxRow) -> None:
        try:
            await self._handle(row)
        finally:
            self._active.discard(row["lane"])
            self._bell.ring()

    async def _handle(self, row: InboxRow) -> None:
        waiting = Bell(self._db)
        try:
            while not await self._handler(row) and not self._closing:
                # Each try is a transaction, and each commit rings: without the pause, waiting would make its own work.
                await anyio.sleep(BUSY_SECONDS)
                await waiting.wait(RETRY_SECONDS)
            self._failures.pop(row["id"], None)
        except StoreError as error:
            _log.warning("row_postponed", inbox_id=row["id"], error=str(error))
            await anyio.sleep(RETRY_SECONDS)
        except Exception as error:  # noqa: BLE001 - one row must not stop the others, whatever is wrong with it
            failures = self._failures[row["id"]] = self._failures.get(row["id"], 0) + 1
            _log.exception("row_failed", inbox_id=row["id"], attempt=failures)
            if failures >= MAX_ATTEMPTS:
                del self._failures[row["id"]]
                await self._db.inbox.set_aside(row["id"], f"{type(error).__name__}: {error}")
            else:
                await anyio.sleep(RETRY_SECONDS * failures)
