"""Building the search index anew on demand.

Contract: it goes on in short transactions beside everything else that is written; the present index stays in use
meanwhile if it can be used. It can be stopped and taken up at any step, also by another process.
Failure: an index of a newer version of the program is left alone: `InvalidArgument`. Other errors pass through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from session_store import index
from session_store.errors import InvalidArgument
from session_store.tx import Rx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Reindexing"]

_MESSAGES = "SELECT count(*) FROM messages"
_UP_TO = "SELECT count(*) FROM messages WHERE id <= ?"


class Reindexing:
    """Building the index anew."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def rebuild_search(self, progress: Callable[[int, int], None] = lambda _done, _all: None) -> int:
        """Build the search index anew and return how many messages it holds.

        progress: told after each step how many messages are done and how many there are.
        """
        if (await self._engine.read(index.index_state)).foreign:
            raise InvalidArgument("The search index was made by a newer Threadline. Update this one first.")
        await self._engine.write(index.start_rebuild)
        while await self._engine.write(index.rebuild_step):
            progress(*await self._engine.read(_progress))
        return int(await self._engine.read(lambda rx: rx.value(_MESSAGES)))


def _progress(rx: Rx) -> tuple[int, int]:
    state = index.index_state(rx)
    messages = int(rx.value(_MESSAGES))
    return (messages if state.rebuild is None else int(rx.value(_UP_TO, (state.rebuild,)))), messages
