"""The layers that settings come from, merged into one tree in which every value remembers its origin.

Contract: later layers win; mappings are merged key by key, lists and values are replaced whole. Where no origin is
known for a path, that of the nearest mapping above it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

__all__ = ["KeyPath", "Layers", "dotted"]

#: Where a value stands: names of keys, and places in lists.
KeyPath: TypeAlias = tuple[str | int, ...]


def dotted(path: Sequence[str | int]) -> str:
    """A path as people read it: names with dots, places in lists (from 0) in brackets."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


class Layers:
    """The merged tree (`values`) and the origins of its parts."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._origins: dict[KeyPath, str] = {}

    def put(self, path: KeyPath, value: Any, origin: str) -> None:
        """Set what stands at `path`, which is not empty; a mapping is merged into one that is there already."""
        if not isinstance(value, Mapping):
            self._replace(path, value, origin)
            return
        if not isinstance(self.get(path), dict):
            self._replace(path, {}, origin)
        for key, inner in value.items():
            self.put((*path, str(key)), inner, origin)

    def get(self, path: KeyPath) -> Any:
        """What stands at `path`; None if nothing does."""
        here: Any = self.values
        for part in path:
            try:
                here = here[part]
            except (KeyError, IndexError, TypeError):
                return None
        return here

    def note(self, path: KeyPath, origin: str) -> None:
        """Say more exactly where the value at `path` came from."""
        self._origins[path] = origin

    def origin(self, path: KeyPath) -> str | None:
        """Where the value at `path`, or else the nearest thing above it, came from."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._origins:
                return self._origins[path[:length]]
        return None

    def _replace(self, path: KeyPath, value: Any, origin: str) -> None:
        parent = path[:-1]
        if parent and not isinstance(self.get(parent), list if isinstance(path[-1], int) else dict):
            self._replace(parent, {}, origin)
        self.get(parent)[path[-1]] = value
        self._origins = {known: where for known, where in self._origins.items() if known[: len(path)] != path}
        self._origins[path] = origin
