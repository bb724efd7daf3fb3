"""Answers shown while they are made, on each platform: its real library, a gateway process that is killed.

There is one message of each answer in the end. Only where the platform takes no key for a send, and the gateway died
between the send and its receipt, a beginning stays behind; the store has counted it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import gateways
from tests.conftest import Elsewhere
from tests.gateways import GatewayProcess, eventually
from tests.integration.gateway.chats import CHATS, Chat

HELD = [sys.executable, str(Path(__file__).with_name("held_gateway.py"))]
THINKING = "thinking about one …"
ANSWER = "answer to one"
RESENDS = "SELECT SUM(resends) AS n FROM outbox"
STATES = "SELECT DISTINCT state FROM outbox"


@pytest.fixture(params=CHATS, ids=lambda chat: chat.name)
async def chat(request: pytest.FixtureRequest) -> AsyncIterator[Chat]:
    """A direct chat on each platform."""
    made: Chat = request.param()
    async with made.server:
        yield made


class Held:
    """A gateway in a process of its own, whose agent thinks until it is let go."""

    def __init__(self, home: Path, folder: Path) -> None:
        folder.mkdir()
        self.process = GatewayProcess(home, TEST_AGENT_FOLDER=str(folder))
        self._gate = folder / "gate"

    async def let_go(self) -> None:
        """Every turn ends from now on."""
        await asyncio.to_thread(self._gate.touch)


@pytest.fixture
def gateway(home: Path, tmp_path: Path, chat: Chat, monkeypatch: pytest.MonkeyPatch) -> Held:
    """The gateway on a home that knows the platform."""
    account = {"enabled": True, "allow_all": True, **chat.settings}
    settings = {"web": {"port": 0}, "platforms": {chat.name: account}}
    (home / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    monkeypatch.setattr(gateways, "COMMAND", HELD)
    return Held(home, tmp_path / "agent")


@pytest.fixture
def recorded(elsewhere: Elsewhere) -> Callable[[], Any]:
    """Until the store knows that what was sent is sent."""

    async def look() -> bool:
        return await asyncio.to_thread(elsewhere, STATES) == [{"state": "sent"}]

    return lambda: eventually(look)


async def test_an_answer_is_shown_while_it_is_made_and_is_one_message(
    chat: Chat, gateway: Held, elsewhere: Elsewhere
) -> None:
    """What is shown is marked as unfinished; nothing of it comes back as input."""
    async with gateway.process.running():
        await chat.ready()
        chat.say("one")
        await chat.until(lambda: chat.texts == [THINKING])
        await gateway.let_go()
        await chat.until(lambda: chat.texts == [ANSWER])
        chat.say("two")
        await chat.until(lambda: len(chat.texts) == 2)
        assert await gateway.process.stop() == 0
    assert chat.texts == [ANSWER, "answer to two"]
    assert chat.edits == [ANSWER]
    said = [row["content"] for row in elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")]
    assert said == ["one", "two"]


async def test_killed_after_the_receipt_the_same_message_is_finished(
    chat: Chat, gateway: Held, recorded: Callable[[], Any], elsewhere: Elsewhere
) -> None:
    """The turn is run again, and its answer stands where its beginning stood."""
    async with gateway.process.running():
        await chat.ready()
        chat.say("one")
        await chat.until(lambda: chat.texts == [THINKING])
        await recorded()
        await gateway.process.kill()
    await gateway.let_go()
    async with gateway.process.running():
        await chat.until(lambda: ANSWER in chat.texts)
        assert await gateway.process.stop() == 0
    assert (chat.texts, chat.tried("send")) == ([ANSWER], 1)
    assert elsewhere(RESENDS) == [{"n": 0}]


async def test_killed_before_the_receipt_the_outcome_is_unknown_and_settled_by_the_rule(
    chat: Chat, gateway: Held, elsewhere: Elsewhere
) -> None:
    """Sent again once; with a key that is the same message, without one a beginning stays behind and is counted."""
    chat.fail("send", "delay", processed=True, seconds=60.0)
    async with gateway.process.running():
        await chat.ready()
        chat.say("one")
        await chat.until(lambda: chat.texts == [THINKING])
        await gateway.process.kill()
    async with gateway.process.running():
        await chat.until(lambda: chat.tried("send") == 2)
        await gateway.let_go()
        await chat.until(lambda: ANSWER in chat.texts)
        assert await gateway.process.stop() == 0
    assert chat.texts == ([ANSWER] if chat.idempotent else [THINKING, ANSWER])
    assert elsewhere(RESENDS) == [{"n": 1}]


async def test_killed_in_the_last_edit_it_is_made_again_and_nothing_is_posted_twice(
    chat: Chat, gateway: Held, recorded: Callable[[], Any], elsewhere: Elsewhere
) -> None:
    """An edit may be made any number of times, so nothing is in doubt."""
    async with gateway.process.running():
        await chat.ready()
        chat.say("one")
        await chat.until(lambda: chat.texts == [THINKING])
        await recorded()
        chat.fail("edit", "hang", times=None)
        before = chat.tried("edit")
        await gateway.let_go()
        await chat.until(lambda: chat.tried("edit") > before)
        await gateway.process.kill()
    chat.server.faults.clear()
    async with gateway.process.running():
        await chat.until(lambda: chat.texts == [ANSWER])
        assert await gateway.process.stop() == 0
    assert chat.tried("send") == 1
    assert elsewhere(RESENDS) == [{"n": 0}]


async def test_a_message_that_somebody_took_away_is_followed_by_the_whole_answer(chat: Chat, gateway: Held) -> None:
    """It cannot be edited any more."""
    async with gateway.process.running():
        await chat.ready()
        chat.say("one")
        await chat.until(lambda: chat.texts == [THINKING])
        chat.remove()
        await gateway.let_go()
        await chat.until(lambda: chat.texts == [THINKING, ANSWER])
        assert await gateway.process.stop() == 0


async def test_who_stops_a_shown_answer_reads_in_it_that_it_was_stopped(chat: Chat, gateway: Held) -> None:
    """Below what was said so far."""
    async with gateway.process.running():
        await chat.ready()
        chat.say("one")
        await chat.until(lambda: chat.texts == [THINKING])
        chat.say("/stop")
        await chat.until(lambda: any("Stopped." in text for text in chat.texts))
        assert await gateway.process.stop() == 0
    assert chat.texts[0] == "thinking about one\n\nStopped."


async def test_the_whole_answer_waits_for_flood_control_in_the_message_that_is_there(
    chat: Chat, gateway: Held, elsewhere: Elsewhere
) -> None:
    """It is visibly waiting, and then it is put where it belongs."""
    async with gateway.process.running():
        await chat.ready()
        chat.say("one")
        await chat.until(lambda: chat.texts == [THINKING])
        chat.flood(61)
        await gateway.let_go()

        async def waits() -> bool:
            rows = await asyncio.to_thread(elsewhere, "SELECT error FROM outbox WHERE state = 'waiting'")
            return bool(rows) and "asks to" in str(rows[0]["error"])

        await eventually(waits)
        assert chat.texts == [THINKING]
        await gateway.process.kill()
    chat.server.faults.clear()
    elsewhere("UPDATE outbox SET next_at = 0 WHERE state = 'waiting'")
    async with gateway.process.running():
        await chat.until(lambda: chat.texts == [ANSWER])
        assert await gateway.process.stop() == 0
