"""Messages while the agent works, and the outbox for people: the real client library, real processes, kills."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.attention import WAITING
from tests import gateways
from tests.conftest import Elsewhere
from tests.emulators.telegram import TelegramEmulator
from tests.gateways import GatewayProcess, eventually, telegram_home, threadline

BOUND = 30.0
LEFT = "I have left this for your newer message."
HELD = [sys.executable, str(Path(__file__).with_name("held_gateway.py"))]


class Held:
    """A gateway in a process of its own, whose agent the test holds."""

    def __init__(self, home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.mkdir()
        monkeypatch.setattr(gateways, "COMMAND", HELD)
        self.process = GatewayProcess(home, TEST_AGENT_FOLDER=str(folder))
        self._folder = folder

    async def has(self, name: str) -> None:
        """Until the agent has made this file; then it is gone again."""

        async def there() -> bool:
            return await asyncio.to_thread((self._folder / name).exists)

        await eventually(there)
        await asyncio.to_thread((self._folder / name).unlink)

    async def let_go(self) -> None:
        """Every turn ends from now on."""
        await asyncio.to_thread((self._folder / "gate").touch)


def texts(telegram: TelegramEmulator) -> list[str]:
    """What was sent, in order."""
    return [sent.text for sent in telegram.sent]


async def confirmed(telegram: TelegramEmulator) -> None:
    """Until every update is confirmed."""
    await telegram.until(lambda: all(update.confirmed for update in telegram.updates.values()), BOUND)


def said(elsewhere: Elsewhere) -> list[str]:
    """What people said, as it stands in the transcript."""
    rows = elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
    return [row["content"] for row in rows]


def held(tmp_path: Path, telegram: TelegramEmulator, monkeypatch: pytest.MonkeyPatch, home: Path, **more: Any) -> Held:
    """A gateway with these settings."""
    return Held(telegram_home(home, telegram.base_url, telegram.token, **more), tmp_path / "agent", monkeypatch)


async def test_a_newer_message_interrupts_and_a_kill_in_between_loses_nothing(
    home: Path, tmp_path: Path, telegram: TelegramEmulator, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed right after the newer message was confirmed: it is answered once, and the former one is not forgotten."""
    gateway = held(tmp_path, telegram, monkeypatch, home, busy="interrupt")
    async with gateway.process.running():
        telegram.say("one")
        await gateway.has("begun")
        telegram.say("two")
        await telegram.until(lambda: telegram.sent, BOUND)
        await gateway.has("begun")
        telegram.say("three")
        await confirmed(telegram)
        await gateway.process.kill()
    async with gateway.process.running():
        await gateway.has("begun")
        await gateway.let_go()
        await telegram.until(lambda: "answer to three" in texts(telegram), BOUND)
        assert await gateway.process.stop() == 0
    assert texts(telegram)[0] == LEFT
    assert texts(telegram).count("answer to three") == 1
    assert "answer to one" not in texts(telegram)
    assert said(elsewhere) == ["one", "two", "three"]
    assert {row["state"] for row in elsewhere("SELECT state FROM inbox")} == {"done"}
    partial = elsewhere("SELECT content FROM messages WHERE finish_reason = 'stopped' ORDER BY id")
    assert partial[0]["content"] == "thinking about one"


