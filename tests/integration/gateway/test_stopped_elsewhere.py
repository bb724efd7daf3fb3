"""A turn that runs in one process is stopped from another: gateway and terminal, both real processes, either way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import gateways
from tests.conftest import Elsewhere
from tests.emulators.telegram import TelegramEmulator
from tests.gateways import GatewayProcess
from tests.terminals import SLOW_COMMAND, at_a_terminal

BOUND = 30.0
STOPPED = "Stopped. What was said so far is kept."
TURNS = "SELECT state, reason FROM turns ORDER BY rowid"
PARTIAL = "SELECT content FROM messages WHERE finish_reason = 'stopped'"


@pytest.fixture
async def gateway(configured: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[GatewayProcess]:
    """A gateway with the slow agent."""
    monkeypatch.setattr(gateways, "COMMAND", SLOW_COMMAND)
    async with GatewayProcess(configured, TEST_AGENT_GATE=str(configured / "gate")).running() as process:
        yield process


def session(elsewhere: Elsewhere) -> str:
    """The only session."""
    ((found),) = elsewhere("SELECT id FROM sessions")
    return str(found["id"])


async def test_the_terminal_stops_a_turn_of_the_gateway(
    configured: Path, gateway: GatewayProcess, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """Whoever waits in the chat reads so in the message that was shown."""
    telegram.say("one")
    await telegram.until(lambda: telegram.sent, BOUND)

    def stop() -> None:
        with at_a_terminal(configured, "-r", session(elsewhere), command=SLOW_COMMAND) as person:
            person.sees("(made by another process; /stop ends it)")
            person.enter("/stop")
            person.sees("Stopping the running turn.", "Stopped.")

    await asyncio.to_thread(stop)
    await telegram.until(lambda: "Stopped." in telegram.sent[-1].text, BOUND)
    assert [sent.text for sent in telegram.sent] == ["thinking about one\n\nStopped."]
    assert await asyncio.to_thread(elsewhere, TURNS) == [{"state": "interrupted", "reason": "stopped"}]
    assert await asyncio.to_thread(elsewhere, PARTIAL) == [{"content": "thinking about one"}]
    assert await gateway.stop() == 0


async def test_a_chat_stops_a_turn_of_the_terminal(
    configured: Path, gateway: GatewayProcess, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """The session was born in the chat and goes on in the terminal, which is told."""
    gate = configured / "gate"
    await asyncio.to_thread(gate.touch)
    telegram.say("one")
    await telegram.until(lambda: telegram.sent and telegram.sent[-1].text == "answer to one", BOUND)
    await asyncio.to_thread(gate.unlink)

    def stopped() -> None:
        with at_a_terminal(configured, "-r", session(elsewhere), command=SLOW_COMMAND) as person:
            person.enter("a long one")
            person.sees("thinking about a long one", "(Ctrl-C stops)")
            telegram.say("/stop")
            person.sees(STOPPED)

    await asyncio.to_thread(stopped)
    await telegram.until(lambda: len(telegram.sent) > 1, BOUND)
    assert [sent.text for sent in telegram.sent] == ["answer to one", "Stopping the running turn."]
    turns = await asyncio.to_thread(elsewhere, TURNS)
    assert turns == [{"state": "done", "reason": None}, {"state": "interrupted", "reason": "stopped"}]
    assert await asyncio.to_thread(elsewhere, PARTIAL) == [{"content": "thinking about a long one"}]
    assert await gateway.stop() == 0
