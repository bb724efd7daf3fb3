"""Work in order per channel, while channels do not wait for each other.

Contract: jobs of one key run one after the other in the order they were put; a line without jobs takes no room. `put`
never waits: it tells whether there was room. A job that raises is logged, and the next one runs.
Limits: `IN_LINE` jobs a key, `IN_ALL` jobs together.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import structlog

__all__ = ["Job", "Lines"]

IN_LINE = 200
IN_ALL = 5000

Job = Callable[[], Awaitable[None]]

_log = structlog.get_logger(__name__)


class Lines:
    """The lines of one account. drained: called whenever a line has become empty."""

    def __init__(self, drained: Callable[[], None]) -> None:
        self._drained = drained
        self._waiting: dict[str, deque[Job]] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._count = 0

    def put(self, key: str, job: Job) -> bool:
        """Add a job to the end of a line; False: there is no room for it."""
        line = self._waiting.get(key)
        if self._count >= IN_ALL or (line is not None and len(line) >= IN_LINE):
            return False
        self._count += 1
        if line is not None:
            line.append(job)
            return True
        self._waiting[key] = deque([job])
        worker = asyncio.create_task(self._work(key), name=f"discord channel {key}")
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)
        return True

    def waits(self, key: str) -> bool:
        """Whether a line has work."""
        return key in self._waiting

    async def close(self, seconds: float) -> None:
        """End all work, for good; what was waiting is dropped."""
        for worker in self._workers:
            worker.cancel()
        if self._workers:
            await asyncio.wait(set(self._workers), timeout=seconds)

    async def _work(self, key: str) -> None:
        line = self._waiting[key]
        while line:
            job = line.popleft()
            try:
                await job()
            except Exception:  # noqa: BLE001  (what one job meets must not stop the line)
                _log.exception("discord_job_failed", channel=key)
            finally:
                self._count -= 1
        del self._waiting[key]
        self._drained()
