"""Interrupted turns are never forgotten: what a dead process left is taken over and run again.

Contract: at the start and then every few seconds, turns whose process is gone are taken over if they came in through an
account of this process; that a process has died is told by nobody, so it is looked for. A turn that takes long holds
up no other: looking goes on while recovered turns run. Two gateways that look at once: one wins the take-over.
Failure: a store that cannot be read, and a turn that cannot be taken over, are tried again at the next look.
Limits: `AT_ONCE` turns are recovered in parallel; the store bounds each look to 64 turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import anyio
import structlog

from session_store import StoreError

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from gateway.desk import Desk
    from session_store import SessionDB

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
        self._running: set[str] = set()
        self._closing = anyio.Event()

    async def run(self) -> None:
        """Look again and again until `close`; then returns when the recovered turns have ended."""
        async with anyio.create_task_group() as tasks:
            while not self._closing.is_set():
                try:
                    await self.look(tasks)
                except StoreError as error:
                    _log.warning("recovery_postponed", error=str(error))
                with anyio.move_on_after(LOOK_SECONDS):
                    await self._closing.wait()

    def close(self) -> None:
        """Look for nothing more; what was taken over goes on."""
        self._closing.set()

    async def look(self, tasks: TaskGroup) -> int:
        """Begin to recover what is orphaned now, in `tasks`; returns how many turns were begun."""
        await self._desk.settle()
        begun = 0
        for turn in await self._db.turns.orphaned(self._accounts(), limit=64):
            if turn["id"] not in self._running and len(self._running) < AT_ONCE:
                self._running.add(turn["id"])
                tasks.start_soon(self._recover, turn["id"])
                begun += 1
        return begun

    async def _recover(self, turn_id: str) -> None:
        try:
            await self._desk.recover(turn_id)
        except Exception as error:  # noqa: BLE001 - one turn must not stop the others, whatever is wrong with it
            if isinstance(error, StoreError):
                _log.warning("turn_not_recovered", turn=turn_id, error=str(error))
            else:
                _log.exception("turn_not_recovered", turn=turn_id)
        finally:
            self._running.discard(turn_id)
