"""When people write: hours, weekdays and days in a row, in the zone of this machine. Pure and total."""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from session_store import Moment

__all__ = ["WEEKDAYS", "Rhythm", "rhythm"]

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Messages by hour (0 to 23) and weekday (0 is Monday), days with any, and the most of these in a row."""

    hours: tuple[int, ...]
    weekdays: tuple[int, ...]
    days: int
    streak: int


def rhythm(moments: Sequence[Moment]) -> Rhythm:
    """What the quarters of an hour come to."""
    hours, weekdays = Counter[int](), Counter[int]()
    days: set[dt.date] = set()
    for quarter in moments:
        try:
            local = time.localtime(quarter["moment"])
            days.add(dt.date(local.tm_year, local.tm_mon, local.tm_mday))
        except (OverflowError, ValueError, OSError):
            continue  # a time that no calendar knows, as another tool may have stored it
        hours[local.tm_hour] += quarter["messages"]
        weekdays[local.tm_wday] += quarter["messages"]
    return Rhythm(
        tuple(hours[hour] for hour in range(24)),
        tuple(weekdays[day] for day in range(7)),
        len(days),
        _longest(days),
    )


def _longest(days: set[dt.date]) -> int:
    """How many days there are in a row at most."""
    day = dt.timedelta(days=1)
    longest = 0
    for first in days:
        if first - day not in days:
            last = first
            while last + day in days:
                last += day
            longest = max(longest, (last - first).days + 1)
    return longest
