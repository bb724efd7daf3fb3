"""Interrupted turns are never forgotten: what a dead process left is taken over and run again.

Contract: at the start, before new rows are dispatched, and then every few seconds, turns whose process is gone are
taken over if they came in through an account of this process. Two gateways that look at once: one wins the take-over.
Limits: `AT_ONCE` turns are recovered in parallel; the store bounds each look to 64 turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import anyio
import structlog

from session_store import StoreError

if TYPE_CHECKING:
    from gateway.desk import Desk
    from session_store import SessionDB, TurnRow

__all__ = ["Recovery"]

LOOK_SECONDS = 5.0
AT_ONCE = 16

_log = structlog.get_logger(__name__)


class Recovery:
    """Finds orphaned turns of some accounts and has them run."""

    def __init__(self, db: SessionDB, desk: Desk, accounts: Callable[[], Sequence[tuple[str, str]]]) -> None:
        self._db = db
        self._desk = desk
        self._accounts = accounts

    async def run(self) -> None:
        """Look again and again until cancelled."""
        while True:
            try:
                await self.sweep()
            except StoreError as error:
                _log.warning("recovery_postponed", error=str(error))
            await anyio.sleep(LOOK_SECONDS)

    async def sweep(self) -> int:
        """Recover what is orphaned now; returns how many turns were taken over."""
        await self._desk.settle()
        turns = await self._db.turns.orphaned(self._accounts(), limit=64)
        limiter = anyio.CapacityLimiter(AT_ONCE)
        taken = 0

        async def one(turn: TurnRow) -> None:
            nonlocal taken
            async with limiter:
                _log.info("turn_recovered", turn=turn["id"], session=turn["session_id"], attempt=turn["attempt"])
                taken += await self._desk.recover(turn["id"])

        async with anyio.create_task_group() as tasks:
            for turn in turns:
                tasks.start_soon(one, turn)
        return taken
