"""One conversation through many places: the terminal, a Telegram topic, a linked Slack thread, and back.

The real client libraries at emulated platforms, one whole gateway, and the command line beside it.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from adapters.base import Place
from tests.conftest import Elsewhere
from tests.gateways import LocalGateway, threadline
from tests.worlds import SlackWorld, TelegramWorld, World, settings_of

OPEN = "SELECT COUNT(*) AS n FROM outbox WHERE state IN ('waiting', 'sending')"


def read_at(world: World, place: Place) -> list[str]:
    """What the bot has said at a place, without the marks of bold text that some platforms keep."""
    return [text.replace("**", "") for where, text in world.heard if where == place]


async def reads(world: World, place: Place, words: str) -> str:
    """Wait until this is among what can be read at a place."""
    try:
        await world.until(lambda: any(words in text for text in read_at(world, place)))
    except TimeoutError:
        raise AssertionError(f"not {words!r} at {place}, but {world.heard}") from None
    return next(text for text in read_at(world, place) if words in text)


async def place_of(world: World, words: str) -> Place:
    """Wait for this, wherever it is said."""
    await world.until(lambda: any(words in text for _, text in world.heard))
    return next(where for where, text in world.heard if words in text)


@pytest.mark.timeout(120)
async def test_one_conversation_goes_from_the_terminal_to_two_chats_and_back(
    home: Path, elsewhere: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One session id all the way, every word once at every place, and all of it found by one search."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    telegram, slack = TelegramWorld(), SlackWorld()
    async with AsyncExitStack() as stack:
        for world in (telegram, slack):
            await stack.enter_async_context(world.server)
        (home / "config.yaml").write_text(yaml.safe_dump(settings_of(telegram, slack)), encoding="utf-8")
        await stack.enter_async_context(LocalGateway(home))
        await said(home, "The spare key hangs behind the blue door")
        telegram.say("/sethome", telegram.direct)
        slack.say("/sethome", slack.direct)
        await reads(telegram, telegram.direct, "your home on Telegram")
        await reads(slack, slack.direct, "your home on Slack")

        (begun,) = [row["id"] for row in elsewhere("SELECT id FROM sessions")]
        done = await threadline(home, "handoff", begun, "telegram")
        assert (done.code, "goes on in a thread of a direct chat on Telegram" in done.out) == (0, True), done.err
        topic = await place_of(telegram, "goes on here")
        telegram.say("Bob has the key of the shed", topic)
        await reads(telegram, topic, "shed")

        telegram.say("/link slack", topic)
        direct = await place_of(slack, "is linked with this place")
        await reads(telegram, topic, "what is said in one place appears in the other")
        slack.say("The gate code is 4711", direct)
        await reads(slack, direct, "gate code")
        assert (await reads(telegram, topic, "Answer to")).count("Slack") == 1
        assert "The gate code is 4711" in await reads(telegram, topic, "on Slack:")
        telegram.say("And the alarm is off", topic)
        await reads(slack, direct, "And the alarm is off")
        await reads(slack, direct, "Answer to")
        await said(home, "From the terminal, too", "-r", begun)
        for world, place in ((telegram, topic), (slack, direct)):
            await reads(world, place, "The owner in the terminal: From the terminal, too")
        await quiet(elsewhere)
        assert elsewhere("SELECT COUNT(*) AS n FROM inbox WHERE kind = 'message'") == [{"n": 5}]
        for text, at in (("The gate code is 4711", topic), ("And the alarm is off", direct)):
            heard = read_at(telegram if at is topic else slack, at)
            copies = [one for one in heard if text in one and "Answer" not in one]
            assert len(copies) == 1, copies

        telegram.say("/handoff cli", topic)
        await reads(telegram, topic, "The conversation waits in the terminal")
        await reads(slack, direct, "This conversation goes on in the terminal")
        shown = await threadline(home, "chat", "-c", "-q", "where is the spare key?")
        assert "blue door" in shown.out
        way = (await threadline(home, "sessions", "show", begun)).out
        for step in ("born in the terminal", "handed to a thread of a direct chat on Telegram", "linked with a direct"):
            assert step in way
        found = await threadline(home, "sessions", "search", "key OR code OR alarm", "--role", "user")
        for words in ("spare", "shed", "4711", "alarm"):
            assert words in found.out
        await quiet(elsewhere)
    owned = elsewhere("SELECT DISTINCT session_id FROM messages")
    assert owned == [{"session_id": begun}]
    assert elsewhere("SELECT source, owner FROM sessions WHERE id = ?", begun) == [{"source": "cli", "owner": "owner"}]


async def said(home: Path, text: str, *options: str) -> None:
    """Say something in the terminal."""
    done = await threadline(home, "chat", *options, "-q", text)
    assert done.code == 0, done.err


async def quiet(elsewhere: Elsewhere) -> None:
    """Wait until everything has gone out."""
    while elsewhere(OPEN) != [{"n": 0}]:  # noqa: ASYNC110 - asked of another process
        await asyncio.sleep(0.05)
