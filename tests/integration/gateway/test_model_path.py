"""From a message on Telegram through a model behind a real socket to the answer there, with kills in between."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Elsewhere
from tests.emulators.telegram import TelegramEmulator
from tests.gateways import GatewayProcess, eventually, telegram_home, threadline
from tests.servers.openai_server import KEY, MODEL, OpenAIServer, Says

HELD = [sys.executable, str(Path(__file__).with_name("tool_held_gateway.py"))]
COUNTS = {"prompt_tokens": 1000, "completion_tokens": 100, "completion_tokens_details": {"reasoning_tokens": 40}}
SEARCH = json.dumps({"query": "key"})


@pytest.fixture
async def model() -> AsyncIterator[OpenAIServer]:
    """A strict server; it names every conversation `The key`."""
    async with OpenAIServer(named="The key") as server:
        yield server


@pytest.fixture
def with_model(configured: Path, telegram: TelegramEmulator, model: OpenAIServer) -> Path:
    """A home whose agent is that model."""
    agent = {"kind": "openai", "base_url": model.base_url, "api_key": KEY, "model": MODEL}
    return telegram_home(configured, telegram.base_url, telegram.token, agent=agent)


async def test_a_model_answers_with_what_its_tool_found(
    with_model: Path, telegram: TelegramEmulator, model: OpenAIServer, elsewhere: Elsewhere
) -> None:
    """Stored step by step, counted per call; the next turn sends what the first one sent, and more."""
    model.next(
        Says(deltas=[{"reasoning_content": "hm"}], calls=[("c1", "session_search", SEARCH)], usage=COUNTS),
        Says(["It is ", "under the mat."], usage=COUNTS),
        Says(["You are welcome."], usage=COUNTS),
    )
    async with GatewayProcess(with_model).running() as gateway:
        telegram.say("Where is the key?")
        await telegram.until(lambda: len(telegram.sent) == 1, 30)
        telegram.say("Thanks")
        await telegram.until(lambda: len(telegram.sent) == 2, 30)
        await eventually(lambda: asyncio.to_thread(named, elsewhere))
        telegram.say("/usage")
        await telegram.until(lambda: len(telegram.sent) == 3, 30)
        assert await gateway.stop() == 0
        assert KEY not in gateway.logged()
    assert telegram.sent[0].text == "It is under the mat."
    rows = elsewhere("SELECT role, content, tool_name, reasoning_content FROM messages ORDER BY id")
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert rows[1]["reasoning_content"] == "hm"
    assert model.refusals == []
    first, last = model.asked[0], model.asked[2]
    assert last["messages"][: len(first["messages"])] == first["messages"]
    assert last["messages"][: len(model.asked[1]["messages"])] == model.asked[1]["messages"]
    assert last["tools"] == first["tools"]
    (session,) = elsewhere("SELECT * FROM sessions")
    assert session["system_prompt"] == first["messages"][0]["content"]
    assert "on Telegram" in session["system_prompt"]
    assert (session["title"], session["model"], session["billing_provider"]) == ("The key", MODEL, "127.0.0.1")
    assert (session["api_call_count"], session["input_tokens"], session["reasoning_tokens"]) == (4, 3010, 120)
    assert "4 calls of a model, 3,315 tokens: 3,010 read, 305 written (120 of them reasoning)" in telegram.sent[2].text


def named(elsewhere: Elsewhere) -> bool:
    """Whether the conversation has its title, and what that cost is counted."""
    return elsewhere("SELECT count(*) AS n FROM usage WHERE purpose = 'title'") == [{"n": 1}]


class HeldTools:
    """A gateway one of whose tool calls hangs: that of the number last given."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.process = GatewayProcess(home, TEST_TOOLS_FOLDER=str(folder))
        self._folder = folder

    def hold(self, number: int) -> None:
        """The call of this number in the next life of the process hangs; 0: none."""
        (self._folder / "hold").write_text(str(number))

    async def hangs(self) -> bool:
        """Whether it hangs."""
        return await asyncio.to_thread((self._folder / "hangs").exists)


