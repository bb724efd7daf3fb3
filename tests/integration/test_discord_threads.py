"""The Discord adapter opens threads and answers slash commands: the real client library against an emulated Discord."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from adapters.base import Gone, InboundMessage, Place, Refused, RetryLater, UnknownOutcome, Verdict
from adapters.discord import DiscordAdapter, SlashCommand, lines
from gateway.keys import session_key
from tests.emulators.discord import FORUM, NEWS, TEXT, THREAD, DiscordEmulator

ROOM = Place("discord", "main", "group", TEXT)
COMMANDS = (SlashCommand("new", "Begin anew", "title"), SlashCommand("help", "What can be done"))


class Desk:
    """Takes what is delivered and says what it is told to."""

    def __init__(self) -> None:
        self.taken: list[InboundMessage] = []
        self.verdict = Verdict.ACCEPTED
        self.held = False
        self.let_go = asyncio.Event()

    async def deliver(self, message: InboundMessage) -> Verdict:
        """Take a message."""
        if self.held:
            await self.let_go.wait()
        self.taken.append(message)
        return self.verdict


@pytest.fixture
async def discord() -> AsyncIterator[DiscordEmulator]:
    """A Discord."""
    async with DiscordEmulator() as emulator:
        yield emulator


@pytest.fixture
def desk() -> Desk:
    """Where messages go."""
    return Desk()


@pytest.fixture
async def adapter(discord: DiscordEmulator, desk: Desk) -> AsyncIterator[DiscordAdapter]:
    """A started adapter with commands that are listed."""
    made = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url, COMMANDS)
    await made.start(desk.deliver)
    await discord.until(lambda: calls(discord, "register") == 1)
    yield made
    await made.stop()


def calls(discord: DiscordEmulator, operation: str) -> int:
    """Count the calls of an operation that reached the server."""
    return [name for name, _ in discord.calls].count(operation)


def key(place: Place, user: str = "42") -> str:
    """The session key of what somebody says in a place."""
    return session_key(place, user, group_sessions_per_user=True, thread_sessions_per_user=False)


# --- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("channel", "kind"), [(TEXT, 11), (NEWS, 10), (FORUM, 11), (THREAD, 11)])
async def test_a_thread_is_opened_and_its_messages_carry_its_place(
    discord: DiscordEmulator, adapter: DiscordAdapter, desk: Desk, channel: str, kind: int
) -> None:
    """Public, open for a day without talk; from inside a thread, beside it. The key is that of the next message."""
    opened = await adapter.open_thread(Place("discord", "main", "group", channel), "  My\n thread ")
    made = discord.channels[opened.chat]
    assert (made.kind, made.name, made.archive_minutes) == (kind, "My thread", 1440)
    assert made.parent == (TEXT if channel == THREAD else channel)
    discord.say("hello", channel=opened.chat)
    await discord.until(lambda: [message for message in desk.taken if message.text == "hello"])

    (heard,) = [message for message in desk.taken if message.text == "hello"]
    assert (heard.place, heard.place.name) == (opened, opened.name)
    assert key(heard.place) == key(opened)


async def test_the_place_of_a_thread_is_the_same_after_a_restart(
    discord: DiscordEmulator, adapter: DiscordAdapter, desk: Desk
) -> None:
    """Also when the new process does not know the thread and has to ask."""
    opened = await adapter.open_thread(ROOM, "My thread")
    await adapter.stop()
    discord.channels[opened.chat].unlisted = True
    later = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    await later.start(desk.deliver)
    discord.say("hello", channel=opened.chat)
    await discord.until(lambda: [message for message in desk.taken if message.text == "hello"])
    await later.stop()
    assert desk.taken[-1].place == opened


async def test_a_long_title_is_cut_to_what_discord_takes(discord: DiscordEmulator, adapter: DiscordAdapter) -> None:
    """Counted in UTF-16 units, without tearing what people see; nothing at all becomes a name too."""
    families = await adapter.open_thread(ROOM, "👨‍👩‍👧‍👦" * 20)
    assert discord.channels[families.chat].name == "👨‍👩‍👧‍👦" * 9
    assert discord.channels[(await adapter.open_thread(ROOM, "x" * 300)).chat].name == "x" * 100
    assert discord.channels[(await adapter.open_thread(ROOM, " \n ")).chat].name == "Conversation"


@pytest.mark.parametrize(
    "fault",
    [
        {"action": "drop", "processed": True},
        {"action": "refuse", "status": 500, "processed": True},
        {"action": "refuse", "status": 502, "processed": True},
        {"action": "garbage", "processed": True},
    ],
)
async def test_a_lost_answer_does_not_leave_two_threads(
    discord: DiscordEmulator, adapter: DiscordAdapter, fault: dict[str, Any]
) -> None:
    """The thread that was made after all is found, and the library's own repeats are held back."""
    before = set(discord.channels)
    discord.fail("thread", **fault)
    opened = await adapter.open_thread(ROOM, "My thread")
    assert set(discord.channels) - before == {opened.chat}
    assert calls(discord, "thread") == 1


