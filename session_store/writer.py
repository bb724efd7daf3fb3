"""The single writer of a process: a bounded queue of operations, drained into one transaction after another.

Contract: `submit` waits for room (1024 operations, 16 MiB; first come, first served; 30 s, then StoreBusy), then for
the COMMIT of the batch that carries the operation. Batches form by themselves: what came in while one was committed
makes the next one (at most 256 operations, 1 MiB, 25 ms of applying). One hop to the database thread per batch.
Cancellation: a submitted operation is done whether or not somebody still waits for it. After a failure whose outcome is
unknown the same operation can be submitted again, since operations are idempotent by their natural keys.
Failure: an operation's own error goes to its caller alone; an error of the file or disk goes to every caller of the
batch, and the next batch tries anew. After `close` began: StoreClosed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from session_store.batch import Apply, Committer, Outcome
from session_store.driver import HopConnection, store_error
from session_store.errors import StoreBusy, StoreClosed, StoreError
from session_store.upkeep import Upkeep

__all__ = ["Writer"]

_LOG = logging.getLogger(__name__)

QUEUE_OPERATIONS: Final = 1024
QUEUE_BYTES: Final = 16 * 1024 * 1024
BATCH_OPERATIONS: Final = 256
BATCH_BYTES: Final = 1024 * 1024
#: How long an operation may wait for room, and again for its batch to begin.
WAIT_LIMIT: Final = 30.0
#: Seconds that closing may spend on an index that cannot be used, or on words that were deleted.
PARTING: Final = 0.3
#: Seconds without work after which the upkeep begins, and between its steps, so that other processes get their turn.
QUIET: Final = 2.0
BETWEEN_STEPS: Final = 0.05


@dataclass(slots=True, eq=False)
class _Submitted:
    apply: Apply
    size: int
    deadline: float
    future: asyncio.Future[Any]


@dataclass(slots=True, eq=False)
class _Waiting:
    """A caller in line for room in the queue."""

    size: int
    admitted: asyncio.Future[None]


class Writer:
    """Owns the writer connection and the task that drains the queue."""

    def __init__(
        self,
        connection: HopConnection,
        committer: Committer,
        upkeep: Upkeep,
        committed: Callable[[Collection[str]], None],
    ) -> None:
        self._connection = connection
        self._committer = committer
        self._upkeep = upkeep
        self._committed = committed
        self._untidy = True
        self._loop = asyncio.get_running_loop()
        self._queue: deque[_Submitted] = deque()
        self._line: deque[_Waiting] = deque()
        self._count = 0
        self._bytes = 0
        self._work = asyncio.Event()
        self._closing = False
        self._task = asyncio.create_task(self._run(), name="threadline-writer")

    async def submit(self, apply: Apply, size: int) -> Any:
        """Queue one operation and wait until it is committed; returns its result or raises its error."""
        self._refuse()
        if self._line or not self._has_room(size):
            await self._wait_in_line(size)
            if self._closing:
                self._release(1, size)
                raise StoreClosed
        else:
            self._admit(size)
        operation = _Submitted(apply, size, self._loop.time() + WAIT_LIMIT, self._loop.create_future())
        self._queue.append(operation)
        self._work.set()
        return await operation.future

    async def close(self) -> None:
        """Refuse new operations, commit those that were submitted, stop the task. Safe to repeat."""
        self._closing = True
        for waiting in self._line:
            if not waiting.admitted.done():
                waiting.admitted.set_exception(StoreClosed())
        self._line.clear()
        self._work.set()
        await asyncio.wait({self._task})

    # --- room --------------------------------------------------------------------------------------------------------

    def _refuse(self) -> None:
        if self._closing:
            raise StoreClosed
        if self._committer.stopped is not None:
            raise _again(self._committer.stopped)

    def _has_room(self, size: int) -> bool:
        # A value larger than the whole budget is let in when nothing else is there.
        return self._count < QUEUE_OPERATIONS and (self._bytes + size <= QUEUE_BYTES or not self._count)

    def _admit(self, size: int) -> None:
        self._count += 1
        self._bytes += size

    async def _wait_in_line(self, size: int) -> None:
        waiting = _Waiting(size, self._loop.create_future())
        self._line.append(waiting)
        try:
            async with asyncio.timeout(WAIT_LIMIT):
                await waiting.admitted
        except BaseException as error:
            if waiting in self._line:
                self._line.remove(waiting)
            elif waiting.admitted.done() and not waiting.admitted.cancelled() and not waiting.admitted.exception():
                self._release(1, size)  # admitted and cancelled in the same instant
            if isinstance(error, TimeoutError):
                raise StoreBusy(
                    f"The store has more to write than the disk takes: no room within {WAIT_LIMIT:.0f} s. "
                    "Try again; nothing was written."
                ) from error
            raise

    def _release(self, count: int, size: int) -> None:
        self._count -= count
        self._bytes -= size
        while self._line and self._has_room(self._line[0].size):
            waiting = self._line.popleft()
            if not waiting.admitted.done():
                self._admit(waiting.size)
                waiting.admitted.set_result(None)

    # --- batches -----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while self._queue or not self._closing:
                batch = self._take()
                if batch:
                    await self._commit(batch)
                elif not self._closing:
                    await self._rest()
            await self._part()
        finally:  # reached with operations left only when the loop itself is being torn down
            self._closing = True
            left = list(self._queue)
            self._queue.clear()
            self._settle(left, [Outcome(error=StoreClosed()) for _ in left])

    async def _rest(self) -> None:
        """Wait for work; after a quiet while do the upkeep, step by step, until work comes."""
        self._work.clear()
        pause = QUIET
        while not self._work.is_set():
            try:
                async with asyncio.timeout(pause if self._untidy else None):
                    await self._work.wait()
            except TimeoutError:
                pause = BETWEEN_STEPS
                await self._upkeep_step()

    async def _upkeep_step(self) -> None:
        try:
            self._untidy = await self._connection.hop(self._upkeep.step)
        except Exception as error:  # noqa: BLE001 - upkeep is never worth a failure; the next quiet moment tries again
            self._untidy = False
            _LOG.warning("Upkeep was put off: %s", error)

    async def _part(self) -> None:
        """A process that is called and ends has no quiet moments: it does a little of what is pressing as it goes."""
        until = self._loop.time() + PARTING
        try:
            while self._loop.time() < until and await self._connection.hop(self._upkeep.mend):
                pass
        except Exception as error:  # noqa: BLE001 - as above
            _LOG.warning("The search index was not mended: %s", error)

    def nudge(self) -> None:
        """Another process has written: the index may have to catch up in the next quiet moment."""
        self._untidy = True
        self._work.set()

    def _take(self) -> list[_Submitted]:
        batch: list[_Submitted] = []
        size = 0
        now = self._loop.time()
        while (
            self._queue and len(batch) < BATCH_OPERATIONS and (not batch or size + self._queue[0].size <= BATCH_BYTES)
        ):
            operation = self._queue.popleft()
            if now > operation.deadline:
                self._settle([operation], [Outcome(error=StoreBusy())])
                continue
            batch.append(operation)
            size += operation.size
        return batch

    async def _commit(self, batch: list[_Submitted]) -> None:
        done = 0

        def settle(outcomes: list[Outcome], changed: Collection[str]) -> None:
            self._settle(batch, outcomes)
            if changed:
                self._upkeep.begin()
                self._untidy = True
                self._committed(changed)

        def deliver(outcomes: list[Outcome], changed: Collection[str]) -> None:  # called by the thread
            nonlocal done
            done = len(outcomes)
            self._loop.call_soon_threadsafe(settle, outcomes, changed)

        applies = [operation.apply for operation in batch]
        try:
            await self._connection.hop(self._committer.commit, applies, deliver, self._has_more)
        except Exception as error:  # noqa: BLE001 - every caller of the batch is told
            failed = batch[done:]
            self._settle(failed, [Outcome(error=_again(store_error(error))) for _ in failed])
            _LOG.warning("A batch of %d operations was not written: %s", len(failed), error)
        else:
            self._queue.extendleft(reversed(batch[done:]))

    def _has_more(self) -> bool:
        return bool(self._queue)

    def _settle(self, batch: list[_Submitted], outcomes: list[Outcome]) -> None:
        for operation, outcome in zip(batch, outcomes, strict=False):
            future = operation.future
            if not future.done():  # a caller that was cancelled no longer listens
                if outcome.error is None:
                    future.set_result(outcome.result)
                else:
                    future.set_exception(outcome.error)
        settled = batch[: len(outcomes)]
        self._release(len(settled), sum(operation.size for operation in settled))


def _again(error: Exception) -> Exception:
    """A copy for each caller: an exception that several tasks raise would collect all their tracebacks."""
    if not isinstance(error, StoreError):
        return error
    copy = type(error)(str(error))
    copy.__cause__ = error.__cause__
    return copy
