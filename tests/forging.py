"""JSON bodies with one value gone or another, at any depth: what a platform's events are forged with."""

from __future__ import annotations

import copy
from typing import Any, TypeAlias

__all__ = ["Path", "forged", "paths"]

#: The way to a value: keys of objects and places in lists.
Path: TypeAlias = tuple[Any, ...]


def paths(value: Any, path: Path = ()) -> list[Path]:
    """Return the way to every value inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [one for key, part in inside for one in ((*path, key), *paths(part, (*path, key)))]


def forged(body: Any, path: Path, value: object, *, missing: bool) -> Any:
    """Return a copy of a body in which the value at `path` is missing, or is another."""
    made = copy.deepcopy(body)
    inside = made
    for key in path[:-1]:
        inside = inside[key]
    if missing:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return made
