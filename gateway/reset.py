"""When a session has been left for so long that a new message starts a fresh one.

Contract: pure; judged with the session's stored last activity and the time the message was received, so a restart or
a late replay changes nothing. Two rules: *idle* falls due `idle_minutes` after the last activity; *daily* falls due at
the first `at_hour`:00 after it, by the wall clock of the configured zone. With both rules the reason given is the rule
that fell due first, and it stays the same however much later the message comes.

Daylight saving: a boundary that the spring change skips happens at the first instant after the gap; one that the
autumn change shows twice happens once, at its first showing. A clock that stepped back never resets anything.

Limits: the zone's data is read from disk when a policy is made, so make it at start-up and not on the event loop.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

from gateway.errors import UnknownTimezone

__all__ = ["ResetMode", "ResetPolicy", "ResetReason"]

ResetMode: TypeAlias = Literal["none", "idle", "daily", "both"]
ResetReason: TypeAlias = Literal["idle", "daily"]

_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    """One policy. idle_minutes >= 1; at_hour 0-23; timezone: IANA name, None for the machine's own zone.

    Raises UnknownTimezone for a zone that is not known.
    """

    mode: ResetMode
    idle_minutes: int
    at_hour: int
    timezone: str | None = None
    _zone: ZoneInfo | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_zone", None if self.timezone is None else _zone(self.timezone))

    def judge(self, last_active: float, now: float) -> ResetReason | None:
        """Return why a session last active at `last_active` ends for a message of `now`, or None. Unix seconds."""
        if self.mode == "none" or now <= last_active:
            return None
        # Times before 1970 can only be a broken clock's; they count as "long ago".
        since = max(last_active, 0.0)
        idle = since + self.idle_minutes * _MINUTE if self.mode in {"idle", "both"} else math.inf
        daily = self._first_boundary(since) if self.mode in {"daily", "both"} else math.inf
        if min(idle, daily) > now:
            return None
        return "daily" if daily <= idle else "idle"

    def _first_boundary(self, since: float) -> float:
        """Return the first daily boundary later than `since`."""
        day = dt.datetime.fromtimestamp(since, self._zone).date() - dt.timedelta(days=1)
        while (boundary := self._boundary(day)) <= since:
            day += dt.timedelta(days=1)
        return boundary

    def _boundary(self, day: dt.date) -> float:
        """Return the first instant at which the wall clock shows `at_hour` of `day` or, where skipped, later."""
        wall = dt.datetime.combine(day, dt.time(self.at_hour))
        shown = wall.replace(tzinfo=self._zone).timestamp()
        if self._wall(shown) == wall:
            return shown
        # In a gap the two readings of the wall time lie on either side of the change; halve until it is found.
        before, after = int(wall.replace(tzinfo=self._zone, fold=1).timestamp()), int(shown)
        while after - before > 1:
            middle = (before + after) // 2
            if self._wall(middle) < wall:
                before = middle
            else:
                after = middle
        return float(after)

    def _wall(self, instant: float) -> dt.datetime:
        return dt.datetime.fromtimestamp(instant, self._zone).replace(tzinfo=None, fold=0)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        message = f'The time zone "{name}" is not known. Use a name like "Europe/Berlin", or leave it out.'
        raise UnknownTimezone(message) from error
