"""Answers for Discord threads that are gone or locked: to the channel, where it is known and tells nobody more."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.base import Gone, InboundMessage, OutboundPart, Place, RetryLater, Verdict
from adapters.discord import DiscordAdapter
from tests.emulators.discord import FORUM, TEXT, THREAD, DiscordEmulator

TALK = Place("discord", "main", "thread", THREAD)
PART = OutboundPart("the answer", reply_to="1", idempotency_key="tl1")


@pytest.fixture
async def discord() -> AsyncIterator[DiscordEmulator]:
    """A Discord."""
    async with DiscordEmulator() as emulator:
        yield emulator


@pytest.fixture
def taken() -> list[InboundMessage]:
    """What was delivered."""
    return []


@pytest.fixture
async def adapter(discord: DiscordEmulator, taken: list[InboundMessage]) -> AsyncIterator[DiscordAdapter]:
    """A started adapter that knows its server."""

    async def deliver(message: InboundMessage) -> Verdict:
        taken.append(message)
        return Verdict.ACCEPTED

    made = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    await made.start(deliver)
    await heard(discord, taken, TEXT)
    yield made
    await made.stop()


async def heard(discord: DiscordEmulator, taken: list[InboundMessage], channel: str) -> Place:
    """Let somebody say something there, and wait: events come in order, so what was told before is known, too."""
    before = len(taken)
    discord.say("hello", channel=channel)
    await discord.until(lambda: len(taken) > before)
    return taken[-1].place


async def test_an_answer_for_a_thread_that_is_gone_goes_to_its_channel(
    discord: DiscordEmulator, adapter: DiscordAdapter
) -> None:
    """The receipt says so, so that the next message there begins a route of its own; a repeat is the same message."""
    discord.delete_thread(THREAD)
    receipt = await adapter.send(TALK, PART)
    again = await adapter.send(TALK, PART)

    (sent,) = discord.sent
    assert (sent.channel, sent.text, sent.reply_to) == (TEXT, "the answer", None)
    assert (receipt.message_id, receipt.thread_gone) == (sent.message_id, True)
    assert receipt.note is not None
    assert again == receipt


async def test_a_thread_that_sessions_are_not_told_of_is_known_once_it_was_heard(
    discord: DiscordEmulator, adapter: DiscordAdapter, taken: list[InboundMessage]
) -> None:
    """Its channel is asked for along with its kind."""
    old = discord.channel(None, "thread", name="old", unlisted=True).id
    place = await heard(discord, taken, old)
    del discord.channels[old]
    receipt = await adapter.send(place, PART)

    assert receipt.thread_gone
    assert [sent.channel for sent in discord.sent] == [TEXT]


async def test_what_was_said_in_a_private_thread_is_not_put_into_its_channel(
    discord: DiscordEmulator, adapter: DiscordAdapter, taken: list[InboundMessage]
) -> None:
    """More people read the channel."""
    private = discord.channel(None, "private", name="hush", parent=TEXT, owner="42").id
    place = await heard(discord, taken, private)
    discord.delete_thread(private)
    await heard(discord, taken, TEXT)
    with pytest.raises(Gone):
        await adapter.send(place, PART)

    assert not discord.sent


async def test_a_post_of_a_forum_that_is_gone_is_gone(
    discord: DiscordEmulator, adapter: DiscordAdapter, taken: list[InboundMessage]
) -> None:
    """Nothing can be written in the forum itself."""
    place = await heard(discord, taken, discord.channel(None, "thread", name="an idea", parent=FORUM).id)
    discord.delete_thread(place.chat)
    refusal = discord.fail("send", "refuse", channel=FORUM, code=50008, message="Cannot send messages in a forum")
    with pytest.raises(Gone, match="does not exist"):
        await adapter.send(place, PART)

    assert refusal.times == 0


async def test_trouble_with_the_channel_is_told_as_such(discord: DiscordEmulator, adapter: DiscordAdapter) -> None:
    """The answer waits and is tried again."""
    discord.delete_thread(THREAD)
    discord.fail("send", "limit", channel=TEXT, seconds=30.0)
    with pytest.raises(RetryLater):
        await adapter.send(TALK, PART)


async def test_a_thread_that_was_never_heard_of_is_gone(discord: DiscordEmulator, adapter: DiscordAdapter) -> None:
    """Nobody knows its channel."""
    with pytest.raises(Gone):
        await adapter.send(Place("discord", "main", "thread", "999"), PART)

    assert not discord.sent


async def test_the_channel_is_told_with_the_place_of_a_thread(
    discord: DiscordEmulator, adapter: DiscordAdapter, taken: list[InboundMessage]
) -> None:
    """Whoever keeps the place knows it after a restart, too; of a private thread there is nothing to know."""
    public = await heard(discord, taken, THREAD)
    old = await heard(discord, taken, discord.channel(None, "thread", name="old", unlisted=True).id)
    private = await heard(discord, taken, discord.channel(None, "private", name="hush", parent=TEXT, owner="42").id)
    assert (public.parent, old.parent, private.parent) == (TEXT, TEXT, None)

    await adapter.stop()
    discord.delete_thread(THREAD)
    later = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)

    async def deliver(_: InboundMessage) -> Verdict:
        return Verdict.IGNORED

    await later.start(deliver)
    try:
        receipt = await later.send(public, PART)
    finally:
        await later.stop()
    assert receipt.thread_gone
    assert [sent.channel for sent in discord.sent] == [TEXT]


async def test_an_answer_for_a_locked_thread_goes_to_its_channel(
    discord: DiscordEmulator, adapter: DiscordAdapter
) -> None:
    """The thread may be opened again, so it keeps its conversation."""
    discord.channels[THREAD].locked = True
    receipt = await adapter.send(TALK, PART)

    assert [sent.channel for sent in discord.sent] == [TEXT]
    assert (receipt.thread_gone, "is locked" in (receipt.note or "")) == (False, True)


async def test_a_locked_thread_without_a_channel_to_fall_back_to_is_closed(
    discord: DiscordEmulator, adapter: DiscordAdapter, taken: list[InboundMessage]
) -> None:
    """It is said so, and that it is not gone."""
    place = await heard(discord, taken, discord.channel(None, "private", name="hush", parent=TEXT, owner="42").id)
    discord.channels[place.chat].locked = True
    with pytest.raises(Gone, match="the thread is locked") as caught:
        await adapter.send(place, PART)

    assert caught.value.closed
    assert not discord.sent


async def test_an_archived_thread_is_opened_by_what_is_sent_to_it(
    discord: DiscordEmulator, adapter: DiscordAdapter
) -> None:
    """Nothing has to be done about it."""
    discord.channels[THREAD].archived = True
    receipt = await adapter.send(TALK, PART)

    assert ([sent.channel for sent in discord.sent], receipt.note) == ([THREAD], None)
    assert not discord.channels[THREAD].archived
