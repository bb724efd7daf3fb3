"""One turn: a claimed input worked through to one final answer, every step durable before the next.

Contract: `TurnRunner.run` ends the turn in every case: finished, stopped by a person, given up, or left to the next
worker. The final answer, its outbox rows and "handled" are one transaction. When another process has taken the
conversation over (this one slept), nothing more is written and the work is dropped.
Failure: what an agent cannot answer becomes a sentence for the person, stored like an answer. An answer that cannot be
stored now (the disk is full) is tried again for a while, since making it again may cost. After that, and when a step
cannot be stored, the turn is left as a failed attempt and the store's error is raised. A turn that cannot even be left
is kept in mind: `settle` lets go of it once the store works again.
Limits: a turn has 30 minutes; after that it is given up with a word to the person. An agent that does not end within
`AGENT_STOP_SECONDS` after it was cancelled is left behind; the fence keeps it from writing.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import anyio
import structlog

from gateway.agents.base import AgentError, Final, TextDelta, ToolCalls, ToolResult
from gateway.context import build_context
from gateway.live import MAX_TEXT
from gateway.places import LOCAL_PLATFORMS, place_ref
from session_store import FenceLost, NewMessage, NewOutbox, StoreError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from adapters.base import Place
    from gateway.agents.base import Agent, AgentEvent
    from gateway.live import LiveFeed
    from session_store import Claim, Fence, SessionDB, Visibility

__all__ = ["MAX_ATTEMPTS", "TURN_LIMIT_SECONDS", "TurnRunner", "Work"]

TURN_LIMIT_SECONDS = 1800.0
#: An agent of which nothing is heard for so long hangs.
SILENCE_LIMIT_SECONDS = 600.0
AGENT_STOP_SECONDS = 1.0

#: A turn that was interrupted is run again at most twice.
MAX_ATTEMPTS = 3

#: Pauses between the tries to store the end of a turn, in seconds.
END_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)

#: Why a turn was left by a process that goes on; unlike a shutdown it counts as an attempt.
FAILED = "failed"

_TOO_LONG = f"I have given this up: it took longer than {TURN_LIMIT_SECONDS / 60:.0f} minutes."
_SILENT = f"I have given this up: nothing came of it for {SILENCE_LIMIT_SECONDS / 60:.0f} minutes."
_NEWER = "I have left this for your newer message."
_TOO_OFTEN = (
    f"I was interrupted {MAX_ATTEMPTS} times while working on this and have stopped trying. Please send it again."
)
_BROKEN = "Something went wrong while answering; it is in the log. Please try again."

_log = structlog.get_logger(__name__)


class _End(enum.Enum):
    """Why a running turn was cancelled from outside."""

    STOPPED = "stopped"
    NEWER = "interrupted by a newer message"
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
    """A turn that runs now.

    said: the pieces of text since the last stored step; shown: their beginning. limit: when its time is over.
    """

    fence: Fence
    scope: anyio.CancelScope
    limit: float
    end: _End | None = None
    said: list[str] = field(default_factory=list)
    shown: str = ""
    steps: int = 0

    def heard(self) -> None:
        """The agent gave a sign of life."""
        self.scope.deadline = min(self.limit, anyio.current_time() + SILENCE_LIMIT_SECONDS)


class _Steering:
    """What is said while a turn runs, handed to its agent."""

    def __init__(self, runner: TurnRunner, running: _Running) -> None:
        self._runner = runner
        self._running = running

    async def take(self) -> Sequence[str]:
        """See `gateway.agents.base.Steering`."""
        return await self._runner.steered(self._running)


class TurnRunner:
    """Runs turns of this process with one agent; any number at the same time, one per conversation.

    zone: in which the agent's tools write times, None for the machine's own. steering: the agent may take in what is
    said while it works.
    """

    def __init__(
        self, db: SessionDB, agent: Agent, live: LiveFeed, *, zone: ZoneInfo | None = None, steering: bool = False
    ) -> None:
        self._db = db
        self._agent = agent
        self._live = live
        self._zone = zone
        self._steers = steering
        self._running: dict[str, _Running] = {}
        self._unsettled: dict[str, tuple[Fence, str | None]] = {}
        self._idle = anyio.Event()
        self._leaving = anyio.Event()

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
        _cancel(running, _End.NEWER if newer else _End.STOPPED)
        return True

    def leave_all(self) -> None:
        """End all running turns so that the next process takes them up again; whatever is begun later is left too."""
        self._leaving.set()
        for running in self._running.values():
            _cancel(running, _End.SHUTDOWN)

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
                _cancel(running, _End.LOST)

    async def run(self, work: Work) -> str | None:
        """Work one claimed turn to its end; returns the answer, None when there is none (stopped, left, lost)."""
        fence, session_id = work.claim.fence, work.claim.session_id
        if fence is None or session_id is None:
            msg = "only a claimed turn can be run"
            raise ValueError(msg)
        running = _Running(fence, anyio.CancelScope(), limit=anyio.current_time() + TURN_LIMIT_SECONDS)
        running.heard()
        self._running[fence.root_id] = running
        try:
            return await self._to_its_end(work, running, session_id)
        except FenceLost:
            _log.warning("turn_lost", session=session_id, turn=fence.turn_id)
            return None
        except StoreError:
            await self._leave(fence, FAILED)
            raise
        except BaseException as error:
            await self._leave(fence, FAILED if isinstance(error, Exception) else None)
            raise
        finally:
            if self._running.get(fence.root_id) is running:
                del self._running[fence.root_id]
            self._idle.set()
            self._live.finish(session_id, fence.turn_id)

    async def steered(self, running: _Running) -> list[str]:
        """Make what waits behind a turn that runs here part of it; returns the texts."""
        self._check(running)
        running.heard()
        return [one.text for one in await self._db.busy.steer(running.fence)]

    async def settle(self) -> None:
        """Let go of turns whose end could not be written when it came."""
        for fence, reason in list(self._unsettled.values()):
            await self._leave(fence, reason)

    # --- the agent's part --------------------------------------------------------------------------------------------

    async def _to_its_end(self, work: Work, running: _Running, session_id: str) -> str | None:
        if work.claim.attempt > MAX_ATTEMPTS:
            await self._give_up(work, running.fence, "interrupted too often", _TOO_OFTEN)
            return _TOO_OFTEN
        answer: Final | None = None
        if self._leaving.is_set():
            running.end = _End.SHUTDOWN
        else:
            answer = await self._watched(self._answer(work, running, session_id), running)
        return await self._close(work, running, answer)

    async def _watched(self, answer: Awaitable[Final], running: _Running) -> Final | None:
        """The agent's answer; None when it was cancelled: by us, by the time limit, or with the surrounding task."""
        task = asyncio.ensure_future(answer)
        task.add_done_callback(_forget)
        try:
            with running.scope:
                await asyncio.wait({task})
        finally:
            in_time = task.done()
            if not in_time:
                task.cancel()
                with anyio.CancelScope(shield=True):
                    await asyncio.wait({task}, timeout=AGENT_STOP_SECONDS)
            if not task.done():
                _log.error("agent_does_not_stop", turn=running.fence.turn_id)
        if not in_time:
            return None
        return Final(_BROKEN, finish_reason="error") if task.cancelled() else task.result()

    async def _answer(self, work: Work, running: _Running, session_id: str) -> Final:
        final: Final | None = None
        try:
            context = await build_context(
                self._db,
                session_id=session_id,
                turn_id=running.fence.turn_id,
                text=work.text,
                visible_to=work.visible_to,
                message_id=work.claim.message_id,
                zone=self._zone,
            )
            if self._steers:
                context = replace(context, steering=_Steering(self, running))
            async for event in self._agent.run(context):
                running.heard()
                if isinstance(event, Final):
                    final = event
                else:
                    await self._step(work, running, session_id, event)
        except AgentError as error:
            return Final(str(error), finish_reason="error")
        except Exception as error:
            # What is wrong with an argument stays wrong however often the turn is run; the rest may be better later.
            if isinstance(error, StoreError) and not isinstance(error, ValueError):
                raise
            # An agent is foreign code: whatever it raises ends its turn, not the gateway.
            _log.exception("agent_failed", session=session_id, turn=running.fence.turn_id)
            return Final(str(error) if isinstance(error, StoreError) else _BROKEN, finish_reason="error")
        return final or Final("The agent gave no answer. Please try again.", finish_reason="error")

    async def _step(self, work: Work, running: _Running, session_id: str, event: AgentEvent) -> None:
        self._check(running)
        if isinstance(event, TextDelta):
            running.said.append(event.text)
            if len(running.shown) < MAX_TEXT:
                running.shown += event.text
                self._live.publish(session_id, running.fence.turn_id, running.shown)
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
            running.shown = ""
            self._live.publish(session_id, running.fence.turn_id, "")

    def _check(self, running: _Running) -> None:
        """What an agent that was left behind still does must go nowhere."""
        if self._running.get(running.fence.root_id) is not running:
            raise FenceLost

    # --- the end -----------------------------------------------------------------------------------------------------

    async def _close(self, work: Work, running: _Running, answer: Final | None) -> str | None:
        fence = running.fence
        if answer is not None:
            return await self._finish(work, fence, answer)
        if running.end is _End.SHUTDOWN:
            await self._leave(fence, None)
            return None
        if running.end is _End.LOST:
            raise FenceLost
        if running.end in {_End.STOPPED, _End.NEWER}:
            reason = running.end.value
            said = "".join(running.said)
            partial = NewMessage("assistant", said, finish_reason="stopped", op_id=_final_id(fence)) if said else None
            outgoing = _outgoing(work, "notice", "Stopped." if running.end is _End.STOPPED else _NEWER)
            await self._written(lambda: self._db.turns.interrupt(fence, reason, outgoing, partial))
            return None
        late = anyio.current_time() >= running.limit
        reason, sentence = ("timeout", _TOO_LONG) if late else ("silence", _SILENT)
        await self._give_up(work, fence, reason, sentence)
        return sentence

    async def _give_up(self, work: Work, fence: Fence, reason: str, sentence: str) -> None:
        """End a claimed turn without an answer and say so to the person."""
        message = NewMessage("assistant", sentence, finish_reason="error", op_id=_final_id(fence))
        outgoing = _outgoing(work, "notice", sentence)
        await self._written(lambda: self._db.turns.give_up(fence, reason, outgoing, message))

    async def _finish(self, work: Work, fence: Fence, answer: Final) -> str:
        try:
            await self._store_answer(work, fence, answer)
        except StoreError as error:
            if not isinstance(error, ValueError):
                raise
            # The answer itself cannot be stored (it is too big); that can.
            _log.warning("answer_refused", turn=fence.turn_id, error=str(error))
            answer = Final(f"The answer could not be kept. {error}", finish_reason="error")
            await self._store_answer(work, fence, answer)
        return answer.text

    async def _store_answer(self, work: Work, fence: Fence, answer: Final) -> None:
        message = NewMessage("assistant", answer.text, finish_reason=answer.finish_reason, op_id=_final_id(fence))
        outgoing = _outgoing(work, "answer", answer.text)
        await self._written(lambda: self._db.turns.finish(fence, message, outgoing))

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

    async def _leave(self, fence: Fence, reason: str | None) -> None:
        """Leave a turn to the next worker, as a failed attempt if there is a reason; remembered if it cannot be now."""
        with anyio.CancelScope(shield=True):
            try:
                await (self._db.turns.abandon(fence, reason) if reason else self._db.turns.abandon(fence))
            except FenceLost:
                self._unsettled.pop(fence.root_id, None)
            except StoreError as error:
                # This process still beats the lease, so it must be the one that lets go, as soon as the store can.
                self._unsettled[fence.root_id] = (fence, reason)
                _log.warning("turn_not_left_yet", turn=fence.turn_id, error=str(error))
            else:
                self._unsettled.pop(fence.root_id, None)


def _cancel(running: _Running, end: _End) -> None:
    running.end = running.end or end
    running.scope.cancel()


def _forget(task: asyncio.Future[Final]) -> None:
    """Look at what became of an agent, so that one that was left behind is not reported as forgotten."""
    if not task.cancelled():
        task.exception()


def _outgoing(work: Work, kind: str, body: str) -> Sequence[NewOutbox]:
    """What goes to the place the message came from: a word about a reset if there was one, and `body`."""
    if work.place.platform in LOCAL_PLATFORMS:
        return ()
    place = place_ref(work.place)
    answer = NewOutbox(
        place=place,
        kind="answer" if kind == "answer" else "notice",
        body=body,
        reply_to=None if work.place.private else work.reply_to,
    )
    words = {"daily": "a new day", "idle": "a long pause"}.get(work.claim.reset_reason or "")
    if words is None:
        return (answer,)
    reset = f"A new session begins ({words}). The former one is kept; `/search` finds what was said."
    return (NewOutbox(place=place, kind="notice", body=reset), answer)


def _final_id(fence: Fence) -> str:
    return f"{fence.turn_id}.final"
