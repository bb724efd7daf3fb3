"""The end of a turn: finished, stopped by a person, given up, or left to the next worker.

Contract: the final answer, its outbox rows and "handled" are one transaction.
Failure: an answer that cannot be stored now (the disk is full) is tried again for a while, since making it again may
cost; after that the store's error is raised. A turn that cannot even be left is kept in mind: `settle` lets go of it
once the store works again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
import structlog

from gateway.agents.base import Final
from gateway.outgoing import outgoing
from gateway.work import End, assistant_message
from session_store import FenceLost, NewMessage, StoreError

if TYPE_CHECKING:
    from gateway.work import Running, Work
    from session_store import Fence, SessionDB

__all__ = ["Endings"]

#: Pauses between the tries to store the end of a turn, in seconds.
END_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)

_NEWER = "I have left this for your newer message."

_log = structlog.get_logger(__name__)


class Endings:
    """Writes the ends of turns. leaving: set when all turns are to be left; then nothing is tried again."""

    def __init__(self, db: SessionDB, leaving: anyio.Event) -> None:
        self._db = db
        self._leaving = leaving
        self._unsettled: dict[str, tuple[Running, str | None]] = {}

    async def finish(self, work: Work, running: Running, answer: Final) -> str:
        """End a turn with its answer; returns what the person is told."""
        try:
            await self._store_answer(work, running, answer)
        except StoreError as error:
            if not isinstance(error, ValueError):
                raise
            # The answer itself cannot be stored (it is too big); that can.
            _log.warning("answer_refused", turn=running.fence.turn_id, error=str(error))
            answer = Final(f"The answer could not be kept. {error}", finish_reason="error")
            await self._store_answer(work, running, answer)
        return answer.text

    async def give_up(self, work: Work, running: Running, reason: str, sentence: str) -> None:
        """End a claimed turn without an answer and say so to the person."""
        fence, spent = running.fence, running.spent
        message = NewMessage("assistant", sentence, finish_reason="error", op_id=_final_id(fence))
        rows = outgoing(work, "notice", sentence, below=running.last_said)
        await self._written(lambda: self._db.turns.give_up(fence, reason, rows, message, usage=spent))

    async def stop(self, work: Work, running: Running) -> None:
        """End a turn that a person stopped, or said something newer to; what was said so far is kept."""
        fence, spent, end = running.fence, running.spent, running.end or End.STOPPED
        said = "".join(running.said)
        partial = NewMessage("assistant", said, finish_reason="stopped", op_id=_final_id(fence)) if said else None
        rows = outgoing(work, "notice", _NEWER if end is End.NEWER else "Stopped.", below=running.last_said)
        await self._written(lambda: self._db.turns.interrupt(fence, end.value, rows, partial, usage=spent))

    async def leave(self, running: Running, reason: str | None) -> None:
        """Leave a turn to the next worker, as a failed attempt if there is a reason; remembered if it cannot be now."""
        fence, spent = running.fence, running.spent
        how = {"reason": reason} if reason else {}
        with anyio.CancelScope(shield=True):
            try:
                await self._db.turns.abandon(fence, **how, usage=spent)
            except FenceLost:
                self._unsettled.pop(fence.root_id, None)
            except StoreError as error:
                # This process still beats the lease, so it must be the one that lets go, as soon as the store can.
                self._unsettled[fence.root_id] = (running, reason)
                _log.warning("turn_not_left_yet", turn=fence.turn_id, error=str(error))
            else:
                self._unsettled.pop(fence.root_id, None)

    async def settle(self) -> None:
        """Let go of turns whose end could not be written when it came."""
        for running, reason in list(self._unsettled.values()):
            await self.leave(running, reason)

    async def _store_answer(self, work: Work, running: Running, answer: Final) -> None:
        fence, spent = running.fence, running.spent
        message = assistant_message(
            answer.text, op_id=_final_id(fence), finish_reason=answer.finish_reason, reasoning=answer.reasoning
        )
        rows = outgoing(work, "answer", answer.text)
        await self._written(lambda: self._db.turns.finish(fence, message, rows, usage=spent))

    async def _written(self, write: Callable[[], Awaitable[object]]) -> None:
        """Write the end of a turn; tried again for a while if the store cannot, unless all turns are to be left."""
        for pause in (*END_PAUSES, None):
            try:
                # Whatever happens to the task that asked for the turn, its end is written; the store bounds this.
                with anyio.CancelScope(shield=True):
                    await write()
            except StoreError as error:
                if pause is None or isinstance(error, FenceLost | ValueError) or self._leaving.is_set():
                    raise
                _log.warning("turn_end_postponed", error=str(error))
                with anyio.move_on_after(pause):
                    await self._leaving.wait()
            else:
                return


def _final_id(fence: Fence) -> str:
    return f"{fence.turn_id}.final"
