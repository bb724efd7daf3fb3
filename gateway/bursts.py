"""Texts that one person sends in a row are one message, where `merge_window` says so.

Contract: a row is followed by those of its lane, place and sender that came at most the window after the one before;
anything else in between ends the burst. The rows lie in the inbox from the start, so a restart inside the wait loses
none. Meanwhile the lane stands still; what had to wait behind a turn anyway is not waited for again. Without a window,
and for entrances where every message has an answer of its own, a row is returned at once, alone.
Limits: `MOST` rows, `LONGEST_WINDOWS` windows in all; a row that comes after that is a message of its own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio

from gateway.bell import Bell
from gateway.places import LOCAL_PLATFORMS

if TYPE_CHECKING:
    from session_store import InboxRow, SessionDB

__all__ = ["Bursts", "burst"]

MOST = 20
LONGEST_WINDOWS = 10
#: After a restart the rest of a burst may still lie at the platform, which must first be connected.
QUIET_AFTER_RESTART_SECONDS = 4.0


def burst(rows: Sequence[InboxRow], window: float) -> tuple[list[InboxRow], bool]:
    """Return the rows of a lane that the first one is one message with, and whether nothing can be added any more."""
    chosen = list(rows[:1])
    for row in rows[1:]:
        if len(chosen) == MOST or not _continues(chosen[-1], row, window):
            return chosen, True
        chosen.append(row)
    return chosen, len(chosen) == MOST


def _continues(last: InboxRow, row: InboxRow, window: float) -> bool:
    """Whether a row is the same person's next words. Clocks of platforms step; what came later counts as later."""
    if row["kind"] != "message" or row["payload"].get("group_id"):
        return False
    alike = all(last[name] == row[name] for name in ("place_id", "person_id", "session_key"))
    same_sender = last["sender"].get("user_id") == row["sender"].get("user_id")
    return alike and same_sender and row["received_at"] - last["received_at"] <= window


class Bursts:
    """Waits for the rest of bursts. window: seconds, 0 to never wait."""

    def __init__(self, db: SessionDB, window: float) -> None:
        self._db = db
        self._window = window
        self._began = time.time()
        self._closed = False

    def close(self) -> None:
        """End every wait; the rows stay in the inbox."""
        self._closed = True
        self._db.changes.note()

    async def whole(self, row: InboxRow) -> list[InboxRow] | None:
        """The rows that are one message with this one, once no more seem to come; None when it is closed before."""
        if not self._window or row["platform"] in LOCAL_PLATFORMS or row["payload"].get("group_id"):
            return [row]
        bell = Bell(self._db, "inbox")
        ending = anyio.current_time() + LONGEST_WINDOWS * self._window + QUIET_AFTER_RESTART_SECONDS
        seen: list[InboxRow] = []
        quiet_at = ending
        while not self._closed:
            found, complete = burst(await self._db.inbox.following(row["id"], MOST + 1), self._window)
            now = anyio.current_time()
            if [each["id"] for each in found] != [each["id"] for each in seen]:
                quiet_at = now + self._patience(found)
            seen = found
            left = min(quiet_at, ending) - now
            if complete or left <= 0 or not seen:
                return seen or [row]
            await bell.wait(left)
        return None

    def _patience(self, rows: Sequence[InboxRow]) -> float:
        if not rows:
            return 0.0
        left = min(self._window, rows[-1]["received_at"] + self._window - time.time())
        restarted = rows[0]["received_at"] < self._began
        return max(left, self._began + QUIET_AFTER_RESTART_SECONDS - time.time() if restarted else 0.0)