@pytest.mark.parametrize("fault", [{"action": "drop"}, {"action": "refuse", "status": 500}])
async def test_a_call_that_did_nothing_is_made_once_more(
    discord: DiscordEmulator, adapter: DiscordAdapter, fault: dict[str, Any]
) -> None:
    """After a look at the threads there are; an older one of the same name is not taken for it."""
    older = discord.channel("1000000000000000", "thread", name="My thread", owner="1000").id
    discord.fail("thread", **fault)
    opened = await adapter.open_thread(ROOM, "My thread")
    assert opened.chat != older
    assert (calls(discord, "thread"), calls(discord, "active")) == (2, 1)


async def test_a_thread_that_cannot_be_opened_is_told(discord: DiscordEmulator, adapter: DiscordAdapter) -> None:
    """With what to do, where something can be done."""
    with pytest.raises(Refused, match="only in text, announcement and forum channels"):
        await adapter.open_thread(Place("discord", "main", "dm", discord.dm()), "x")
    with pytest.raises(Gone, match="does not exist"):
        await adapter.open_thread(Place("discord", "main", "group", "404"), "x")
    discord.fail("thread", "refuse", status=403, code=50013)
    with pytest.raises(Refused, match="Create Public Threads"):
        await adapter.open_thread(ROOM, "x")
    discord.fail("thread", "refuse", status=400, code=160006, message="Maximum number of active threads reached")
    with pytest.raises(Refused, match="Maximum number"):
        await adapter.open_thread(ROOM, "x")
    discord.fail("thread", "limit", seconds=60)
    with pytest.raises(RetryLater):
        await adapter.open_thread(ROOM, "x")
    discord.fail("thread", "drop", times=2)
    with pytest.raises(UnknownOutcome, match="whether the thread was opened"):
        await adapter.open_thread(ROOM, "x")


# --- slash commands --------------------------------------------------------------------------------------------------


async def test_commands_are_listed_once(discord: DiscordEmulator, adapter: DiscordAdapter, desk: Desk) -> None:
    """Only where the bot is a member, and in direct chats; written again only when something has changed."""
    (bot,) = discord.bots.values()
    assert [(command["name"], command["description"]) for command in bot.commands] == [
        ("new", "Begin anew"),
        ("help", "What can be done"),
    ]
    assert bot.commands[0]["options"][0]["required"] is False
    assert bot.commands[1]["options"] == []
    assert all((command["integration_types"], command["contexts"]) == ([0], [0, 1]) for command in bot.commands)
    await adapter.stop()

    async def listed(commands: tuple[SlashCommand, ...], writes: int) -> None:
        later = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url, commands)
        looks = calls(discord, "commands")
        await later.start(desk.deliver)
        await discord.until(lambda: calls(discord, "commands") > looks and calls(discord, "register") == writes)
        await later.stop()

    await listed(COMMANDS, 1)
    await listed(COMMANDS[::-1], 1)
    await listed(COMMANDS[:1], 2)


