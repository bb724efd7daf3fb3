"""Whether a socket that looks open still brings anything.

Contract: an app is told of its own posts where it is told of posts at all. `Echoes` notes what we post where such
echoes have come before; when one is missing for `ECHO_SECONDS` and nothing else has come since, the socket is
suspected. After a suspicion nothing is judged until an echo has come again, so a wrong one costs one new socket.
"""

from __future__ import annotations

import time
from collections import deque

__all__ = ["ECHO_SECONDS", "Echoes"]

ECHO_SECONDS = 20.0
_REMEMBERED = 256


class Echoes:
    """What came back of what one account posted. Times are monotonic."""

    def __init__(self) -> None:
        self._echoing: set[str] = set()
        self._came: deque[tuple[str, str]] = deque(maxlen=_REMEMBERED)
        self._missing_since: float | None = None

    def posted(self, channel: str, ts: str) -> None:
        """Take note of a post of ours; its echo may have come already."""
        if channel[:1] in self._echoing and (channel, ts) not in self._came and self._missing_since is None:
            self._missing_since = time.monotonic()

    def heard(self, own: tuple[str, str] | None) -> None:
        """Take note that an event came; own: channel and time of the post whose echo it is, if it is one."""
        self._missing_since = None
        if own is not None:
            self._echoing.add(own[0][:1])
            self._came.append(own)

    def overdue(self) -> bool:
        """Tell whether the socket must be suspected, and begin anew if so."""
        if self._missing_since is None or time.monotonic() - self._missing_since < ECHO_SECONDS:
            return False
        self._missing_since = None
        self._echoing.clear()
        return True
