"""One turn: a claimed input worked through to one final answer, every step durable before the next.

Contract: `TurnRunner.run` ends the turn in every case: finished, stopped by a person, given up, or left in order for
the next process (shutdown). The final answer, its outbox rows and "handled" are one transaction. When another process
has taken the conversation over (this one slept), nothing more is written and the work is dropped.
Failure: what an agent cannot answer becomes a sentence for the person, stored like an answer. A store failure is
raised: the turn stays claimed and is taken over later.
Limits: a turn has 30 minutes; after that it is given up with a word to the person.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import structlog

from gateway.agents.base import AgentError, Final, TextDelta, ToolCalls, ToolResult
from gateway.context import build_context
from gateway.places import LOCAL_PLATFORMS, place_ref
from session_store import FenceLost, NewMessage, NewOutbox, StoreError

if TYPE_CHECKING:
    from adapters.base import Place
    from gateway.agents.base import Agent, AgentEvent
    from gateway.live import LiveFeed
    from session_store import Claim, Fence, SessionDB, Visibility

__all__ = ["MAX_ATTEMPTS", "TURN_LIMIT_SECONDS", "TurnRunner", "Work"]

TURN_LIMIT_SECONDS = 1800.0

#: A turn that was interrupted is run again at most twice.
MAX_ATTEMPTS = 3

_log = structlog.get_logger(__name__)


class _End(enum.Enum):
    """Why a running turn was cancelled from outside."""

    STOPPED = "stopped"
    SHUTDOWN = "shutdown"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed turn and where its answer goes. reply_to: platform id of the message that is answered."""

    claim: Claim
    place: Place
    text: str
    visible_to: Visibility
    reply_to: str | None = None


@dataclass(slots=True)
class _Running:
    fence: Fence
    scope: anyio.CancelScope
    end: _End | None = None
    said: list[str] = field(default_factory=list)
    steps: int = 0


