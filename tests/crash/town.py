"""Telegram, Slack and Discord with the same people on each, for crash tests: what was said, and what stands there."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence

from tests.emulators.discord import DiscordEmulator
from tests.emulators.slack import SlackEmulator
from tests.emulators.telegram import TelegramEmulator

__all__ = ["PLATFORMS", "TOLD", "Town"]

PLATFORMS = ("telegram", "slack", "discord")
#: How a person is told of a turn that was killed three times.
TOLD = "I was interrupted"


class Town:
    """Three platforms. said: number -> platform and chat. words: what is said, with the number in it."""

    def __init__(self, words: str, chats: Sequence[int]) -> None:
        self.telegram, self.slack, self.discord = TelegramEmulator(), SlackEmulator(), DiscordEmulator()
        self.slack.ack_seconds, self.slack.retry_delays = 1.0, (0.0, 0.5)
        self.said: dict[int, tuple[str, int]] = {}
        self.stopped = False
        self._words = words
        self._chats = chats
        self._ways: dict[str, Callable[[int, str], object]] = {
            "telegram": lambda chat, text: self.telegram.say(text, chat_id=chat, user_id=chat),
            "slack": lambda chat, text: self.slack.say(text, channel=f"D{chat}", user=f"U{chat}"),
            "discord": lambda chat, text: self.discord.say(text, channel=self.discord.dm(str(chat)), user=str(chat)),
        }

    def say(self, platform: str, chat: int) -> None:
        """Let somebody say the next thing."""
        number = len(self.said)
        self.said[number] = platform, chat
        self._ways[platform](chat, self._words.format(number))

    async def talk(self, platform: str, chance: random.Random, pause: float) -> None:
        """Let people say things until stopped; pause: seconds between two, on average."""
        while not self.stopped:
            self.say(platform, chance.choice(self._chats))
            await asyncio.sleep(chance.uniform(0, 2 * pause))

    def shown(self) -> Iterator[tuple[str, int, str]]:
        """Yield what the bots' messages show now: platform, chat, words."""
        for sent in self.telegram.sent:
            yield "telegram", sent.chat_id, sent.text
        for post in self.slack.sent:
            yield "slack", int(post.channel.removeprefix("D")), post.words
        for message in self.discord.sent:
            # The emulator's number of a direct chat begins with a 7.
            yield "discord", int(message.channel.removeprefix("7")), message.text

    def told(self) -> int:
        """How many people were told of a turn that was killed three times."""
        return sum(text.startswith(TOLD) for _, _, text in self.shown())

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
