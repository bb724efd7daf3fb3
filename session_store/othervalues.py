"""Values of other tools that are not of the kind their column is declared with: SQLite stores any kind anywhere.

Contract: pure and total. Bytes become text (no column of ours holds bytes), and a time or a count that is not a number
becomes one: digits are read as they are, a date and time of ISO 8601 as its seconds (without a zone as UTC, like
SQLite does), anything else as 0. Rows of ours pass through unchanged; the stored values stay as they are.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from typing import Any, Final

__all__ = ["put_right"]

#: Columns of the documented tables that we compute with.
_NUMBERS: Final = ("timestamp", "started_at", "session_started", "last_active", "ended_at", "message_count")


def put_right(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row, changed in place where a value is of another kind than its column."""
    if bytes in map(type, row.values()):
        for name, value in row.items():
            if isinstance(value, bytes):
                row[name] = value.decode("utf-8", "replace")
    for name in _NUMBERS:
        if row.get(name).__class__ is str:
            row[name] = _number(row[name])
    return row


def _number(text: str) -> float:
    with contextlib.suppress(ValueError):
        number = float(text)
        return number if math.isfinite(number) else 0.0
    try:
        moment = dt.datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()
    except (ValueError, OverflowError):
        return 0.0
