"""When there was nobody to listen, and that it is made good before anything new is taken in.

Contract: after the first socket, and after every one that came up more than `GAP_SECONDS` after the last one was lost,
what came meanwhile is asked for (`adapters.slack.catching`). Live events wait until then, so that the order holds, but
no longer than `HOLD_SECONDS`: they are safe with Slack only for minutes.
"""

from __future__ import annotations

import asyncio
import time

from adapters.slack.catching import CatchUp, Where
from adapters.slack.intake import Intake
from adapters.slack.liveness import Echoes

__all__ = ["GAP_SECONDS", "HOLD_SECONDS", "Absence"]

#: Before that, Slack brings everything again by itself.
GAP_SECONDS = 30.0
HOLD_SECONDS = 10.0


class Absence:
    """Told what becomes of the sockets of one account; `close` ends the round of catching up that is under way.

    since: Unix time up to which everything was surely taken in, None if nothing ever was.
    """

    def __init__(self, catch_up: CatchUp, intake: Intake, echoes: Echoes, since: float | None) -> None:
        self._catch_up = catch_up
        self._intake = intake
        self._echoes = echoes
        self._since = since
        self._lost_at: float | None = None
        self._wanted: dict[Where, str] = {}
        self._round: asyncio.Task[None] | None = None
        self._enough: asyncio.TimerHandle | None = None

    def suspected(self) -> bool:
        """Tell whether the socket is open but brings nothing."""
        return self._echoes.overdue()

    def connecting(self) -> None:
        """Let live events wait from the first one on, if there was an absence."""
        first = self._lost_at is None
        if not first and time.time() - (self._lost_at or 0.0) < GAP_SECONDS:
            return
        self._wanted = self._intake.marks.wanted(self._since if first else self._lost_at)
        if self._wanted:
            self._hold()

    def connected(self) -> None:
        """Begin a round, if one is due."""
        wanted, self._wanted = self._wanted, {}
        if wanted and (self._round is None or self._round.done()):
            self._hold()
            self._round = asyncio.create_task(self._make_good(wanted), name="slack catch-up")

    def lost(self) -> None:
        """Take note of the time."""
        self._lost_at = time.time()

    async def close(self) -> None:
        """End the round that is under way."""
        self._release()
        if self._round is not None:
            self._round.cancel()
            await asyncio.wait([self._round])

    def _hold(self) -> None:
        if self._enough is not None:
            self._enough.cancel()
        self._intake.hold()
        self._enough = asyncio.get_running_loop().call_later(HOLD_SECONDS, self._release)

    def _release(self) -> None:
        if self._enough is not None:
            self._enough.cancel()
            self._enough = None
        self._intake.release()

    async def _make_good(self, wanted: dict[Where, str]) -> None:
        try:
            await self._catch_up.run(wanted)
        finally:
            self._release()
