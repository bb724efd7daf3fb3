"""The terminal obeys `busy`, too: what is typed while an answer is made can end it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from config import Home
from gateway.agents.base import AgentContext, AgentEvent, Final, TextDelta
from gateway.terminal import open_terminal
from tests.unit.gateway_core.fakes import FakeAgent
from tests.unit.gateway_core.hall import settings


async def test_what_is_typed_meanwhile_ends_the_answer_and_is_answered_next(home: Path, agent: FakeAgent) -> None:
    """What was said so far is kept as the answer to the former message."""
    begun = asyncio.Event()

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        if context.text == "one":
            yield TextDelta("so far")
            begun.set()
            await asyncio.Event().wait()
        yield Final(f"re: {context.text}")

    agent.play = play
    async with open_terminal(Home(home), settings(busy="interrupt")) as terminal:
        first = await terminal.say("one")
        async with asyncio.timeout(20):
            await begun.wait()
        second = await terminal.say("two")
        async with asyncio.timeout(20):
            former = await terminal.answer(first, lambda: None)
            newer = await terminal.answer(second, lambda: None)
    assert (former.stopped, former.text) == (True, "so far")
    assert (newer.stopped, newer.text) == (False, "re: two")