async def test_commands_that_cannot_be_listed_are_no_trouble(discord: DiscordEmulator, desk: Desk) -> None:
    """They can be typed all the same."""
    discord.fail("commands", "refuse", status=403)
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url, COMMANDS)
    await adapter.start(desk.deliver)
    discord.say("/help", mention=True)
    await discord.until(lambda: desk.taken)
    await adapter.stop()
    assert desk.taken[0].kind == "command"


async def test_a_command_is_the_message_it_would_have_been(
    discord: DiscordEmulator, adapter: DiscordAdapter, desk: Desk
) -> None:
    """In every kind of place: the same key, person and words as when it is typed."""
    del adapter
    archived = discord.channel(None, "thread", name="archived", unlisted=True).id
    for channel in (TEXT, THREAD, archived, discord.dm()):
        desk.taken.clear()
        discord.say("/new a title", channel=channel, mention=True)
        call = discord.call("new", "a title", channel=channel)
        await discord.until(lambda: len(desk.taken) == 2)
        typed, called = sorted(desk.taken, key=lambda message: message.dedupe_key, reverse=True)
        assert (called.dedupe_key, called.message_id) == (f"i:{call.id}", call.id)
        assert (called.kind, called.text, called.addressed) == (typed.kind, typed.text, typed.addressed)
        assert called.sender == typed.sender
        assert key(called.place) == key(typed.place)


async def test_a_command_is_deferred_at_once_and_then_noted(
    discord: DiscordEmulator, adapter: DiscordAdapter, desk: Desk
) -> None:
    """Whatever waits in line before it: Discord gives it three seconds. The note is for all to see."""
    del adapter
    desk.held = True
    discord.say("slow")
    call = discord.call("new", "a `title` @everyone")
    await discord.until(lambda: call.deferred)
    assert (call.ephemeral, call.text, desk.taken) == (False, None, [])
    desk.let_go.set()
    await discord.until(lambda: call.text is not None)
    assert call.text == "`/new a 'title' @everyone`"


@pytest.mark.parametrize("verdict", [Verdict.DENIED, Verdict.IGNORED])
async def test_nothing_is_noted_of_a_command_that_is_not_answered(
    discord: DiscordEmulator, adapter: DiscordAdapter, desk: Desk, verdict: Verdict
) -> None:
    """The deferred response goes away."""
    del adapter
    desk.verdict = verdict
    call = discord.call("help")
    await discord.until(lambda: call.deleted)
    assert call.text is None


async def test_a_command_told_twice_has_one_key(discord: DiscordEmulator, adapter: DiscordAdapter, desk: Desk) -> None:
    """And one note."""
    del adapter
    call = discord.call("help", times=2)
    await discord.until(lambda: len(desk.taken) == 2)
    await discord.until(lambda: call.text is not None)
    assert {message.dedupe_key for message in desk.taken} == {f"i:{call.id}"}


async def test_a_command_is_delivered_even_if_it_cannot_be_answered(
    discord: DiscordEmulator, adapter: DiscordAdapter, desk: Desk
) -> None:
    """The answer goes to the place anyway."""
    del adapter
    discord.fail("callback", "refuse", status=404, code=10062, message="Unknown interaction")
    discord.call("help")
    await discord.until(lambda: [message.text for message in desk.taken] == ["/help"])


async def test_a_command_without_room_is_refused_with_a_word(
    discord: DiscordEmulator, adapter: DiscordAdapter, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be fetched later, so the person is told."""
    del adapter
    monkeypatch.setattr(lines, "IN_LINE", 1)
    desk.held = True
    for text in ("one", "two"):
        discord.say(text)
    call = discord.call("help")
    await discord.until(lambda: call.text is not None)
    assert "try again" in (call.text or "")
    desk.let_go.set()


async def test_a_global_wait_does_not_delay_the_first_answer(
    discord: DiscordEmulator, adapter: DiscordAdapter, desk: Desk
) -> None:
    """Answers to interactions have no share in the limits of the bot."""
    del desk
    discord.fail("typing", "limit", seconds=5, everywhere=True)
    await adapter.typing(ROOM)
    await discord.until(lambda: calls(discord, "typing") == 1)
    call = discord.call("help")
    await discord.until(lambda: call.text is not None, seconds=3)
