"""Answers shown while they are made, on all platforms: their real libraries, one gateway process that is killed.

There is one message of each answer in the end. Only where the platform takes no key for a send, and the gateway died
between the send and its receipt, a beginning stays behind; the store has counted it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from tests import gateways
from tests.conftest import Elsewhere
from tests.gateways import GatewayProcess, eventually
from tests.integration.gateway.chats import CHATS, Chat

HELD = [sys.executable, str(Path(__file__).with_name("held_gateway.py"))]
THINKING = "thinking about one …"
ANSWER = "answer to one"
RESENDS = "SELECT platform, SUM(resends) AS n FROM outbox GROUP BY platform ORDER BY platform"
NO_RESENDS = [{"platform": name, "n": 0} for name in ("discord", "slack", "telegram")]


class Scene:
    """A direct chat on each platform, and the gateway that serves them, whose agent thinks until it is let go."""

    def __init__(self, chats: Sequence[Chat], process: GatewayProcess, folder: Path, elsewhere: Elsewhere) -> None:
        self.chats = chats
        self.process = process
        self.elsewhere = elsewhere
        self._gate = folder / "gate"

    async def ask(self, text: str) -> None:
        """Everybody says something."""
        for chat in self.chats:
            await chat.ready()
            chat.say(text)

    async def each(self, condition: Callable[[Chat], object]) -> None:
        """Until this holds of every chat."""
        for chat in self.chats:
            try:
                await chat.until(lambda chat=chat: condition(chat))  # type: ignore[misc]  # bound at once
            except TimeoutError:
                raise AssertionError(f"It does not come on {chat.name}, which shows {chat.texts}") from None

    async def show(self, *texts: str) -> None:
        """Until every chat shows exactly this."""
        await self.each(lambda chat: chat.texts == list(texts))

    async def let_go(self) -> None:
        """Every turn ends from now on."""
        await asyncio.to_thread(self._gate.touch)

    async def recorded(self) -> None:
        """Until the store knows that what was sent is sent."""

        async def look() -> bool:
            rows = await asyncio.to_thread(self.elsewhere, "SELECT state FROM outbox")
            return [row["state"] for row in rows] == ["sent"] * len(self.chats)

        await eventually(look)

    def heal(self) -> None:
        """Nothing goes wrong any more."""
        for chat in self.chats:
            chat.server.faults.clear()


@pytest.fixture
async def scene(
    home: Path, tmp_path: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Scene]:
    """Platforms that run, and a gateway that does not yet."""
    folder = tmp_path / "agent"
    folder.mkdir()
    monkeypatch.setattr(gateways, "COMMAND", HELD)
    chats: list[Chat] = [kind() for kind in CHATS]
    async with AsyncExitStack() as stack:
        for chat in chats:
            await stack.enter_async_context(chat.server)
        accounts = {chat.name: {"enabled": True, "allow_all": True, **chat.settings} for chat in chats}
        (home / "config.yaml").write_text(yaml.safe_dump({"web": {"port": 0}, "platforms": accounts}), encoding="utf-8")
        yield Scene(chats, GatewayProcess(home, TEST_AGENT_FOLDER=str(folder)), folder, elsewhere)


async def test_an_answer_is_shown_while_it_is_made_and_is_one_message(scene: Scene) -> None:
    """What is shown is marked as unfinished; nothing of it comes back as input."""
    async with scene.process.running():
        await scene.ask("one")
        await scene.show(THINKING)
        await scene.let_go()
        await scene.show(ANSWER)
        await scene.ask("two")
        await scene.show(ANSWER, "answer to two")
        assert await scene.process.stop() == 0
    assert [chat.edits for chat in scene.chats] == [[ANSWER]] * 3
    said = scene.elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
    assert [row["content"] for row in said] == ["one"] * 3 + ["two"] * 3


async def test_killed_after_the_receipt_the_same_message_is_finished(scene: Scene) -> None:
    """The turn is run again, and its answer stands where its beginning stood."""
    async with scene.process.running():
        await scene.ask("one")
        await scene.show(THINKING)
        await scene.recorded()
        await scene.process.kill()
    await scene.let_go()
    async with scene.process.running():
        await scene.show(ANSWER)
        assert await scene.process.stop() == 0
    assert [chat.tried("send") for chat in scene.chats] == [1, 1, 1]
    assert scene.elsewhere(RESENDS) == NO_RESENDS


async def test_killed_before_the_receipt_the_outcome_is_unknown_and_settled_by_the_rule(scene: Scene) -> None:
    """Sent again once; with a key that is the same message, without one a beginning stays behind and is counted."""
    for chat in scene.chats:
        chat.fail("send", "delay", processed=True, seconds=60.0)
    async with scene.process.running():
        await scene.ask("one")
        await scene.show(THINKING)
        await scene.process.kill()
    async with scene.process.running():
        await scene.each(lambda chat: chat.tried("send") == 2)
        await scene.let_go()
        await scene.each(lambda chat: ANSWER in chat.texts)
        assert await scene.process.stop() == 0
    for chat in scene.chats:
        assert chat.texts == ([ANSWER] if chat.idempotent else [THINKING, ANSWER]), chat.name
    assert scene.elsewhere(RESENDS) == [{**row, "n": 1} for row in NO_RESENDS]


async def test_killed_in_the_last_edit_it_is_made_again_and_nothing_is_posted_twice(scene: Scene) -> None:
    """An edit may be made any number of times, so nothing is in doubt."""
    async with scene.process.running():
        await scene.ask("one")
        await scene.show(THINKING)
        await scene.recorded()
        before = {chat.name: chat.tried("edit") for chat in scene.chats}
        for chat in scene.chats:
            chat.fail("edit", "hang", times=None)
        await scene.let_go()
        await scene.each(lambda chat: chat.tried("edit") > before[chat.name])
        await scene.process.kill()
    scene.heal()
    async with scene.process.running():
        await scene.show(ANSWER)
        assert await scene.process.stop() == 0
    assert [chat.tried("send") for chat in scene.chats] == [1, 1, 1]
    assert scene.elsewhere(RESENDS) == NO_RESENDS


async def test_a_message_that_somebody_took_away_is_followed_by_the_whole_answer(scene: Scene) -> None:
    """It cannot be edited any more."""
    async with scene.process.running():
        await scene.ask("one")
        await scene.show(THINKING)
        for chat in scene.chats:
            chat.remove()
        await scene.let_go()
        await scene.show(THINKING, ANSWER)
        assert await scene.process.stop() == 0


async def test_who_stops_a_shown_answer_reads_in_it_that_it_was_stopped(scene: Scene) -> None:
    """Below what was said so far."""
    async with scene.process.running():
        await scene.ask("one")
        await scene.show(THINKING)
        await scene.ask("/stop")
        await scene.each(lambda chat: chat.texts[0] == "thinking about one\n\nStopped.")
        assert await scene.process.stop() == 0


async def test_the_whole_answer_waits_for_flood_control_in_the_message_that_is_there(scene: Scene) -> None:
    """It is visibly waiting, and then it is put where it belongs."""
    async with scene.process.running():
        await scene.ask("one")
        await scene.show(THINKING)
        for chat in scene.chats:
            chat.flood(61)
        await scene.let_go()

        async def wait() -> bool:
            rows = await asyncio.to_thread(scene.elsewhere, "SELECT error FROM outbox WHERE state = 'waiting'")
            return len(rows) == len(scene.chats) and all("asks to" in str(row["error"]) for row in rows)

        await eventually(wait)
        assert [chat.texts for chat in scene.chats] == [[THINKING]] * 3
        await scene.process.kill()
    scene.heal()
    scene.elsewhere("UPDATE outbox SET next_at = 0 WHERE state = 'waiting'")
    async with scene.process.running():
        await scene.show(ANSWER)
        assert await scene.process.stop() == 0