@pytest.fixture
def held(with_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HeldTools:
    """A gateway with the model, whose tools can hang."""
    monkeypatch.setattr("tests.gateways.COMMAND", HELD)
    return HeldTools(with_model, tmp_path)


@pytest.mark.parametrize("hold", [1, 2])
async def test_a_kill_inside_a_tool_leaves_a_history_that_the_strictest_provider_takes(
    held: HeldTools, telegram: TelegramEmulator, model: OpenAIServer, elsewhere: Elsewhere, hold: int
) -> None:
    """After both calls were stored, or one of two results: the open one reads as interrupted, rows stay."""
    held.hold(hold)
    calls = [("c1", "session_search", SEARCH), ("c2", "session_search", SEARCH)]
    model.next(Says(calls=calls, usage=COUNTS), Says(["Found again."], usage=COUNTS))
    await held.process.start()
    telegram.say("Where is the key?")
    await eventually(held.hangs)
    await held.process.kill()
    before = elsewhere("SELECT id, role, content, tool_calls FROM messages ORDER BY id")
    assert [row["role"] for row in before] == ["user", "assistant", "tool"][: 1 + hold]
    assert elsewhere("SELECT api_call_count FROM sessions") == [{"api_call_count": 1}]

    held.hold(0)
    async with held.process.running() as gateway:
        await telegram.until(lambda: len(telegram.sent) == 1, 30)
        telegram.say("And now?")
        await telegram.until(lambda: len(telegram.sent) == 2, 30)
        assert await gateway.stop() == 0
    assert telegram.sent[0].text == "Found again."
    assert model.refusals == []
    assert elsewhere(f"SELECT id, role, content, tool_calls FROM messages ORDER BY id LIMIT {len(before)}") == before  # noqa: S608
    for request in model.asked[1:3]:
        results = [message for message in request["messages"] if message["role"] == "tool"]
        assert [result["content"] == "interrupted, effect unknown" for result in results] == [hold == 1, True]
    asked = [message["content"] for message in model.asked[2]["messages"] if message["role"] == "user"]
    assert asked == ["Where is the key?", "And now?"]
    first, second = (request["messages"] for request in model.asked[1:3])
    assert second[: len(first)] == first


async def test_a_server_in_trouble_costs_no_message(
    with_model: Path, telegram: TelegramEmulator, model: OpenAIServer, elsewhere: Elsewhere
) -> None:
    """Told in a sentence; what the person said is stored once, and the next answer knows it."""
    model.next(*[Says(status=500)] * 3, Says(status=401), Says(["Half an"], finish=None), Says(["All well."]))
    async with GatewayProcess(with_model).running() as gateway:
        for number, text in enumerate(["one", "two", "three", "four"], 1):
            telegram.say(text)
            await telegram.until(lambda number=number: len(telegram.sent) == number, 40)  # type: ignore[misc]
        assert await gateway.stop() == 0
    answers = [sent.text for sent in telegram.sent]
    assert "has trouble of its own (error 500)" in answers[0]
    assert "does not accept the key" in answers[1]
    assert answers[2].startswith("Half an")
    assert "broke here" in answers[2]
    assert answers[3] == "All well."
    said = elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
    assert [row["content"] for row in said] == ["one", "two", "three", "four"]
    told = [content for role, content in model.said() if role == "user"]
    assert told == ["one\n\ntwo\n\nthree", "four"]


async def test_the_terminal_asks_the_same_model_and_says_how_it_failed(
    with_model: Path, model: OpenAIServer, elsewhere: Elsewhere
) -> None:
    """One question from a script, then one with nobody there."""
    done = await threadline(with_model, "chat", "-q", "What is the time?")
    assert (done.code, done.out.strip()) == (0, "re: What is the time?")
    assert "in the terminal" in elsewhere("SELECT system_prompt FROM sessions")[0]["system_prompt"]
    model.always(Says(status=404, error={"error": {"message": "no such model"}}))
    failed = await threadline(with_model, "chat", "-q", "And now?")
    assert "does not know the model" in failed.out + failed.err
