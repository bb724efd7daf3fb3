"""A bell that a waiting task listens to: it rings when something was committed in the store, or when a task rings it.

Contract: a ring between two waits is not lost; several rings before a wait count as one. A bell for some tables sleeps
through what this process commits to others; a commit of another process rings every bell. With a `rest`, a wait returns
no sooner than that after the one before, so that many commits in a row are one reason to look; a first one after a
while is told at once. Ringing is safe also after the store was closed; then `wait` raises `StoreClosed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from session_store import SessionDB

__all__ = ["Bell"]


class Bell:
    """One listener. tables: of which tables it tells, none for all. rest: seconds between two waits."""

    def __init__(self, db: SessionDB, *tables: str, rest: float = 0.0) -> None:
        self._changes = db.changes.subscribe(*tables)
        self._rest = rest
        self._rested_at = 0.0

    def ring(self) -> None:
        """End the current or the next wait of this bell."""
        self._changes.ring()

    async def wait(self, seconds: float) -> None:
        """Return at a ring, at a commit, or after `seconds`."""
        if self._rest and (left := self._rested_at - anyio.current_time()) > 0:
            await anyio.sleep(left)
        await self._changes.wait(seconds)
        self._rested_at = anyio.current_time() + self._rest
