"""A conversation on Telegram that outgrows the budget of its model: compressed by itself, killed, gone on with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Elsewhere
from tests.emulators.telegram import TelegramEmulator
from tests.gateways import GatewayProcess, telegram_home, threadline
from tests.servers.openai_server import KEY, MODEL, OpenAIServer

WORDS = "many words that take their room " * 40


@pytest.fixture
async def model() -> AsyncIterator[OpenAIServer]:
    """A strict server; what it is asked beside the turns (titles, summaries) it answers with `The garden`."""
    async with OpenAIServer(named="The garden") as server:
        yield server


@pytest.fixture
def with_model(configured: Path, telegram: TelegramEmulator, model: OpenAIServer) -> Path:
    """A home whose agent is that model, with little room."""
    agent = {"kind": "openai", "base_url": model.base_url, "api_key": KEY, "model": MODEL, "context_tokens": 4000}
    return telegram_home(configured, telegram.base_url, telegram.token, agent=agent)


async def test_it_is_compressed_by_itself_and_goes_on_in_every_place(
    with_model: Path, telegram: TelegramEmulator, model: OpenAIServer, elsewhere: Elsewhere
) -> None:
    """The person is told, no request exceeds the budget, a kill changes nothing, the terminal goes on with the same."""
    async with GatewayProcess(with_model).running() as gateway:
        for number in range(8):
            telegram.say(f"{number}: {WORDS}")
            await telegram.until(lambda: _answers(telegram) == number + 1, 60)  # noqa: B023 - awaited at once
        await telegram.until(lambda: any("had grown long" in one.text for one in telegram.sent), 30)
        await gateway.kill()
    async with GatewayProcess(with_model).running() as gateway:
        telegram.say("And now?")
        # The kill may have fallen before a receipt, so that an earlier answer comes once more.
        await telegram.until(lambda: any(one.text == "re: And now?" for one in telegram.sent), 60)
        assert await gateway.stop() == 0
    segments = elsewhere("SELECT * FROM sessions ORDER BY rowid")
    assert len(segments) > 1
    assert all(segment["end_reason"] == "compression" for segment in segments[:-1])
    assert [segment["parent_session_id"] for segment in segments[1:]] == [one["id"] for one in segments[:-1]]
    for column in ("owner", "session_key", "place_id", "system_prompt", "model"):
        assert len({segment[column] for segment in segments}) == 1, column
    said = [row["content"] for row in elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")]
    assert said == [*(f"{number}: {WORDS}".strip() for number in range(8)), "And now?"]

    assert model.refusals == []
    last = model.asked[-1]["messages"]
    assert [message["role"] for message in last[:2]] == ["system", "user"]
    assert "The garden" in last[0]["content"]
    assert last[0]["content"].startswith(segments[0]["system_prompt"])
    assert last[-1]["content"].endswith("And now?")
    for request in model.asked:
        assert sum(len(str(message["content"]).encode()) for message in request["messages"]) <= 3 * 4000

    costs = elsewhere("SELECT purpose, COUNT(*) AS n FROM usage GROUP BY purpose ORDER BY purpose")
    assert {"purpose": "summary", "n": len(segments) - 1} in costs
    sums = elsewhere("SELECT SUM(api_call_count) AS calls FROM sessions")[0]["calls"]
    assert sums == sum(cost["n"] for cost in costs)

    answer = await threadline(with_model, "chat", "-r", segments[0]["id"], "-q", "Here, too?")
    assert answer.code == 0, answer.err
    assert answer.out.strip() == "re: Here, too?"
    ends = elsewhere("SELECT session_id FROM messages WHERE content = 'Here, too?'")
    assert ends == [{"session_id": elsewhere("SELECT id FROM sessions ORDER BY rowid DESC LIMIT 1")[0]["id"]}]


def _answers(telegram: TelegramEmulator) -> int:
    return sum(one.text.startswith("re: ") for one in telegram.sent)
