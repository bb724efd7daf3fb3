"""The gateway killed with SIGKILL at random instants while people write to it on Telegram, Slack and Discord at once.

Each platform keeps in its own way what nobody took: Telegram until it is confirmed, Slack by retrying, Discord in its
history. Everything must be stored once and answered where it was said. A double is allowed only where the platform
takes no key for a send, and only as often as the store has counted a repeat of unknown outcome there.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from tests.conftest import Elsewhere
from tests.emulators.discord import DiscordEmulator
from tests.emulators.slack import SlackEmulator
from tests.emulators.telegram import TelegramEmulator
from tests.gateways import GatewayProcess, eventually

CHATS = range(101, 107)
#: Seconds between two messages on one platform, on average.
PAUSE = 0.1
RESENDS = "SELECT platform, SUM(resends) AS n FROM outbox GROUP BY platform"


class Town:
    """Three platforms with the same people on each, and what they have said: number -> platform and chat."""

    def __init__(self) -> None:
        self.telegram, self.slack, self.discord = TelegramEmulator(), SlackEmulator(), DiscordEmulator()
        self.slack.ack_seconds, self.slack.retry_delays = 1.0, (0.0, 0.5)
        self.said: dict[int, tuple[str, int]] = {}
        self.stopped = False
        self._ways: dict[str, Callable[[int, str], object]] = {
            "telegram": lambda chat, text: self.telegram.say(text, chat_id=chat, user_id=chat),
            "slack": lambda chat, text: self.slack.say(text, channel=f"D{chat}", user=f"U{chat}"),
            "discord": lambda chat, text: self.discord.say(text, channel=self.discord.dm(str(chat)), user=str(chat)),
        }

    def say(self, platform: str, chat: int) -> None:
        """Let somebody say the next thing."""
        number = len(self.said)
        self.said[number] = platform, chat
        self._ways[platform](chat, f"fact-{number} is kept")

    async def talk(self, platform: str, chance: random.Random) -> None:
        """Let people say things until stopped."""
        while not self.stopped:
            self.say(platform, chance.choice(CHATS))
            await asyncio.sleep(chance.uniform(0, 2 * PAUSE))

    def answers(self) -> Iterable[tuple[int, tuple[str, int]]]:
        """Yield each number that was answered, and where, as often as it was."""
        sent = [("telegram", str(sent.chat_id), sent.text) for sent in self.telegram.sent]
        sent += [("slack", sent.channel.removeprefix("D"), sent.words) for sent in self.slack.sent]
        # The emulator's number of a direct chat begins with a 7.
        sent += [("discord", sent.channel.removeprefix("7"), sent.text) for sent in self.discord.sent]
        for platform, chat, text in sent:
            for number in re.findall(r"fact-(\d+)", text):
                yield int(number), (platform, int(chat))

    async def answered(self) -> bool:
        """Whether everything was, but for turns that were killed three times, of which the person was told."""
        sent = [*(one.text for one in self.telegram.sent), *(one.words for one in self.slack.sent)]
        sent += [one.text for one in self.discord.sent]
        told = sum(text.startswith("I was interrupted") for text in sent)
        return len(set(self.said) - {number for number, _ in self.answers()}) <= told

    def settings(self) -> dict[str, object]:
        """What the gateway is told."""
        discord = {"api_url": self.discord.api_url, "gateway_url": self.discord.gateway_url}
        slack = {"bot_token": self.slack.bot_token, "app_token": self.slack.app_token}
        platforms = {
            "telegram": {"token": self.telegram.token, "base_url": self.telegram.base_url},
            "slack": {**slack, "base_url": self.slack.base_url},
            "discord": {"token": self.discord.token, **discord},
        }
        more = {"enabled": True, "allow_all": True}
        return {"web": {"port": 0}, "platforms": {name: {**more, **facts} for name, facts in platforms.items()}}


@pytest.mark.alone
@pytest.mark.timeout(280)
async def test_a_gateway_killed_ten_times_answers_everybody_on_every_platform(home: Path, elsewhere: Elsewhere) -> None:
    """Stored once, answered in its own chat; doubles only where no key is taken and the outcome was unknown."""
    chance, town = random.Random(3), Town()  # noqa: S311 - repeatable, no secret
    async with AsyncExitStack() as stack:
        for server in (town.telegram, town.slack, town.discord):
            await stack.enter_async_context(server)
        (home / "config.yaml").write_text(yaml.safe_dump(town.settings()), encoding="utf-8")
        gateway = GatewayProcess(home)
        async with gateway.running():
            # Discord's history is read of chats that are known.
            await town.discord.until(lambda: town.discord.gateway.connected, 30)
            for platform in ("telegram", "slack", "discord"):
                for chat in CHATS:
                    town.say(platform, chat)
            await eventually(town.answered, 60)
        async with asyncio.TaskGroup() as group:
            for platform in ("telegram", "slack", "discord"):
                group.create_task(town.talk(platform, chance))
            for _ in range(10):
                await gateway.start()
                await asyncio.sleep(chance.uniform(0.0, 2.5))
                await gateway.kill()
            town.stopped = True
        async with gateway.running():
            await eventually(town.answered, 90)
            assert await gateway.stop() == 0

    times: Counter[int] = Counter()
    for number, where in town.answers():
        assert town.said[number] == where, f"fact-{number} was answered elsewhere"
        times[number] += 1
    doubles: Counter[str] = Counter()
    for number, count in times.items():
        doubles[town.said[number][0]] += count - 1
    resends = {row["platform"]: row["n"] for row in elsewhere(RESENDS)}
    sys.stdout.write(f"10 kills: {len(town.said)} messages, doubled {dict(doubles)}, unknown outcomes {resends}\n")
    assert doubles["discord"] == 0
    assert all(doubles[platform] <= resends[platform] for platform in ("telegram", "slack")), (doubles, resends)
    stored = [row["content"] for row in elsewhere("SELECT content FROM messages WHERE role = 'user'")]
    assert Counter(stored) == Counter(f"fact-{number} is kept" for number in town.said)
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
