"""How the store is: whole or damaged, what the search index is doing, how large everything is.

Contract: reads only. Looking through every page of a large file takes a while; it is stopped after `CHECK_SECONDS` and
then says so instead of claiming anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from session_store.driver import driver
from session_store.errors import StoreBusy
from session_store.index import index_state, pending

if TYPE_CHECKING:
    from session_store.engine import Engine
    from session_store.tx import Rx

__all__ = ["Health", "StoreHealth", "library"]

CHECK_SECONDS: Final = 30.0

_CHECK: Final = "PRAGMA quick_check(5)"
_ORPHANS: Final = """
SELECT count(*) FROM (SELECT 1 FROM messages AS m LEFT JOIN sessions AS s ON s.id = m.session_id WHERE s.id IS NULL
                      LIMIT 1000)
"""
_HEALTH: Final = "SELECT value FROM state_meta WHERE key = 'fts_health'"
_SIZE: Final = "SELECT page_count * page_size AS size FROM pragma_page_count, pragma_page_size"


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """trouble: what the check of the file found, at most five lines; None: it was not finished in time.

    orphans: messages whose session is gone. index: 'ok', 'catching up', 'being rebuilt', or what is wrong with it.
    size: bytes of the file.
    """

    trouble: tuple[str, ...] | None
    orphans: int
    index: str
    size: int


def library() -> tuple[str, str, bool]:
    """The SQLite library of this process: its name, its version, and whether it must be used in the safe mode."""
    chosen = driver()
    return chosen.name, ".".join(map(str, chosen.version)), chosen.safe_mode


class Health:
    """Looks at the store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def check(self) -> StoreHealth:
        """Look through the file, for `CHECK_SECONDS` at most."""
        try:
            trouble = await self._engine.read(_trouble, timeout=CHECK_SECONDS)
        except StoreBusy:
            trouble = None
        orphans = await self._engine.read(lambda rx: int(rx.value(_ORPHANS)))
        return StoreHealth(trouble, orphans, await self.index(), await self._engine.read(lambda rx: rx.value(_SIZE)))

    async def index(self) -> str:
        """What the search index is doing."""
        return await self._engine.read(_index)


def _trouble(rx: Rx) -> tuple[str, ...]:
    found = [str(next(iter(row.values()))) for row in rx.all(_CHECK)]
    return () if found == ["ok"] else tuple(found)


def _index(rx: Rx) -> str:
    state = index_state(rx)
    if state.rebuild is not None:
        return "being rebuilt"
    if state.foreign:
        return "made by a newer Threadline"
    health = rx.value(_HEALTH)
    if health != "ok":
        return str(health)
    return "catching up" if pending(rx) else "ok"
