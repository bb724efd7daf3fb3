"""What models cost: stored with the step or the end that it paid for, whatever becomes of the turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.agents.base import (
    AgentContext,
    AgentError,
    AgentEvent,
    Final,
    Reasoning,
    SummaryRequest,
    ToolCalls,
    ToolResult,
    Usage,
    Written,
)
from session_store import SessionDB
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


async def test_the_sums_are_right_after_a_report_told_twice_helper_calls_a_reopening_and_compression(
    hall: Hall, home: Path
) -> None:
    """In and out of three calls and a helper's; what was thought is inside what was written; a summary counts, too."""
    calls = [
        [Usage("r1", "m", 1000, 100, reasoning_tokens=40)],
        [Usage("r2", "m", 1500, 200)],
        [Usage("r3", "m", 2500, 50, reasoning_tokens=10)] * 2,
    ]

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        for call in calls[len(hall.agent.asked) - 1]:
            yield call
        yield Final(f"re: {context.text}")

    async def sum_up(request: SummaryRequest) -> Written:
        del request
        return Written("A summary.", [Usage("r5", "small", 7, 3)])

    hall.agent.play, hall.agent.sum_up = play, sum_up
    async with hall.running():
        for number in range(3):
            await hall.say(f"{number}")
            await hall.sent(number + 1)
        session_id = (await hall.session())["id"]
        await hall.db.usage.record(session_id, [Usage("r4", "small", 300, 20)], "title")
        told = "In this conversation: 4 calls of a model, 5,670 tokens: 5,300 read, 370 written (50 of them reasoning)."
        await hall.say("/usage")
        assert (await hall.sent(4))[3].splitlines()[0] == told
        async with SessionDB(home / "state.db") as other:
            assert (await other.usage.of_conversation(session_id))["total_tokens"] == 5670
        await hall.say("/compress")
        await hall.sent(5)
        assert (await hall.session())["id"] != session_id
        await hall.say("/usage")
        after = (await hall.sent(6))[5].splitlines()[0]
    assert after == told.replace("4 calls", "5 calls").replace("5,670", "5,680").replace("5,300", "5,307").replace(
        "370", "373"
    )


async def test_a_conversation_without_a_model_has_cost_nothing(hall: Hall) -> None:
    """One sentence says so."""
    async with hall.running():
        await hall.say("go")
        await hall.sent(1)
        await hall.say("/usage")
        answers = await hall.sent(2)
    assert answers[1] == "No model has been called in this conversation, so it has cost nothing."
