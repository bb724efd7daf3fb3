"""The sign that an answer is being made, shown at a place while a turn runs there.

Contract: an answer that is there within `TYPING_AFTER` seconds needs none, and then nothing was begun for it but a
timer. Later the sign is shown again and again until the turn has ended. It is decoration: whatever goes wrong with it
concerns no turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Self

import structlog

if TYPE_CHECKING:
    from types import TracebackType

    from adapters.base import Place

__all__ = ["Typing", "TypingAt"]

#: Shows for some seconds that an answer is being made at a place.
Typing = Callable[["Place"], Awaitable[None]]

TYPING_AFTER = 0.5
TYPING_SECONDS = 4.0

_log = structlog.get_logger(__name__)


class TypingAt:
    """Shows the sign at one place for the time of the context; show: how, None for not at all."""

    def __init__(self, place: Place, show: Typing | None) -> None:
        self._place = place
        self._show = show
        self._timer: asyncio.TimerHandle | None = None
        self._showing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._show is not None:
            self._timer = asyncio.get_running_loop().call_later(TYPING_AFTER, self._begin, self._show)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._showing is not None:
            self._showing.cancel()
            await asyncio.wait({self._showing})

    def _begin(self, show: Typing) -> None:
        self._showing = asyncio.create_task(self._repeat(show), name="threadline-typing")

    async def _repeat(self, show: Typing) -> None:
        try:
            while True:
                await show(self._place)
                await asyncio.sleep(TYPING_SECONDS)
        except Exception as error:  # noqa: BLE001 - decoration
            _log.warning("typing_not_shown", place=self._place.chat, error=str(error))
