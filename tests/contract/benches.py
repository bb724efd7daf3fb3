"""The chat platforms as the adapter contract needs them: each around its emulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adapters.base import Gone, Place, Refused, RetryLater, SendError
from adapters.contract import PATIENCE, Said
from adapters.discord import DiscordAdapter, SlashCommand
from adapters.slack import SlackAdapter
from adapters.telegram import TelegramAdapter
from tests.emulators.discord import GUILD, TEXT, THREAD, DiscordEmulator
from tests.emulators.slack import SlackEmulator
from tests.emulators.slack_state import Event
from tests.emulators.telegram import TelegramEmulator

__all__ = ["DiscordBench", "SlackBench", "TelegramBench"]

_FORUM = -1001


class TelegramBench:
    """Ann's direct chat, a plain group, a topic of a forum."""

    places = (
        Place("telegram", "main", "dm", "42"),
        Place("telegram", "main", "group", "-7"),
        Place("telegram", "main", "group", str(_FORUM), "17"),
    )

    def __init__(self, telegram: TelegramEmulator) -> None:
        self._telegram = telegram
        self.secrets = (telegram.token,)

    @property
    def sent(self) -> Sequence[tuple[Place, str]]:
        """What the bot sent."""
        return [(self._place(sent.chat_id, sent.thread_id), sent.text) for sent in self._telegram.sent]

    @property
    def attempts(self) -> int:
        """How often it tried."""
        return [method for method, _ in self._telegram.calls].count("sendMessage")

    def make(self) -> TelegramAdapter:
        """Make the adapter."""
        return TelegramAdapter("main", self._telegram.token, self._telegram.base_url)

    async def say(self, place: Place, text: str) -> Said:
        """Let Ann say something."""
        chat = int(place.chat)
        kind = "private" if chat > 0 else "supergroup" if chat == _FORUM else "group"
        topic = int(place.thread) if place.thread else None
        number = self._telegram.say(text, chat_id=chat, chat_type=kind, forum=chat == _FORUM, topic=topic)
        return Said(place, number, f"m:{chat}:{self._telegram.updates[number].message_id}")

    async def command(self, place: Place, name: str, argument: str) -> Said:
        """Commands are words."""
        return await self.say(place, f"/{name} {argument}")

    async def malformed(self) -> int:
        """Messages without a chat and without a number."""
        for message in ({"message_id": "?", "chat": 5}, {"message_id": 7, "date": "now", "chat": {"id": []}}):
            self._telegram.inject({"message": message})
        return 2

    async def confirmed(self, said: Said) -> bool:
        """Whether a later getUpdates asked for what comes after."""
        return any(update.confirmed for number, update in self._telegram.updates.items() if number == said.handle)

    def fail(self, kind: type[SendError]) -> None:
        """Refuse what is sent, or cut the connection."""
        for method in ("sendMessage", "editMessageText"):
            if kind is RetryLater:
                self._telegram.flood(7, times=None, method=method)
            elif kind is Gone:
                blocked = "Forbidden: bot was blocked by the user"
                self._telegram.fail(method, "refuse", times=None, status=403, description=blocked)
            elif kind is Refused:
                no_rights = "Bad Request: not enough rights to send text messages to the chat"
                self._telegram.fail(method, "refuse", times=None, description=no_rights)
            else:
                self._telegram.fail(method, "drop", times=None, processed=True)

    def remove(self) -> None:
        """Delete it."""
        last = self._telegram.sent[-1]
        self._telegram.chats[last.chat_id].removed.add(last.message_id)

    def hang(self) -> None:
        """Answer no send."""
        self._telegram.fail("sendMessage", "hang", times=None)

    def heal(self) -> None:
        """Take what is sent."""
        self._telegram.faults.clear()

    async def until(self, condition: Callable[[], object], seconds: float = PATIENCE) -> None:
        """Wait."""
        await self._telegram.until(condition, seconds)

    def _place(self, chat: int, topic: int | None) -> Place:
        return Place("telegram", "main", "dm" if chat > 0 else "group", str(chat), str(topic or ""))


