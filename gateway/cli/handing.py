"""A handoff under way, as the interactive terminal shows it.

Contract: progress and outcome are shown as notes above the prompt while one types on. Ctrl-C calls it off; who leaves
the terminal leaves it to the gateway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from gateway.handoff_watch import call_off, watch
from gateway.handoff_words import outcome

if TYPE_CHECKING:
    from session_store import SessionDB

__all__ = ["Handing"]


class Handing:
    """At most one handoff of one terminal."""

    def __init__(self, db: SessionDB, tell: Callable[[str], None]) -> None:
        self._db = db
        self._tell = tell
        self._called_off = anyio.Event()
        self._begun, self._to_begin = anyio.create_memory_object_stream[str](8)
        self.active = False

    def begin(self, op_id: str) -> None:
        """Follow this request."""
        self.active = True
        self._begun.send_nowait(op_id)

    def call_off(self) -> None:
        """End it; its outcome is told."""
        self._called_off.set()

    async def run(self) -> None:
        """Follow one request after another until cancelled."""
        with self._begun, self._to_begin:
            async for op_id in self._to_begin:
                self._called_off = anyio.Event()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._obey, op_id)
                    row = await watch(self._db, op_id, self._tell)
                    tasks.cancel_scope.cancel()
                self.active = False
                if row is not None:
                    self._tell(outcome(row))

    async def _obey(self, op_id: str) -> None:
        await self._called_off.wait()
        await call_off(self._db, op_id)
