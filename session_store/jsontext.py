"""JSON columns: values to text and back.

Contract: text is written as people wrote it (no ASCII escapes) and is always valid JSON, so that search and other
tools can read it. What is read back can be written as JSON again. Text that is no JSON (other tools' rows) comes back
as it is.
Failure: a value that JSON cannot express raises `InvalidArgument`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from session_store.errors import InvalidArgument
from session_store.text import clean_text

__all__ = ["from_json", "plain", "to_json"]


def to_json(value: object) -> str | None:
    """Return the JSON text of `value`; None stays None, infinite and undefined numbers become null.

    Raises:
        InvalidArgument: something in `value` is no JSON type, or it refers to itself.
    """
    if value is None:
        return None
    try:
        return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"The value cannot be stored as JSON: {error}.") from error


def from_json(text: str | bytes | None) -> Any:
    """Return the value of a JSON column; text that is no JSON comes back unchanged."""
    if text is None:
        return None
    try:
        return plain(json.loads(text))
    except (ValueError, RecursionError):
        return plain(text)


def plain(value: Any) -> Any:
    """Return `value` with every text clean, bytes as text and numbers finite, so that it can be written as JSON."""
    match value:
        case str():
            return clean_text(value)
        case bytes():
            return value.decode("utf-8", "replace")
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {plain(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value
