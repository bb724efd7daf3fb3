"""One direct chat on each platform, for tests that say the same of all three: the emulator, and what a person sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.emulators.discord import DiscordEmulator
from tests.emulators.slack import SlackEmulator
from tests.emulators.telegram import TelegramEmulator

__all__ = ["CHATS", "Chat", "DiscordChat", "SlackChat", "TelegramChat"]


class TelegramChat:
    """Ann's chat with the bot on Telegram."""

    name = "telegram"
    idempotent = False

    def __init__(self) -> None:
        self.server = TelegramEmulator()

    @property
    def settings(self) -> dict[str, Any]:
        """What the gateway is told."""
        return {"token": self.server.token, "base_url": self.server.base_url}

    @property
    def texts(self) -> list[str]:
        """What the bot's messages show, in order."""
        return [sent.text for sent in self.server.sent]

    @property
    def edits(self) -> list[str]:
        """What was put in the place of something else."""
        return [sent.text for sent in self.server.edits]

    def say(self, text: str) -> None:
        """Ann says something."""
        self.server.say(text)

    def remove(self) -> None:
        """Ann takes the bot's last message away."""
        self.server.chats[42].removed.add(self.server.sent[-1].message_id)

    def fail(self, what: str, action: Any, **how: Any) -> None:
        """`send` or `edit` goes wrong."""
        self.server.fail({"send": "sendMessage", "edit": "editMessageText"}[what], action, **how)

    def flood(self, seconds: int) -> None:
        """Every edit comes too soon."""
        self.server.flood(seconds, times=None, method="editMessageText")

    def tried(self, what: str) -> int:
        """How often that was asked for."""
        wanted = {"send": "sendMessage", "edit": "editMessageText"}[what]
        return [method for method, _ in self.server.calls].count(wanted)

    async def ready(self) -> None:
        """What is said is kept until the gateway takes it."""

    async def until(self, condition: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait."""
        await self.server.until(condition, seconds)


class SlackChat:
    """Ann's direct messages with the app on Slack."""

    name = "slack"
    idempotent = False

    def __init__(self) -> None:
        self.server = SlackEmulator()
        self.server.ack_seconds, self.server.retry_delays = 1.0, (0.0, 0.5)
        self.server.echoes = True

    @property
    def settings(self) -> dict[str, Any]:
        """What the gateway is told."""
        server = self.server
        return {"bot_token": server.bot_token, "app_token": server.app_token, "base_url": server.base_url}

    @property
    def texts(self) -> list[str]:
        """What the app's messages show, in order."""
        return [sent.words for sent in self.server.sent]

    @property
    def edits(self) -> list[str]:
        """What was put in the place of something else."""
        return [sent.words for sent in self.server.edits]

    def say(self, text: str) -> None:
        """Ann says something."""
        self.server.say(text)

    def remove(self) -> None:
        """Somebody takes the app's last message away."""
        del self.server.channel("D1").posts[self.server.sent[-1].ts]

    def fail(self, what: str, action: Any, **how: Any) -> None:
        """`send` or `edit` goes wrong."""
        self.server.fail({"send": "chat.postMessage", "edit": "chat.update"}[what], action, **how)

    def flood(self, seconds: int) -> None:
        """Every edit comes too soon."""
        self.server.flood(seconds, times=None, method="chat.update")

    def tried(self, what: str) -> int:
        """How often that was asked for."""
        wanted = {"send": "chat.postMessage", "edit": "chat.update"}[what]
        return [method for method, _ in self.server.calls].count(wanted)

    async def ready(self) -> None:
        """What is said is brought again until the gateway takes it."""

    async def until(self, condition: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait."""
        await self.server.until(condition, seconds)


class DiscordChat:
    """Ann's direct chat with the bot on Discord."""

    name = "discord"
    idempotent = True

    def __init__(self) -> None:
        self.server = DiscordEmulator()

    @property
    def settings(self) -> dict[str, Any]:
        """What the gateway is told."""
        server = self.server
        return {"token": server.token, "api_url": server.api_url, "gateway_url": server.gateway_url}

    @property
    def texts(self) -> list[str]:
        """What the bot's messages show, in order."""
        return [sent.text for sent in self.server.sent]

    @property
    def edits(self) -> list[str]:
        """What was put in the place of something else."""
        return [sent.text for sent in self.server.edits]

    def say(self, text: str) -> None:
        """Ann says something."""
        self.server.say(text, channel=self.server.dm("42"))

    def remove(self) -> None:
        """The bot's last message is taken away."""
        self.server.delete(self.server.sent[-1].message_id)

    def fail(self, what: str, action: Any, **how: Any) -> None:
        """`send` or `edit` goes wrong."""
        self.server.fail(what, action, **how)

    def flood(self, seconds: int) -> None:
        """Every edit comes too soon; so long that the client does not sit it out."""
        self.server.fail("edit", "limit", times=None, seconds=float(seconds))

    def tried(self, what: str) -> int:
        """How often that was asked for."""
        return [operation for operation, _ in self.server.calls].count(what)

    async def ready(self) -> None:
        """A chat that nobody spoke in yet is not caught up with."""
        await self.server.until(lambda: self.server.gateway.connected, 30)

    async def until(self, condition: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait."""
        await self.server.until(condition, seconds)


Chat = TelegramChat | SlackChat | DiscordChat
CHATS: tuple[type[Chat], ...] = (TelegramChat, SlackChat, DiscordChat)