class SlackBench:
    """Ann's direct chat, a channel whose posts begin threads, a thread in another one."""

    places = (
        Place("slack", "main", "dm", "T1/D1"),
        Place("slack", "main", "group", "T1/C1"),
        Place("slack", "main", "group", "T1/C2", "1790000000.000001"),
    )

    def __init__(self, slack: SlackEmulator) -> None:
        self._slack = slack
        self.secrets = (slack.bot_token, slack.app_token)
        slack.channel("D1")
        for name in ("C1", "C2"):
            slack.channel(name).posts["1790000000.000001"] = {"ts": "1790000000.000001", "user": "U1"}

    @property
    def sent(self) -> Sequence[tuple[Place, str]]:
        """What the app posted."""
        return [(self._place(sent.channel, sent.thread), sent.words) for sent in self._slack.sent]

    @property
    def attempts(self) -> int:
        """How often it tried."""
        return [method for method, _ in self._slack.calls].count("chat.postMessage")

    def make(self) -> SlackAdapter:
        """Make the adapter."""
        return SlackAdapter("main", self._slack.bot_token, self._slack.app_token, self._slack.base_url)

    async def say(self, place: Place, text: str) -> Said:
        """Let Ann say something; a post in a channel begins a thread."""
        channel = place.chat.removeprefix("T1/")
        event = self._slack.say(text, channel=channel, thread=place.thread or None)
        thread = place.thread or (event.ts if place.chat_type == "group" else "")
        return Said(self._place(channel, thread), event, f"m:{place.chat}:{event.ts}")

    async def command(self, place: Place, name: str, argument: str) -> Said:
        """The slash command."""
        return Said(place, self._slack.command(f"{name} {argument}", channel=place.chat.removeprefix("T1/")))

    async def malformed(self) -> int:
        """An envelope without content, and a message of nobody."""
        self._slack.inject(17)
        self._slack.command("stop", user="U 1")
        return 2

    async def confirmed(self, said: Said) -> bool:
        """Whether its envelope was acknowledged."""
        return isinstance(said.handle, Event) and said.handle.acked

    def fail(self, kind: type[SendError]) -> None:
        """Refuse what is posted, or cut the connection."""
        for method in ("chat.postMessage", "chat.update"):
            if kind is RetryLater:
                self._slack.flood(7, times=None, method=method)
            elif kind is Gone:
                self._slack.fail(method, "refuse", times=None, error="channel_not_found")
            elif kind is Refused:
                self._slack.fail(method, "refuse", times=None, error="restricted_action")
            else:
                self._slack.fail(method, "drop", times=None, processed=True)

    def remove(self) -> None:
        """Delete it."""
        last = self._slack.sent[-1]
        del self._slack.channel(last.channel).posts[last.ts]

    def hang(self) -> None:
        """Answer no post."""
        self._slack.fail("chat.postMessage", "hang", times=None)

    def heal(self) -> None:
        """Take what is posted."""
        self._slack.faults.clear()

    async def until(self, condition: Callable[[], object], seconds: float = PATIENCE) -> None:
        """Wait."""
        await self._slack.until(condition, seconds)

    def _place(self, channel: str, thread: str | None) -> Place:
        return Place("slack", "main", "dm" if channel.startswith("D") else "group", f"T1/{channel}", thread or "")


class DiscordBench:
    """Ann's direct chat, a channel of a server, a thread there."""

    def __init__(self, discord: DiscordEmulator) -> None:
        self._discord = discord
        self.secrets = (discord.token,)
        self.places = tuple(self._place(channel) for channel in (discord.dm(), TEXT, THREAD))

    @property
    def sent(self) -> Sequence[tuple[Place, str]]:
        """What the bot sent."""
        return [(self._place(sent.channel), sent.text) for sent in self._discord.sent]

    @property
    def attempts(self) -> int:
        """How often it tried."""
        return [operation for operation, _ in self._discord.calls].count("send")

    def make(self) -> DiscordAdapter:
        """Make the adapter."""
        commands = (SlashCommand("new", "Begin anew", "title"),)
        return DiscordAdapter("main", self._discord.token, self._discord.api_url, self._discord.gateway_url, commands)

    async def say(self, place: Place, text: str) -> Said:
        """Let Ann say something."""
        number = self._discord.say(text, channel=place.chat)
        return Said(place, number, f"m:{number}")

    async def command(self, place: Place, name: str, argument: str) -> Said:
        """The slash command."""
        call = self._discord.call(name, argument, channel=place.chat)
        return Said(place, call.id, f"i:{call.id}")

    async def malformed(self) -> int:
        """Messages without an author, and of a number that is none."""
        body = {"id": "x", "channel_id": TEXT, "guild_id": GUILD, "content": "forged", "author": None}
        self._discord.gateway.dispatch("MESSAGE_CREATE", body)
        self._discord.gateway.dispatch("MESSAGE_CREATE", {"content": ["forged"]})
        return 2

    async def confirmed(self, said: Said) -> None:
        """Discord is told nothing."""

    def fail(self, kind: type[SendError]) -> None:
        """Refuse what is sent, or cut the connection."""
        for operation in ("send", "edit"):
            if kind is RetryLater:
                self._discord.fail(operation, "limit", times=None, seconds=61.5)
            elif kind is Gone:
                self._discord.fail(operation, "refuse", times=None, status=404, code=10003)
            elif kind is Refused:
                self._discord.fail(operation, "refuse", times=None, status=400, code=50035)
            else:
                self._discord.fail(operation, "drop", times=None, processed=True)

    def remove(self) -> None:
        """Delete it."""
        self._discord.delete(self._discord.sent[-1].message_id)

    def hang(self) -> None:
        """Answer no send."""
        self._discord.fail("send", "hang", times=None)

    def heal(self) -> None:
        """Take what is sent."""
        self._discord.faults.clear()

    async def until(self, condition: Callable[[], object], seconds: float = PATIENCE) -> None:
        """Wait."""
        await self._discord.until(condition, seconds)

    def _place(self, channel: str) -> Place:
        where = self._discord.channels[channel]
        return Place("discord", "main", "dm" if where.guild is None else "thread" if where.thread else "group", channel)
