"""From the durable inbox to work: rows of one lane one after another, lanes in parallel.

Contract: a lane is a session key (or the root of a session chosen by id). `Lanes.run` looks for new rows whenever
anything was committed and starts at most `MAX_LANES` workers. Each worker takes the oldest new row of its lane until
there is none; after `IN_A_ROW` rows it makes room for the lanes that wait, so that floods keep nobody out. A
conversation that another turn or process holds is waited for; the rows stay in the inbox meanwhile.
Failure: a row that cannot be worked because of its own content is set aside with a visible record after
`MAX_ATTEMPTS` tries. A failure of the store pauses the lane, longer each time, until the store works again.
Limits: `MAX_LANES` workers; the queue itself is the inbox table, nothing waits in memory. Looking takes time that grows
with the backlog, so a look is followed by a pause of its length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import anyio
import structlog

from gateway.bell import Bell
from session_store import StoreError

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from session_store import InboxRow, SessionDB
    from session_store.inbox import Head

__all__ = ["MAX_ATTEMPTS", "MAX_LANES", "Lanes", "Worker"]

MAX_LANES = 64
MAX_ATTEMPTS = 3
IN_A_ROW = 16
RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 15.0
#: Between two looks at a conversation that is held: the first pause, and the longest it grows to.
BUSY_SECONDS = (0.05, 0.8)
IDLE_SECONDS = 5.0

_log = structlog.get_logger(__name__)


class Worker(Protocol):
    """Who works the rows."""

    async def handle(self, row: InboxRow) -> bool:
        """Work a row: True when it is worked, False when its conversation is held elsewhere for now."""
        ...

    async def set_aside(self, row: InboxRow, reason: str) -> None:
        """Put a row that cannot be worked where somebody can look at it."""
        ...


class Lanes:
    """The dispatcher of one process."""

    def __init__(
        self, db: SessionDB, accounts: Callable[[], Sequence[tuple[str, str]]], holder: str, worker: Worker
    ) -> None:
        self._db = db
        self._accounts = accounts
        self._holder = holder
        self._worker = worker
        self._active: set[str] = set()
        # Lanes that have made room: the others go first.
        self._yielded: set[str] = set()
        self._bell = Bell(db, "inbox")
        self._closing = anyio.Event()

    async def run(self) -> None:
        """Dispatch until `close`; then returns when the workers have ended."""
        failures = 0
        async with anyio.create_task_group() as tasks:
            while not self._closing.is_set():
                try:
                    began = anyio.current_time()
                    await self._dispatch(tasks)
                    await self._pause(anyio.current_time() - began)
                    await self._bell.wait(IDLE_SECONDS)
                except StoreError as error:
                    failures += 1
                    _log.warning("inbox_unreadable", error=str(error))
                    await self._pause(_patience(failures))
                else:
                    failures = 0

    def close(self) -> None:
        """Take no further row; running ones go on."""
        self._closing.set()
        self._db.changes.note()

    async def _dispatch(self, tasks: TaskGroup) -> None:
        for left_out in (self._yielded, set[str]()):
            free = MAX_LANES - len(self._active)
            if free <= 0:
                return
            busy = [*self._active, *left_out]
            heads = await self._db.inbox.heads(self._accounts(), self._holder, limit=free, busy_lanes=busy)
            for head in heads:
                if not self._closing.is_set():
                    self._active.add(head.row["lane"])
                    tasks.start_soon(self._work, head)
            if not left_out or len(heads) == free:
                return
            self._yielded.clear()

    async def _work(self, head: Head) -> None:
        lane = head.row["lane"]
        row: InboxRow | None = head.row
        try:
            for _ in range(IN_A_ROW):
                if row is None or self._closing.is_set():
                    return
                await self._through(row)
                # What came meanwhile to a lane that was worked to its end is found by the next look.
                row = await self._next(lane) if head.more else None
            if row is not None:
                self._yielded.add(lane)
        finally:
            self._active.discard(lane)
            self._bell.ring()

    async def _next(self, lane: str) -> InboxRow | None:
        try:
            return await self._db.inbox.next_in(lane, self._accounts(), self._holder)
        except StoreError:
            return None

    async def _through(self, row: InboxRow) -> None:
        """Work one row, however often it must be tried; returns when it is worked, set aside, or the end has come."""
        own = foreign = 0
        while not self._closing.is_set():
            try:
                if await self._worked(row):
                    return
            except Exception as error:  # noqa: BLE001 - one row must not stop the others, whatever is wrong with it
                if isinstance(error, StoreError) and not isinstance(error, ValueError):
                    foreign += 1
                    _log.warning("row_postponed", inbox_id=row["id"], error=str(error))
                    await self._pause(_patience(foreign))
                    if not await self._is_new(row):
                        return
                    continue
                own += 1
                _log.exception("row_failed", inbox_id=row["id"], attempt=own)
                if own >= MAX_ATTEMPTS and await self._set_aside(row, error):
                    return
                await self._pause(_patience(own))

    async def _worked(self, row: InboxRow) -> bool:
        """Whether the row is worked; waits while its conversation is held, until the end has come."""
        waiting = Bell(self._db)
        pause, longest = BUSY_SECONDS
        while not await self._worker.handle(row):
            if self._closing.is_set():
                return False
            # The pause bounds how often a held conversation is looked at while others commit.
            await self._pause(pause)
            pause = min(2 * pause, longest)
            await waiting.wait(RETRY_SECONDS)
        return True

    async def _is_new(self, row: InboxRow) -> bool:
        """Whether the row still waits here: a turn that was begun and left belongs to the recovery."""
        try:
            now = await self._db.inbox.get(row["id"])
        except StoreError:
            return True
        return now is not None and now["state"] == "new"

    async def _set_aside(self, row: InboxRow, error: Exception) -> bool:
        try:
            await self._worker.set_aside(row, f"{type(error).__name__}: {error}")
        except StoreError as failure:
            _log.warning("row_not_set_aside_yet", inbox_id=row["id"], error=str(failure))
            return False
        return True

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the end comes."""
        with anyio.move_on_after(seconds):
            await self._closing.wait()


def _patience(failures: int) -> float:
    """Seconds to wait after so many failures in a row."""
    return min(LONGEST_RETRY_SECONDS, RETRY_SECONDS * 2.0 ** min(failures - 1, 8))
