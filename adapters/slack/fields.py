"""Reading what Slack sent: each field of its right type, or a `MalformedEvent` that names it.

Contract: nothing is guessed and nothing converted; an absent field and null are the same. Limits: ids are up to 255
characters without white space or `/`, times of messages are digits with one dot, as Slack makes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeGuard

__all__ = ["MalformedEvent", "as_id", "as_list", "as_mapping", "as_text", "as_ts", "is_ts", "needed", "ts_order"]

_ID = re.compile(r"[^\s/]{1,255}\Z")
_TS = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?\Z")
_FRACTION = 9


class MalformedEvent(ValueError):
    """The event lacks what every event of its kind has, or holds it in another form."""


def as_mapping(source: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Return an object, or None when there is none."""
    value = source.get(name)
    if value is not None and not isinstance(value, dict):
        raise MalformedEvent(f"its {name!r} is no object")
    return value


def as_list(source: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list, empty when there is none."""
    value = source.get(name)
    if value is not None and not isinstance(value, list):
        raise MalformedEvent(f"its {name!r} is no list")
    return value or []


def as_text(source: Mapping[str, Any], name: str) -> str:
    """Return a text, empty when there is none."""
    value = source.get(name)
    if value is not None and not isinstance(value, str):
        raise MalformedEvent(f"its {name!r} is no text")
    return value or ""


def as_id(source: Mapping[str, Any], name: str) -> str | None:
    """Return an id, or None when there is none."""
    value = as_text(source, name)
    if value and not _ID.match(value):
        raise MalformedEvent(f"its {name!r} is no id")
    return value or None


def as_ts(source: Mapping[str, Any], name: str) -> str | None:
    """Return the time of a message, which is also its id in its channel, or None when there is none."""
    value = as_text(source, name)
    if value and not _TS.match(value):
        raise MalformedEvent(f"its {name!r} is no time of a message")
    return value or None


def needed(value: str | None, name: str) -> str:
    """Return the value of a field that no event of its kind lacks."""
    if value is None:
        raise MalformedEvent(f"it has no {name!r}")
    return value


def is_ts(value: object) -> TypeGuard[str]:
    """Tell whether this is the time of a message."""
    return isinstance(value, str) and _TS.match(value) is not None


def ts_order(ts: str) -> tuple[int, int]:
    """Return what puts times of messages in order; as text and as floating numbers they would be wrong at times."""
    seconds, _, fraction = ts.partition(".")
    return int(seconds), int(fraction[:_FRACTION].ljust(_FRACTION, "0"))
