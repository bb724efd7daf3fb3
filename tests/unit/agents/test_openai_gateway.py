"""The agent `openai` in the core of a gateway: shown while it writes, stopped at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog

from session_store import SessionDB
from tests.conftest import Elsewhere
from tests.servers.openai_server import OpenAIServer, Says
from tests.unit.agents.bench import agent_for
from tests.unit.gateway_core.hall import Hall, settings


@pytest.fixture
async def hall(db: SessionDB, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hall]:
    """The core of a gateway whose agent asks the server."""
    agent: Any = agent_for(server)
    monkeypatch.setattr("gateway.workshop.make_agent", lambda _settings: agent)
    with structlog.testing.capture_logs():
        async with Hall.open(db, agent, settings()) as opened:
            yield opened


async def test_a_stop_ends_the_request_and_keeps_what_was_said(
    hall: Hall, server: OpenAIServer, elsewhere: Elsewhere
) -> None:
    """The text so far is shown, then kept; the server notices that nobody listens; the next message is answered."""
    server.next(Says(["It began ", "long ago"], gate=asyncio.Event()))
    async with hall.running():
        await hall.say("Tell me a story")
        await hall.until(lambda: asyncio.sleep(0, server.asked))
        await shown(hall, (await hall.session())["id"])
        server.closed.clear()
        await hall.say("/stop")
        async with asyncio.timeout(20):
            await server.closed.wait()
        await hall.quiet()
        await hall.say("Another one")
        await hall.until(lambda: answered(hall))
    rows = elsewhere("SELECT content, finish_reason FROM messages WHERE role = 'assistant' ORDER BY id")
    assert rows[0] == {"content": "It began ", "finish_reason": "stopped"}
    assert rows[1]["content"] == "re: Another one"
    assert server.refusals == []


async def shown(hall: Hall, session_id: str) -> None:
    """Until some of the answer is shown live."""
    changed = asyncio.Event()
    async with asyncio.timeout(20):
        with hall.workshop.live.subscribe(session_id, changed.set):
            while (live := hall.workshop.live.text(session_id)) is None or not live.text:
                await changed.wait()
                changed.clear()


async def answered(hall: Hall) -> bool:
    """Whether the last answer went out."""
    await asyncio.sleep(0)
    return "re: Another one" in hall.adapter.texts
