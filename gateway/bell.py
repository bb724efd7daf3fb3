"""A bell that a waiting task listens to: it rings when anything was committed in the store, or when a task rings it.

Contract: a ring between two waits is not lost; several rings before a wait count as one. All bells of a store ring
together. Ringing is safe also after the store was closed; then `wait` raises `StoreClosed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from session_store import SessionDB

__all__ = ["Bell"]


class Bell:
    """One listener."""

    def __init__(self, db: SessionDB) -> None:
        self._source = db.changes
        self._changes = self._source.subscribe()

    def ring(self) -> None:
        """End the current or the next wait."""
        self._source.note()

    async def wait(self, seconds: float) -> None:
        """Return at a ring, at a commit of this or any process, or after `seconds`."""
        await self._changes.wait(seconds)
