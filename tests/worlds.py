"""A platform with one person on it, as tests of conversations that move need it: where she speaks, what she reads.

Each world is an emulator with the settings of one account on it. `say` speaks at a place as a person there would, also
in a thread that was opened for her; `heard` is what the bot has sent, in order, with where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from adapters.base import ChatType, Place
from tests.emulators.discord import GUILD, TEXT, DiscordEmulator
from tests.emulators.slack import SlackEmulator
from tests.emulators.telegram import TelegramEmulator

__all__ = ["DiscordWorld", "SlackWorld", "TelegramWorld", "World", "settings_of"]


class World(Protocol):
    """One platform."""

    name: str
    person: str

    @property
    def server(self) -> AbstractAsyncContextManager[Any]:
        """What must run."""
        ...

    @property
    def account(self) -> Mapping[str, Any]:
        """Its settings."""
        ...

    @property
    def heard(self) -> list[tuple[Place, str]]:
        """What the bot sent, and where."""
        ...

    def say(self, text: str, place: Place, *, mention: bool = False) -> None:
        """Let Ann say something there."""
        ...

    async def until(self, condition: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until it is so."""
        ...


class TelegramWorld:
    """Ann is 42. Chat -100 is a forum, -200 a plain group."""

    name, person = "telegram", "42"
    forum, group = Place("telegram", "main", "group", "-100"), Place("telegram", "main", "group", "-200")
    direct = Place("telegram", "main", "dm", "42")

    def __init__(self) -> None:
        self.server = TelegramEmulator()

    @property
    def account(self) -> Mapping[str, Any]:
        """One bot."""
        return {"token": self.server.token, "base_url": self.server.base_url}

    @property
    def heard(self) -> list[tuple[Place, str]]:
        """What the bot sent."""
        return [
            (
                Place(
                    "telegram", "main", "dm" if one.chat_id > 0 else "group", str(one.chat_id), str(one.thread_id or "")
                ),
                one.text,
            )
            for one in self.server.sent
        ]

    def say(self, text: str, place: Place, *, mention: bool = False) -> None:
        """Let Ann say something there; in groups a command names the bot."""
        chat = int(place.chat)
        kind = "private" if chat > 0 else "supergroup"
        topic = int(place.thread) if place.thread else None
        words = f"@gatebot {text}" if mention else text
        self.server.say(words, chat_id=chat, chat_type=kind, forum=chat == int(self.forum.chat), topic=topic)

    async def until(self, condition: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until it is so."""
        await self.server.until(condition, seconds)


class DiscordWorld:
    """Ann is 42 on one server."""

    name, person = "discord", "42"
    channel = Place("discord", "main", "group", TEXT)

    def __init__(self) -> None:
        self.server = DiscordEmulator()

    @property
    def direct(self) -> Place:
        """Ann's direct chat."""
        return Place("discord", "main", "dm", self.server.dm())

    @property
    def account(self) -> Mapping[str, Any]:
        """One bot."""
        return {"token": self.server.token, "api_url": self.server.api_url, "gateway_url": self.server.gateway_url}

    @property
    def heard(self) -> list[tuple[Place, str]]:
        """What the bot sent."""
        return [(self._place(one.channel), one.text) for one in self.server.sent]

    def _place(self, number: str) -> Place:
        channel = self.server.channels[number]
        return Place("discord", "main", "thread" if channel.thread else _kind(channel.guild != GUILD), number)

    def say(self, text: str, place: Place, *, mention: bool = False) -> None:
        """Let Ann say something there."""
        self.server.say(text, channel=place.chat, mention=mention)

    async def until(self, condition: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until it is so."""
        await self.server.until(condition, seconds)


class SlackWorld:
    """Ann is U1. C1 is a channel."""

    name, person = "slack", "U1"
    channel, direct = Place("slack", "main", "group", "T1/C1"), Place("slack", "main", "dm", "T1/D1")

    def __init__(self) -> None:
        self.server = SlackEmulator()
        self.server.ack_seconds, self.server.retry_delays = 1.0, (0.0, 0.1)

    @property
    def account(self) -> Mapping[str, Any]:
        """One app."""
        tokens = {"bot_token": self.server.bot_token, "app_token": self.server.app_token}
        return {**tokens, "base_url": self.server.base_url}

    @property
    def heard(self) -> list[tuple[Place, str]]:
        """What the app posted."""
        return [
            (
                Place(
                    "slack", "main", "dm" if one.channel[0] == "D" else "group", f"T1/{one.channel}", one.thread or ""
                ),
                one.words,
            )
            for one in self.server.sent
        ]

    def say(self, text: str, place: Place, *, mention: bool = False) -> None:
        """Let Ann say something there."""
        words = f"<@{self.server.workspace.user}> {text}" if mention else text
        self.server.say(words, channel=place.chat.removeprefix("T1/"), thread=place.thread or None)

    async def until(self, condition: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until it is so."""
        await self.server.until(condition, seconds)


def _kind(private: bool) -> ChatType:  # noqa: FBT001 - the one thing that there is to say
    return "dm" if private else "group"


def settings_of(*worlds: World, **more: Any) -> dict[str, Any]:
    """A configuration with an account in each world; Ann is the owner."""
    return {
        "owner": {world.name: [world.person] for world in worlds},
        "web": {"port": 0},
        "platforms": {world.name: {"enabled": True, **world.account} for world in worlds},
        **more,
    }
