"""How long to wait before something that failed is tried again."""

from __future__ import annotations

import random

__all__ = ["FIRST_WAIT", "LONGEST_WAIT", "backoff"]

FIRST_WAIT = 1.0
LONGEST_WAIT = 30.0


def backoff(failures: int, longest: float = LONGEST_WAIT) -> float:
    """Return the seconds to wait after so many failures in a row: 1, 2, 4 ... less up to a third at random."""
    wait = min(longest, FIRST_WAIT * 2.0 ** min(failures - 1, 16))
    return wait * random.uniform(0.67, 1.0)  # noqa: S311  (spreads load, guards nothing)
