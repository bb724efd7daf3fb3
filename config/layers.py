"""The layers that settings come from, merged into one tree in which every value remembers its origin.

Contract: later layers win; mappings are merged key by key, lists and values are replaced whole. Where no origin is
known for a path, that of the nearest mapping above it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

__all__ = ["Layers", "Path"]

Path: TypeAlias = tuple[str | int, ...]


class Layers:
    """The merged tree (`values`) and the origins of its parts."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._origins: dict[Path, str] = {}

    def put(self, path: Path, value: Any, origin: str) -> None:
        """Set what stands at `path`, which is not empty; a mapping is merged into one that is there already."""
        if not isinstance(value, Mapping):
            self._replace(path, value, origin)
            return
        if not isinstance(self.get(path), dict):
            self._replace(path, {}, origin)
        for key, inner in value.items():
            self.put((*path, str(key)), inner, origin)

    def get(self, path: Path) -> Any:
        """What stands at `path`; None if nothing does."""
        here: Any = self.values
        for part in path:
            try:
                here = here[part]
            except (KeyError, IndexError, TypeError):
                return None
        return here

    def note(self, path: Path, origin: str) -> None:
        """Say more exactly where the value at `path` came from."""
        self._origins[path] = origin

    def origin(self, path: Path) -> str | None:
        """Where the value at `path`, or else the nearest thing above it, came from."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._origins:
                return self._origins[path[:length]]
        return None

    def _replace(self, path: Path, value: Any, origin: str) -> None:
        parent = path[:-1]
        if parent and not isinstance(self.get(parent), dict | list):
            self._replace(parent, {}, origin)
        self.get(parent)[path[-1]] = value
        self._origins = {known: where for known, where in self._origins.items() if known[: len(path)] != path}
        self._origins[path] = origin
