"""The parts of an album are one message: collected for a short wait, then worked together.

Contract: a row without a group id is returned at once, alone. The parts are rows of the inbox from the start, so a
restart inside the wait loses none; the wait ends `QUIET_SECONDS` after the last part was seen, or after
`LONGEST_SECONDS` in all.
After a restart parts may still wait at the platform, so an album begun before it is waited for longer. Meanwhile the
lane stands still, so later messages of it stay behind the album.
Limits: a part that comes after all that is a message of its own.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio

from gateway.bell import Bell

if TYPE_CHECKING:
    from session_store import InboxRow, SessionDB

__all__ = ["Albums"]

QUIET_SECONDS = 1.0
#: The same for an album of which parts came before this process had begun: its platform must first be connected.
QUIET_AFTER_RESTART_SECONDS = 4.0
LONGEST_SECONDS = 10.0


class Albums:
    """Waits for the parts of albums."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._began = time.time()
        self._closed = False

    def close(self) -> None:
        """End every wait; the parts stay in the inbox."""
        self._closed = True
        self._db.changes.note()

    async def whole(self, row: InboxRow) -> list[InboxRow] | None:
        """All parts of the row's album once no more seem to come, in order; None when it is closed before, or empty."""
        group = row["payload"].get("group_id")
        if not group:
            return [row]
        bell = Bell(self._db, "inbox")
        ending = anyio.current_time() + LONGEST_SECONDS
        seen: list[InboxRow] = []
        quiet_at = ending
        while not self._closed:
            parts = await self._db.inbox.album(row["lane"], group)
            now = anyio.current_time()
            if [part["id"] for part in parts] != [part["id"] for part in seen]:
                quiet_at = now + self._patience(parts)
            seen = parts
            left = min(quiet_at, ending) - now
            if left <= 0 or not seen:
                return seen or [row]
            await bell.wait(left)
        return None

    def _patience(self, parts: list[InboxRow]) -> float:
        before = any(part["received_at"] < self._began for part in parts)
        return QUIET_AFTER_RESTART_SECONDS if before else QUIET_SECONDS
