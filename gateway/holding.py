"""Holding conversations in this process for work that is no turn.

Contract: inside `Grip.hold` nobody else, in whatever process, works the conversation, and nothing runs in it. It is let
go of in every case; if that cannot be written when it is due, `settle` does it once the store works again.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import structlog

from gateway.ids import new_turn_id
from session_store import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from session_store import Fence, SessionDB
    from session_store.holding import Held

__all__ = ["Grip"]

_log = structlog.get_logger(__name__)


class Grip:
    """Holds conversations for one process."""

    def __init__(self, db: SessionDB, holder: str) -> None:
        self._db = db
        self._holder = holder
        self._unsettled: list[Fence] = []

    @asynccontextmanager
    async def hold(self, session_id: str, purpose: str) -> AsyncIterator[Held]:
        """Hold the conversation of a session, if it is free: see `Held.status`."""
        # Cancelled meanwhile it is still taken, and must be let go of.
        with anyio.CancelScope(shield=True):
            held = await self._db.holding.take(session_id, self._holder, new_turn_id(), purpose)
        try:
            await anyio.lowlevel.checkpoint()
            yield held
        finally:
            if held.fence is not None:
                await self._let_go(held.fence)

    async def settle(self) -> None:
        """Let go of what could not be let go of when it was due."""
        unsettled, self._unsettled = self._unsettled, []
        for fence in unsettled:
            await self._let_go(fence)

    async def _let_go(self, fence: Fence) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await self._db.holding.let_go(fence)
            except StoreError as error:
                # This process still beats the lease, so it must be the one that lets go.
                self._unsettled.append(fence)
                _log.warning("conversation_not_let_go_yet", root=fence.root_id, error=str(error))
