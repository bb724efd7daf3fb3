"""How long a platform asks to wait, whatever form it says it in: servers and what stands before them say odd things.

Contract: pure and total. The result is a number of seconds above 0 and at most `longest`: a wait that nobody lives to
see would make a bot deaf or mute for good.
"""

from __future__ import annotations

import math
from datetime import timedelta

__all__ = ["LONGEST", "asked_wait"]

#: Platforms shut out for hours, not for longer than a day.
LONGEST = 86_400.0


def asked_wait(told: object, untold: float, longest: float = LONGEST) -> float:
    """Return the seconds that `told` means: a number, its digits, or a timedelta; `untold` where it means nothing."""
    if isinstance(told, timedelta):
        told = told.total_seconds()
    if not isinstance(told, int | float | str):
        return untold
    try:
        seconds = float(told)
    except OverflowError:
        return longest
    except ValueError:
        return untold
    return untold if math.isnan(seconds) or seconds <= 0 else min(seconds, longest)
