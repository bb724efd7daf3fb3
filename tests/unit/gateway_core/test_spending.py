"""What models cost: stored with the step or the end that it paid for, whatever becomes of the turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.agents.base import AgentContext, AgentError, AgentEvent, Final, Reasoning, ToolCalls, ToolResult, Usage
from tests.conftest import Elsewhere
from tests.unit.gateway_core.hall import Hall

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


async def test_what_models_cost_is_stored_with_the_step_it_paid_for(hall: Hall, elsewhere: Elsewhere) -> None:
    """A call before tools with the calls, the last one with the answer; one told twice once; `/usage` says it."""
    seen: list[Any] = []

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        yield Usage("r1", "m", 1000, 100, reasoning_tokens=40)
        yield ToolCalls([CALL])
        seen.extend(await asyncio.to_thread(elsewhere, "SELECT api_call_count FROM sessions"))
        yield ToolResult("c1", "look", "found")
        yield Usage("r2", "other", 1500, 200)
        yield Usage("r2", "other", 1500, 200)
        yield Final(f"done: {context.text}", reasoning=Reasoning("for people", "for the provider", [{"sealed": "x"}]))

    hall.agent.play = play
    async with hall.running():
        await hall.say("/usage")
        await hall.sent(1)
        await hall.say("go")
        await hall.sent(2)
        await hall.say("/usage")
        answers = await hall.sent(3)
    assert seen == [{"api_call_count": 1}]
    assert answers[0] == "No session here yet; nothing has been spent."
    assert answers[2].splitlines() == [
        "In this conversation: 2 calls of a model, 2,800 tokens: 2,500 read, 300 written (40 of them reasoning).",
        "other: 1 call, 1,500 read, 200 written.",
        "m: 1 call, 1,000 read, 100 written.",
    ]
    stored = (await hall.db.get_messages((await hall.session())["id"]))[-1]
    assert (stored["reasoning"], stored["reasoning_content"]) == ("for people", "for the provider")
    assert stored["reasoning_details"] == [{"sealed": "x"}]


@pytest.mark.parametrize("how", ["fails", "stopped"])
async def test_a_turn_without_an_answer_is_counted_too(hall: Hall, elsewhere: Elsewhere, how: str) -> None:
    """The provider has counted it."""
    begun = asyncio.Event()

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        yield Usage("r1", "m", 10, 5)
        if how == "fails":
            raise AgentError("The model is on holiday.")
        begun.set()
        await asyncio.Event().wait()
        yield Final(context.text)

    hall.agent.play = play
    async with hall.running():
        await hall.say("go")
        if how == "stopped":
            await begun.wait()
            await hall.say("/stop")
        await hall.quiet()
    assert elsewhere("SELECT api_call_count, input_tokens FROM sessions") == [{"api_call_count": 1, "input_tokens": 10}]
