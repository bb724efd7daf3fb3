"""/retry in the terminal where the question stands in a session that compression has ended."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from config import Home
from gateway.terminal import open_terminal
from tests.unit.gateway_core.hall import settings


@pytest.mark.usefixtures("agent")
async def test_the_answer_to_a_question_of_before_is_the_one_that_is_shown(home: Path) -> None:
    """It is stored in the session where the conversation goes on, not in that of the question."""
    async with open_terminal(Home(home), settings()) as terminal, asyncio.timeout(30):
        for text in ("one", "two"):
            assert (await terminal.answer(await terminal.say(text), lambda: None)).text == f"re: {text}"
        call = terminal.parse("/compress")
        assert call is not None
        await terminal.command(call)
        assert len(await terminal.conversation()) == 2
        again = await terminal.answer(await terminal.say("/retry"), lambda: None)
    assert (again.text, again.stopped, again.problem) == ("re: two", False, None)