class TurnRunner:
    """Runs turns of this process with one agent; any number at the same time, one per conversation."""

    def __init__(self, db: SessionDB, agent: Agent, live: LiveFeed) -> None:
        self._db = db
        self._agent = agent
        self._live = live
        self._running: dict[str, _Running] = {}
        self._unsettled: dict[str, Fence] = {}
        self._idle = anyio.Event()

    async def idle(self) -> None:
        """Return when no turn runs."""
        while self._running:
            self._idle = anyio.Event()
            await self._idle.wait()

    def stop(self, root_id: str) -> bool:
        """End the running turn of a conversation for good; False when none runs here."""
        return self._cancel(root_id, _End.STOPPED)

    def leave_all(self) -> None:
        """End all running turns so that the next process takes them up again."""
        for root_id in list(self._running):
            self._cancel(root_id, _End.SHUTDOWN)

    def lost(self, root_id: str) -> None:
        """The conversation was taken over by another process: drop the work."""
        self._cancel(root_id, _End.LOST)

    def _cancel(self, root_id: str, end: _End) -> bool:
        running = self._running.get(root_id)
        if running is None:
            return False
        running.end = running.end or end
        running.scope.cancel()
        return True

    async def run(self, work: Work) -> str | None:
        """Work one claimed turn to its end; returns the answer, None when there is none (stopped, left, lost)."""
        fence, session_id = work.claim.fence, work.claim.session_id
        if fence is None or session_id is None:
            msg = "only a claimed turn can be run"
            raise ValueError(msg)
        running = _Running(fence, anyio.CancelScope(deadline=anyio.current_time() + TURN_LIMIT_SECONDS))
        self._running[fence.root_id] = running
        answer: Final | None = None
        said: str | None = None
        settled = False
        try:
            with running.scope:
                answer = await self._answer(work, running, session_id)
            # The end of the turn must be written whatever happens to the task that asked for it; the store bounds it.
            with anyio.CancelScope(shield=True):
                said = await self._close(work, running, answer)
            settled = True
        except FenceLost:
            _log.warning("turn_lost", session=session_id, turn=fence.turn_id)
            settled = True
        finally:
            if not settled:
                # The surrounding task was cancelled or the store failed: the turn is left to be run again.
                with anyio.CancelScope(shield=True):
                    await self._leave(fence)
            del self._running[fence.root_id]
            self._idle.set()
            self._live.finish(session_id, fence.turn_id)
        return said

    async def _answer(self, work: Work, running: _Running, session_id: str) -> Final:
        context = await build_context(
            self._db,
            session_id=session_id,
            turn_id=running.fence.turn_id,
            text=work.text,
            visible_to=work.visible_to,
            message_id=work.claim.message_id,
        )
        final: Final | None = None
        try:
            async for event in self._agent.run(context):
                if isinstance(event, Final):
                    final = event
                else:
                    await self._step(work, running, session_id, event)
        except AgentError as error:
            return Final(str(error), finish_reason="error")
        except (StoreError, FenceLost):
            raise
        except Exception:  # noqa: BLE001 - an agent is foreign code: whatever it raises ends its turn, not the gateway
            _log.exception("agent_failed", session=session_id, turn=running.fence.turn_id)
            return Final("Something went wrong while answering; it is in the log. Please try again.", "error")
        return final or Final("The agent gave no answer. Please try again.", finish_reason="error")

    async def _step(self, work: Work, running: _Running, session_id: str, event: AgentEvent) -> None:
        if isinstance(event, TextDelta):
            running.said.append(event.text)
            self._live.publish(session_id, running.fence.turn_id, "".join(running.said))
            return
        running.steps += 1
        op_id = f"{running.fence.turn_id}.{work.claim.attempt}.{running.steps}"
        if isinstance(event, ToolCalls):
            message = NewMessage(
                "assistant", event.text, tool_calls=event.calls, finish_reason="tool_calls", op_id=op_id
            )
        elif isinstance(event, ToolResult):
            message = NewMessage("tool", event.content, tool_call_id=event.call_id, tool_name=event.name, op_id=op_id)
        else:
            return
        await self._db.turns.step(running.fence, [message])
        if isinstance(event, ToolCalls):
            running.said.clear()
            self._live.publish(session_id, running.fence.turn_id, "")

    async def _close(self, work: Work, running: _Running, answer: Final | None) -> str | None:
        fence = running.fence
        if answer is not None:
            message = NewMessage("assistant", answer.text, finish_reason=answer.finish_reason, op_id=_final_id(work))
            outgoing = (*_reset_notice(work), *self._outgoing(work, "answer", answer.text))
            await self._db.turns.finish(fence, message, outgoing)
            return answer.text
        if running.end is _End.SHUTDOWN:
            await self._leave(fence)
            return None
        if running.end is _End.LOST:
            return None
        said = "".join(running.said)
        if running.end is _End.STOPPED:
            partial = NewMessage("assistant", said, finish_reason="stopped", op_id=_final_id(work)) if said else None
            await self._db.turns.interrupt(fence, "stopped", self._outgoing(work, "notice", "Stopped."), partial)
            return None
        sorry = f"I have given this up: it took longer than {TURN_LIMIT_SECONDS / 60:.0f} minutes."
        await self.give_up(work, "timeout", sorry)
        return sorry

    async def give_up(self, work: Work, reason: str, sentence: str) -> None:
        """End a claimed turn without an answer and say so to the person."""
        if work.claim.fence is None:
            return
        message = NewMessage("assistant", sentence, finish_reason="error", op_id=_final_id(work))
        await self._db.turns.give_up(work.claim.fence, reason, self._outgoing(work, "notice", sentence), message)

    async def _leave(self, fence: Fence) -> None:
        try:
            await self._db.turns.abandon(fence)
        except FenceLost:
            self._unsettled.pop(fence.root_id, None)
        except StoreError as error:
            # This process still beats the lease, so it must be the one that lets go, as soon as the store works again.
            self._unsettled[fence.root_id] = fence
            _log.warning("turn_not_left_yet", turn=fence.turn_id, error=str(error))
        else:
            self._unsettled.pop(fence.root_id, None)

    async def settle(self) -> None:
        """Let go of turns whose end could not be written when it came."""
        for fence in list(self._unsettled.values()):
            await self._leave(fence)

    @staticmethod
    def _outgoing(work: Work, kind: str, body: str) -> Sequence[NewOutbox]:
        if work.place.platform in LOCAL_PLATFORMS:
            return ()
        return (
            NewOutbox(
                place=place_ref(work.place),
                kind="answer" if kind == "answer" else "notice",
                body=body,
                reply_to=None if work.place.private else work.reply_to,
            ),
        )


def _reset_notice(work: Work) -> Sequence[NewOutbox]:
    """A word to the person when the reset policy began a new session with their message."""
    words = {"daily": "a new day", "idle": "a long pause"}.get(work.claim.reset_reason or "")
    if words is None:
        return ()
    body = f"A new session begins ({words}). The former one is kept; `/search` finds what was said."
    return (NewOutbox(place=place_ref(work.place), kind="notice", body=body),)


def _final_id(work: Work) -> str:
    return f"{work.claim.fence.turn_id if work.claim.fence else ''}.final"
