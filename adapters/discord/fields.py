"""The fields of what Discord sends, taken only in the form that they must have.

Contract: pure; every function returns the field, or raises `MalformedEvent`, which says what was there instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["MalformedEvent", "as_list", "as_mapping", "as_text", "as_whole", "snowflake"]


class MalformedEvent(ValueError):
    """The event lacks what every one of its kind has, or holds it in another form."""


def snowflake(body: Mapping[str, Any], name: str) -> str:
    """Return an id as places carry it."""
    value = body.get(name)
    if not isinstance(value, str) or not value.isascii() or not value.isdigit():
        raise MalformedEvent(f"no id where {name} belongs: {value!r:.100}")
    return value


def as_mapping(value: Any, what: str) -> Mapping[str, Any]:
    """Return an object. what: what it should be, for the error."""
    if not isinstance(value, dict):
        raise MalformedEvent(f"{what} that is none: {value!r:.100}")
    return value


def as_list(value: Any, what: str) -> Sequence[Any]:
    """Return a list; none at all is an empty one."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise MalformedEvent(f"{what} that are none: {value!r:.100}")
    return value


def as_text(body: Mapping[str, Any], name: str) -> str:
    """Return a text."""
    value = body.get(name)
    if not isinstance(value, str):
        raise MalformedEvent(f"no text where {name} belongs: {value!r:.100}")
    return value


def as_whole(body: Mapping[str, Any], name: str) -> int:
    """Return a whole number."""
    value = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise MalformedEvent(f"no number where {name} belongs: {value!r:.100}")
    return value
