"""One turn: a claimed input worked through to one final answer, every step durable before the next.

Contract: `TurnRunner.run` ends the turn in every case: finished, stopped by a person, given up, or left to the next
worker. The agent's part is in `gateway.steps`, the writing of the end in `gateway.endings`. When another process has
taken the conversation over (this one slept), nothing more is written and the work is dropped.
Failure: what an agent cannot answer becomes a sentence for the person, stored like an answer. When a step or the end
cannot be stored, the turn is left as a failed attempt and the store's error is raised.
Limits: a turn has `TURN_LIMIT_SECONDS`, may be silent for `SILENCE_LIMIT_SECONDS` and is begun `MAX_ATTEMPTS` times at
most; after that it is given up with a word to the person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import structlog

from gateway.endings import Endings
from gateway.steps import Steps
from gateway.work import SILENCE_LIMIT_SECONDS, End, Running
from session_store import FenceLost, StoreError

if TYPE_CHECKING:
    from gateway.agents.base import Agent, Final
    from gateway.context import Contexts
    from gateway.live import LiveFeed
    from gateway.work import Work
    from session_store import SessionDB

__all__ = ["MAX_ATTEMPTS", "TURN_LIMIT_SECONDS", "TurnRunner"]

TURN_LIMIT_SECONDS = 1800.0

#: A turn that was interrupted is run again at most twice.
MAX_ATTEMPTS = 3

#: Why a turn was left by a process that goes on; unlike a shutdown it counts as an attempt.
FAILED = "failed"

_TOO_LONG = f"I have given this up: it took longer than {TURN_LIMIT_SECONDS / 60:.0f} minutes."
_SILENT = f"I have given this up: nothing came of it for {SILENCE_LIMIT_SECONDS / 60:.0f} minutes."
_TOO_OFTEN = (
    f"I was interrupted {MAX_ATTEMPTS} times while working on this and have stopped trying. Please send it again."
)

_log = structlog.get_logger(__name__)


class TurnRunner:
    """Runs turns of this process with one agent; any number at the same time, one per conversation.

    contexts: makes what the agent is shown. steering: the agent may take in what is said while it works.
    """

    def __init__(
        self, db: SessionDB, agent: Agent, live: LiveFeed, contexts: Contexts, *, steering: bool = False
    ) -> None:
        self._db = db
        self._live = live
        self._running: dict[str, Running] = {}
        self._idle = anyio.Event()
        self._leaving = anyio.Event()
        self._steps = Steps(db, agent, live, contexts, steering=steering)
        self._endings = Endings(db, self._leaving)

    async def idle(self) -> None:
        """Return when no turn runs."""
        while self._running:
            self._idle = anyio.Event()
            await self._idle.wait()

    def runs(self, turn_id: str) -> bool:
        """Whether this turn runs here now."""
        return any(running.fence.turn_id == turn_id for running in self._running.values())

    def stop(self, root_id: str, turn_id: str | None = None, *, newer: bool = False) -> bool:
        """End the running turn of a conversation for good; False when none, or another than `turn_id`, runs here.

        newer: because its person has said something newer, which is worked next.
        """
        running = self._running.get(root_id)
        if running is None or turn_id not in {None, running.fence.turn_id}:
            return False
        running.cancel(End.NEWER if newer else End.STOPPED)
        return True

    def leave_all(self) -> None:
        """End all running turns so that the next process takes them up again; whatever is begun later is left too."""
        self._leaving.set()
        for running in self._running.values():
            running.cancel(End.SHUTDOWN)

    async def drop_lost(self) -> None:
        """End the work on turns that another process has taken over meanwhile."""
        for root_id, running in list(self._running.items()):
            turn = await self._db.turns.running_in(root_id)
            held = turn is not None and (turn["id"], turn["holder"], turn["fence"]) == (
                running.fence.turn_id,
                running.fence.holder,
                running.fence.number,
            )
            # Only what still runs is lost: one that ended between the two looks has no running turn either.
            if not held and self._running.get(root_id) is running:
                running.cancel(End.LOST)

    async def run(self, work: Work) -> str | None:
        """Work one claimed turn to its end; returns the answer, None when there is none (stopped, left, lost)."""
        fence, session_id = work.claim.fence, work.claim.session_id
        if fence is None or session_id is None:
            msg = "only a claimed turn can be run"
            raise ValueError(msg)
        running = Running(fence, session_id, anyio.CancelScope(), limit=anyio.current_time() + TURN_LIMIT_SECONDS)
        running.heard()
        self._running[fence.root_id] = running
        try:
            return await self._to_its_end(work, running)
        except FenceLost:
            _log.warning("turn_lost", session=session_id, turn=fence.turn_id)
            return None
        except StoreError:
            await self._endings.leave(running, FAILED)
            raise
        except BaseException as error:
            await self._endings.leave(running, FAILED if isinstance(error, Exception) else None)
            raise
        finally:
            running.over = True
            if self._running.get(fence.root_id) is running:
                del self._running[fence.root_id]
            self._idle.set()
            self._live.finish(session_id, fence.turn_id)

    async def settle(self) -> None:
        """Let go of turns whose end could not be written when it came."""
        await self._endings.settle()

    async def _to_its_end(self, work: Work, running: Running) -> str | None:
        if work.claim.attempt > MAX_ATTEMPTS:
            await self._endings.give_up(work, running, "interrupted too often", _TOO_OFTEN)
            return _TOO_OFTEN
        answer: Final | None = None
        if self._leaving.is_set():
            running.end = End.SHUTDOWN
        else:
            answer = await self._steps.answer(work, running)
        return await self._close(work, running, answer)

    async def _close(self, work: Work, running: Running, answer: Final | None) -> str | None:
        if answer is not None:
            return await self._endings.finish(work, running, answer)
        if running.end is End.LOST:
            raise FenceLost
        if running.end is End.SHUTDOWN:
            await self._endings.leave(running, None)
            return None
        if running.end is not None:
            await self._endings.stop(work, running)
            return None
        late = anyio.current_time() >= running.limit
        reason, sentence = ("timeout", _TOO_LONG) if late else ("silence", _SILENT)
        await self._endings.give_up(work, running, reason, sentence)
        return sentence
