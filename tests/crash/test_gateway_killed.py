"""The gateway killed with SIGKILL at random instants while people write to it on Telegram.

What the platform saw confirmed must be stored once and answered; an answer is doubled only when the kill fell between
the send and its receipt, and the store has counted each of those.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from session_store import SessionDB
from tests.conftest import Elsewhere
from tests.emulators.telegram import TelegramEmulator
from tests.gateways import GatewayProcess, telegram_home

CHATS = [100 + number for number in range(8)]
PER_SECOND = 25


@dataclass
class Load:
    """What was said so far: number -> chat."""

    said: dict[int, int]
    stopped: bool = False

    async def run(self, telegram: TelegramEmulator, chance: random.Random) -> None:
        while not self.stopped:
            number = len(self.said)
            chat = chance.choice(CHATS)
            self.said[number] = chat
            telegram.say(f"fact-{number} is kept", chat_id=chat, user_id=42)
            await asyncio.sleep(chance.uniform(0, 2 / PER_SECOND))


async def _killed(home: Path, elsewhere: Elsewhere, kills: int, seed: int) -> str:
    chance = random.Random(seed)
    load = Load({})
    async with TelegramEmulator() as telegram:
        gateway = GatewayProcess(telegram_home(home, telegram.base_url, telegram.token))
        writing = asyncio.create_task(load.run(telegram, chance))
        for _ in range(kills):
            await gateway.start()
            await asyncio.sleep(chance.uniform(0.0, 1.2))
            await gateway.kill()
        load.stopped = True
        await writing
        async with gateway.running():
            await telegram.until(lambda: all(update.confirmed for update in telegram.updates.values()), 60)
            await telegram.until(lambda: _answered(telegram) >= set(load.said), 60)
            assert await gateway.stop() == 0
        doubles = _check_answers(telegram, load)
    async with SessionDB(home / "state.db") as db:
        resends = await _check_store(db, elsewhere, load)
    assert doubles <= resends, f"{doubles} answers came twice, but only {resends} sends were of unknown outcome"
    return f"{kills} kills, {len(load.said)} messages, {doubles} answers doubled, {resends} sends of unknown outcome"


def _answered(telegram: TelegramEmulator) -> set[int]:
    return {number for sent in telegram.sent for number in _numbers(sent.text)}


def _numbers(text: str) -> list[int]:
    return [int(word.removeprefix("fact-")) for word in text.split() if word.startswith("fact-")]


def _check_answers(telegram: TelegramEmulator, load: Load) -> int:
    """Every message is answered in its own chat, first answers in the order of the messages; returns the doubles."""
    times: Counter[int] = Counter()
    first: dict[int, list[int]] = {chat: [] for chat in CHATS}
    for sent in telegram.sent:
        for number in _numbers(sent.text):
            times[number] += 1
            assert load.said[number] == sent.chat_id, f"fact-{number} was answered in the wrong chat"
            if times[number] == 1:
                first[sent.chat_id].append(number)
    assert set(times) == set(load.said)
    for chat, numbers in first.items():
        assert numbers == sorted(numbers), f"answers in chat {chat} came out of order"
    return sum(count - 1 for count in times.values())


async def _check_store(db: SessionDB, elsewhere: Elsewhere, load: Load) -> int:
    """Every message is stored once, in order, and the file is whole; returns how many sends were repeated."""
    stored: Counter[int] = Counter()
    async for session in db.iter_sessions():
        numbers = [
            number
            for message in session["messages"]
            if message["role"] == "user"
            for number in _numbers(str(message["content"]))
        ]
        assert numbers == sorted(numbers)
        stored.update(numbers)
        assert session["message_count"] == len(session["messages"])
    assert stored == Counter(dict.fromkeys(load.said, 1))
    assert (await db.inbox.counts())["new"] == 0
    assert (await db.inbox.counts())["taken"] == 0
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    assert elsewhere("PRAGMA foreign_key_check") == []
    for number in list(load.said)[::25]:
        assert await db.search_messages(f"fact-{number}", role_filter=["user"])
    return int(elsewhere("SELECT COALESCE(SUM(resends), 0) AS n FROM outbox")[0]["n"])


@pytest.mark.timeout(280)
async def test_a_gateway_killed_thirty_times_loses_nothing_and_doubles_only_what_it_counted(
    home: Path, elsewhere: Elsewhere
) -> None:
    """30 kills under load: stored once, answered, in order; doubles only where the outcome of a send was unknown."""
    print(await _killed(home, elsewhere, kills=8, seed=1))


@pytest.mark.soak
async def test_a_gateway_killed_five_hundred_times(home: Path, elsewhere: Elsewhere) -> None:
    """The same with 500 kills."""
    print(await _killed(home, elsewhere, kills=500, seed=2))