async def test_what_was_taken_in_survives_a_kill_and_is_answered_once(
    home: Path, tmp_path: Path, telegram: TelegramEmulator, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the step that took it and the answer, and again before anything new is said."""
    gateway = held(tmp_path, telegram, monkeypatch, home, busy="steer")
    async with gateway.process.running():
        telegram.say("one")
        await gateway.has("begun")
        telegram.say("two")
        await gateway.has("taken")
        await gateway.process.kill()
    assert said(elsewhere) == ["one", "two"]
    async with gateway.process.running():
        await gateway.has("begun")
        telegram.say("three")
        await gateway.has("taken")
        await gateway.let_go()
        await telegram.until(lambda: telegram.sent, BOUND)
        await confirmed(telegram)
        assert await gateway.process.stop() == 0
    assert texts(telegram) == ["answer to one, two, three"]
    assert said(elsewhere) == ["one", "two", "three"]
    assert elsewhere("SELECT state, attempt FROM turns") == [{"state": "done", "attempt": 2}]
    assert {row["state"] for row in elsewhere("SELECT state FROM inbox")} == {"done"}


async def test_who_waits_is_told_once_also_over_a_kill(
    home: Path, tmp_path: Path, telegram: TelegramEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some seconds, and never again for the same wait."""
    gateway = held(tmp_path, telegram, monkeypatch, home)
    async with gateway.process.running():
        telegram.say("one")
        await gateway.has("begun")
        telegram.say("two")
        telegram.say("three")
        await telegram.until(lambda: WAITING in texts(telegram), BOUND)
        await gateway.process.kill()
    async with gateway.process.running():
        await gateway.has("begun")
        await gateway.let_go()
        await telegram.until(lambda: "answer to three" in texts(telegram), BOUND)
        assert await gateway.process.stop() == 0
    # The first answer was shown from its beginning on. A kill inside the send may show one part twice.
    assert list(dict.fromkeys(texts(telegram))) == ["answer to one", WAITING, "answer to two", "answer to three"]


async def test_texts_in_a_row_are_one_turn_also_over_a_kill(
    home: Path, tmp_path: Path, telegram: TelegramEmulator, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while it waits for more: the next one waits for the rest of the window, and answers all together."""
    gateway = held(tmp_path, telegram, monkeypatch, home, merge_window=8)
    await gateway.let_go()
    async with gateway.process.running():
        telegram.say("one")
        telegram.say("two")
        await confirmed(telegram)
        await gateway.process.kill()
    assert telegram.sent == []
    async with gateway.process.running():
        telegram.say("three")
        await telegram.until(lambda: telegram.sent, BOUND)
        await gateway.process.kill()
    async with gateway.process.running():
        telegram.say("four")
        await telegram.until(lambda: "answer to four" in texts(telegram), BOUND)
        assert await gateway.process.stop() == 0
    # A kill inside the send may show one part twice.
    assert list(dict.fromkeys(texts(telegram))) == ["answer to one, two, three", "answer to four"]
    assert len(elsewhere("SELECT id FROM turns")) == 2
    assert said(elsewhere) == ["one\n\ntwo\n\nthree", "four"]
    assert {row["state"] for row in elsewhere("SELECT state FROM inbox")} == {"done"}


async def test_what_a_platform_refused_is_sent_when_a_person_says_so(
    configured: Path, telegram: TelegramEmulator
) -> None:
    """Listed with its reason, tried again from the command line, sent by the running gateway."""
    refusal = telegram.fail("sendMessage", "refuse", times=None, status=403, description="Forbidden: not now")
    async with GatewayProcess(configured).running() as gateway:
        telegram.say("The key is under the mat")

        async def failed() -> bool:
            listed = await threadline(configured, "outbox", "list", "--json", "--state", "failed")
            return len(json.loads(listed.out)["parts"]) == 1

        await eventually(failed)
        listed = await threadline(configured, "outbox", "list")
        assert "failed  telegram/main 42" in listed.out
        assert "not now" in listed.out
        refusal.times = 0
        number = listed.out.split()[0]
        again = await threadline(configured, "outbox", "retry", number)
        assert (again.code, again.out) == (0, f"{number} waits to be sent again.\n")
        await telegram.until(lambda: telegram.sent, BOUND)
        # Ended in order, so that the receipt is written: the context would kill it.
        assert await gateway.stop() == 0
    (answer,) = telegram.sent
    assert "under the mat" in answer.text
    assert "Nothing is" in (await threadline(configured, "outbox", "list")).out
