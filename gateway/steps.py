"""The agent's part of a turn: it is run, each of its steps made durable before the next, its text shown live.

Contract: `Steps.answer` gives the agent's last word, an error of the agent as a sentence included; None when the agent
was cancelled (by a person, by a limit, with the surrounding task). Store errors that may pass are raised.
Limits: an agent that does not end within `AGENT_STOP_SECONDS` after it was cancelled is left behind; what it still
yields is refused, and the fence keeps it from writing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import structlog

from gateway.agents.base import AgentError, Final, TextDelta, ToolCalls, ToolResult, Usage
from gateway.live import MAX_TEXT
from gateway.work import assistant_message
from session_store import FenceLost, NewMessage, StoreError

if TYPE_CHECKING:
    from gateway.agents.base import Agent, AgentEvent
    from gateway.context import Contexts
    from gateway.live import LiveFeed
    from gateway.work import Running, Work
    from session_store import SessionDB

__all__ = ["Steps"]

AGENT_STOP_SECONDS = 1.0

_BROKEN = "Something went wrong while answering; it is in the log. Please try again."
_NOTHING = "The agent gave no answer. Please try again."

_log = structlog.get_logger(__name__)


class _Steering:
    """What is said while a turn runs, handed to its agent."""

    def __init__(self, steps: Steps, running: Running) -> None:
        self._steps = steps
        self._running = running

    async def take(self) -> Sequence[str]:
        """See `gateway.agents.base.Steering`."""
        return await self._steps.steered(self._running)


class Steps:
    """Runs one agent. contexts and steering: see `gateway.turns.TurnRunner`."""

    def __init__(self, db: SessionDB, agent: Agent, live: LiveFeed, contexts: Contexts, *, steering: bool) -> None:
        self._db = db
        self._agent = agent
        self._live = live
        self._contexts = contexts
        self._steers = steering

    async def answer(self, work: Work, running: Running) -> Final | None:
        """Run the agent to its end or to that of the turn's scope; see the module."""
        task = asyncio.ensure_future(self._answer(work, running))
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

    async def steered(self, running: Running) -> list[str]:
        """Make what waits behind a turn that runs here part of it; returns the texts."""
        _check(running)
        running.heard()
        return [one.text for one in await self._db.busy.steer(running.fence)]

    async def _answer(self, work: Work, running: Running) -> Final:
        final: Final | None = None
        try:
            context = await self._contexts.build(
                running.session_id, running.fence.turn_id, work.text, work.visible_to, work.claim.message_id
            )
            if self._steers:
                context = replace(context, steering=_Steering(self, running))
            async with _closing(self._agent.run(context)) as events:
                async for event in events:
                    running.heard()
                    if isinstance(event, Final):
                        final = event
                        work.whole.set()
                    else:
                        await self._step(work, running, event)
        except AgentError as error:
            return Final(str(error), finish_reason="error")
        except Exception as error:
            # What is wrong with an argument stays wrong however often the turn is run; the rest may be better later.
            if isinstance(error, StoreError) and not isinstance(error, ValueError):
                raise
            # An agent is foreign code: whatever it raises ends its turn, not the gateway.
            _log.exception("agent_failed", session=running.session_id, turn=running.fence.turn_id)
            return Final(str(error) if isinstance(error, StoreError) else _BROKEN, finish_reason="error")
        return final or Final(_NOTHING, finish_reason="error")

    async def _step(self, work: Work, running: Running, event: AgentEvent) -> None:
        _check(running)
        if isinstance(event, TextDelta):
            running.said.append(event.text)
            if len(running.shown) < MAX_TEXT:
                running.shown += event.text
                self._live.publish(running.session_id, running.fence.turn_id, running.shown)
            return
        if isinstance(event, Usage):
            running.spent.append(event)
            return
        running.steps += 1
        op_id = f"{running.fence.turn_id}.{work.claim.attempt}.{running.steps}"
        if isinstance(event, ToolCalls):
            message = assistant_message(
                event.text, op_id=op_id, finish_reason="tool_calls", reasoning=event.reasoning, calls=event.calls
            )
        elif isinstance(event, ToolResult):
            message = NewMessage("tool", event.content, tool_call_id=event.call_id, tool_name=event.name, op_id=op_id)
        else:
            return
        spent = list(running.spent)
        await self._db.turns.step(running.fence, [message], usage=spent)
        del running.spent[: len(spent)]
        if isinstance(event, ToolCalls):
            running.earlier = running.last_said
            running.said.clear()
            running.shown = ""
            self._live.publish(running.session_id, running.fence.turn_id, "")


@asynccontextmanager
async def _closing(events: AsyncIterator[AgentEvent]) -> AsyncIterator[AsyncIterator[AgentEvent]]:
    """An agent's events; whatever it holds (a connection, a program) is let go of when they are not read to the end."""
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


def _check(running: Running) -> None:
    """What an agent that was left behind still does must go nowhere."""
    if running.over:
        raise FenceLost


def _forget(task: asyncio.Future[Final]) -> None:
    """Look at what became of an agent, so that one that was left behind is not reported as forgotten."""
    if not task.cancelled():
        task.exception()
