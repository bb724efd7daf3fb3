"""What an agent holds (a connection, a program) is let go of when its turn ends before it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.agents.base import AgentContext, AgentEvent, Final, ToolCalls
from tests.unit.gateway_core.hall import Hall, failing

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


async def test_an_agent_whose_step_cannot_be_stored_is_closed(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the turn is run again, not when somebody collects what is left over."""
    monkeypatch.setattr("gateway.lanes.RETRY_SECONDS", 0.0)
    monkeypatch.setattr("gateway.recovery.LOOK_SECONDS", 0.05)
    held: list[str] = []

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        assert held == []
        held.append(context.turn_id)
        try:
            await asyncio.sleep(0)
            yield ToolCalls([CALL])
            yield Final("done")
        finally:
            held.remove(context.turn_id)

    hall.agent.play = play
    with failing(hall.db.turns, "step", 1):
        async with hall.running(recovering=True):
            await hall.say("go")
            assert await hall.sent(1) == ["done"]
    assert held == []
