"""A bell that a waiting task listens to: it rings when anything was committed in the store, or when a task rings it.

Contract: a ring between two waits is not lost; several rings before a wait count as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from session_store import SessionDB

__all__ = ["Bell"]


class Bell:
    """One listener."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._changes = db.changes.subscribe()

    def ring(self) -> None:
        """End the current or the next wait."""
        self._db.changes.note()

    async def wait(self, seconds: float) -> None:
        """Return at a ring, at a commit of this or any process, or after `seconds`."""
        await self._changes.wait(seconds)
