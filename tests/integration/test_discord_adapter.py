"""The Discord adapter receives: the real client library against an emulated Discord."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from adapters.base import AdapterState, InboundMessage, Place, Reports, Unreadable, Verdict
from adapters.discord import DiscordAdapter, waiting
from tests.emulators.discord import FORUM, GUILD, TEXT, THREAD, TOKEN, DiscordEmulator


class Gateway:
    """Takes what is delivered, as long as it is let."""

    def __init__(self) -> None:
        self.tried: list[InboundMessage] = []
        self.taken: list[InboundMessage] = []
        self.failing: set[str] = set()
        self.held: set[str] = set()
        self.let_go = asyncio.Event()

    async def deliver(self, message: InboundMessage) -> Verdict:
        """Take a message, fail for texts in `failing`, wait with those in `held`."""
        self.tried.append(message)
        if message.text in self.held:
            await self.let_go.wait()
        if message.text in self.failing:
            raise OSError("disk full")
        self.taken.append(message)
        return Verdict.ACCEPTED

    @property
    def texts(self) -> list[str]:
        """What was taken, in order."""
        return [message.text for message in self.taken]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying again need not be waited for."""
    monkeypatch.setattr(waiting, "FIRST_WAIT", 0.02)


@pytest.fixture
async def discord() -> AsyncIterator[DiscordEmulator]:
    """A Discord."""
    async with DiscordEmulator() as emulator:
        yield emulator


@pytest.fixture
def gateway() -> Gateway:
    """Where messages go."""
    return Gateway()


@pytest.fixture
async def adapter(discord: DiscordEmulator) -> AsyncIterator[DiscordAdapter]:
    """An adapter that is not started; stopped at the end."""
    made = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    yield made
    await made.stop()


async def test_every_kind_of_place_is_heard(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """A direct chat, a channel, a thread and a forum post: each message says where it belongs and for whom it is."""
    await adapter.start(gateway.deliver)
    assert (adapter.state, adapter.problem) == (AdapterState.CONNECTED, None)
    post = discord.channel(None, "thread", name="an idea", parent=FORUM).id
    direct = discord.dm("42")
    discord.say("direct", channel=direct)
    discord.say("plain")
    discord.say("meant", mention=True)
    discord.say("in the thread", channel=THREAD)
    discord.say("in the post", channel=post)
    await discord.until(lambda: len(gateway.taken) == 5)

    heard = {message.text: (message.place, message.addressed) for message in gateway.taken}
    assert heard == {
        "direct": (Place("discord", "main", "dm", direct), True),
        "plain": (Place("discord", "main", "group", TEXT), False),
        "meant": (Place("discord", "main", "group", TEXT), True),
        "in the thread": (Place("discord", "main", "thread", THREAD), False),
        "in the post": (Place("discord", "main", "thread", post), False),
    }
    assert {message.text: message.place.name for message in gateway.taken} == {
        "direct": "Ann",
        "plain": "general",
        "meant": "general",
        "in the thread": "plans",
        "in the post": "an idea",
    }


async def test_the_role_that_the_server_made_for_the_bot_means_the_bot(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """It bears the same name, so people pick it by mistake."""
    await adapter.start(gateway.deliver)
    discord.say(f"<@&{discord.bots[TOKEN].role}> hello")
    await discord.until(lambda: gateway.taken)
    assert (gateway.texts, gateway.taken[0].addressed) == (["hello"], True)


async def test_only_what_is_needed_is_asked_for(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """Servers, messages in them, direct chats, words: nothing about members, presences or reactions."""
    await adapter.start(gateway.deliver)
    (session,) = discord.gateway.sessions.values()
    assert session.intents == 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15
    assert {name for name, _ in discord.calls} == {"me", "application"}


async def test_a_thread_that_the_client_does_not_know_is_asked_for_once(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """An archived thread is in no session's list; its messages belong to it all the same."""
    old = discord.channel(None, "thread", name="old", unlisted=True).id
    await adapter.start(gateway.deliver)
    discord.fail("channel", "refuse", status=503)
    for text in ("one", "two", "three"):
        discord.say(text, channel=old)
    await discord.until(lambda: len(gateway.taken) == 3)

    assert {message.place for message in gateway.taken} == {Place("discord", "main", "thread", old)}
    assert gateway.texts == ["one", "two", "three"]
    assert [name for name, _ in discord.calls].count("channel") == 2


async def test_a_message_from_nowhere_is_set_aside(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """A channel that does not exist for us cannot be answered either."""
    closed = discord.channel(None, "text", unlisted=True)
    await adapter.start(gateway.deliver)
    discord.fail("channel", "refuse", status=403, code=50001, message="Missing Access")
    with capture_logs() as logs:
        discord.say("lost", channel=closed.id)
        discord.say("found")
        await discord.until(lambda: gateway.texts == ["found"])
        await discord.until(lambda: [entry for entry in logs if entry["event"] == "discord_event_set_aside"])


async def test_own_echoes_are_dropped_and_bots_and_webhooks_told_apart(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """Who is not a person is not taken for one."""
    discord.user("1000")
    await adapter.start(gateway.deliver)
    discord.say("mine", user="1000")
    discord.say("a bot", user="8", name="other", bot=True)
    discord.say("a webhook", user="9", name="Ann", webhook_id="9", bot=True)
    discord.say("a person")
    await discord.until(lambda: len(gateway.taken) == 3)

    told = {message.text: (message.sender.user_id, message.sender.is_bot) for message in gateway.taken}
    assert told == {"a bot": ("8", True), "a webhook": (None, True), "a person": ("42", False)}


async def test_edits_and_deletions_are_told_as_such(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """They are no second messages; several at once are told one by one."""
    await adapter.start(gateway.deliver)
    numbers = [discord.say(text) for text in ("one", "two", "three")]
    discord.edit(numbers[0], "better", at=1_795_946_400.5)
    discord.delete(numbers[0])
    discord.delete(*numbers[1:])
    await discord.until(lambda: len(gateway.taken) == 7)

    told = [(message.kind, message.dedupe_key, message.text) for message in gateway.taken[3:]]
    assert told == [
        ("edit", f"e:{numbers[0]}:1795946400500", "better"),
        ("delete", f"d:{numbers[0]}", ""),
        ("delete", f"d:{numbers[1]}", ""),
        ("delete", f"d:{numbers[2]}", ""),
    ]
    assert {message.place for message in gateway.taken} == {Place("discord", "main", "group", TEXT)}


async def test_repeated_events_keep_their_key(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """The library passes on whatever comes; the key tells that it is the same."""
    await adapter.start(gateway.deliver)
    number = discord.say("hello", times=3)
    await discord.until(lambda: len(gateway.taken) == 3)
    assert {message.dedupe_key for message in gateway.taken} == {f"m:{number}"}


async def test_a_failed_delivery_is_tried_again_and_holds_up_only_its_own_channel(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """Other channels go on; later words of the same channel wait for the earlier ones, and the state says so."""
    gateway.failing = {"one"}
    await adapter.start(gateway.deliver)
    discord.say("one")
    discord.say("two")
    discord.say("other", channel=THREAD)
    await discord.until(lambda: len([message for message in gateway.tried if message.text == "one"]) > 2)

    assert gateway.texts == ["other"]
    assert adapter.state is AdapterState.RETRYING
    assert "disk full" in (adapter.problem or "")
    gateway.failing = set()
    await discord.until(lambda: gateway.texts == ["other", "one", "two"])
    assert (adapter.state, adapter.problem) == (AdapterState.CONNECTED, None)


async def test_channels_do_not_wait_for_each_other_and_keep_their_order(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """A slow delivery keeps back only what came after it in the same channel."""
    gateway.held = {"a1"}
    await adapter.start(gateway.deliver)
    for text, channel in (("a1", TEXT), ("b1", THREAD), ("a2", TEXT), ("b2", THREAD)):
        discord.say(text, channel=channel)
    await discord.until(lambda: gateway.texts == ["b1", "b2"])
    gateway.let_go.set()
    await discord.until(lambda: gateway.texts == ["b1", "b2", "a1", "a2"])


FORGED: list[Any] = [None, 7, "x", [], [1], {"id": 3}]


async def test_malformed_events_are_set_aside_and_the_rest_goes_on(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """Each field of each event missing or of another type: logged as it came, and the connection holds."""
    number = discord.say("before", mention=True)
    full = {**discord.channels[TEXT].messages[number], "guild_id": GUILD}
    command = {
        "id": "1",
        "type": 2,
        "token": "secret",
        "channel_id": TEXT,
        "guild_id": GUILD,
        "application_id": "1000",
        "data": {"name": "new"},
        "member": {"user": {"id": "42", "username": "ann"}},
    }
    await adapter.start(gateway.deliver)
    with capture_logs() as logs:
        for event, body in (
            ("MESSAGE_CREATE", full),
            ("MESSAGE_UPDATE", full),
            ("MESSAGE_DELETE", {"id": number, "channel_id": TEXT, "guild_id": GUILD}),
            ("MESSAGE_DELETE_BULK", {"ids": [number], "channel_id": TEXT, "guild_id": GUILD}),
            ("INTERACTION_CREATE", command),
            ("GUILD_CREATE", {"id": GUILD, "name": "x", "channels": [], "roles": []}),
            ("CHANNEL_UPDATE", {"id": TEXT, "type": 0, "guild_id": GUILD}),
            ("THREAD_CREATE", {"id": THREAD, "type": 11, "guild_id": GUILD}),
        ):
            for field in body:
                discord.gateway.dispatch(event, {name: value for name, value in body.items() if name != field})
                for value in FORGED:
                    discord.gateway.dispatch(event, {**body, field: value})
        after = discord.say("after", channel=discord.dm())
        await discord.until(lambda: "after" in gateway.texts)

    assert discord.gateway.identified == 1
    assert gateway.taken[-1].dedupe_key == f"m:{after}"
    notes = [entry for entry in logs if entry["event"] == "discord_event_set_aside"]
    assert {note["kind"] for note in notes} >= {"MESSAGE_CREATE", "MESSAGE_DELETE", "INTERACTION_CREATE"}
    assert not any("secret" in note["data"] for note in notes)
    assert not [entry for entry in logs if entry["event"] == "discord_job_failed"]


async def test_what_the_library_cannot_read_is_recorded(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """Events that are no messages, too: what depends on them may go wrong later, and nobody would know why."""
    kept: list[Unreadable] = []

    async def report(event: Unreadable) -> None:
        kept.append(event)

    adapter.report_to(report)
    await adapter.start(gateway.deliver)
    discord.gateway.dispatch("GUILD_CREATE", {"id": GUILD, "name": "x", "channels": 7, "roles": []})
    discord.say("after", channel=discord.dm())
    await discord.until(lambda: kept and "after" in gateway.texts)

    (event,) = kept
    assert (event.platform, event.account, '"channels": 7' in event.raw) == ("discord", "main", True)
    assert event.reason.startswith("GUILD_CREATE: ")


async def test_what_cannot_be_read_is_recorded_before_its_channel_goes_on(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """Without secrets; a record that fails is made again. An event that names no channel is recorded, too."""
    failures = [OSError("disk full")]
    kept: list[Unreadable] = []

    async def report(event: Unreadable) -> None:
        assert not gateway.texts
        if failures:
            raise failures.pop()
        kept.append(event)

    assert isinstance(adapter, Reports)
    adapter.report_to(report)
    await adapter.start(gateway.deliver)
    discord.gateway.dispatch("INTERACTION_CREATE", {"id": 1, "channel_id": TEXT, "guild_id": GUILD, "token": "secret"})
    discord.say("after")
    await discord.until(lambda: gateway.texts == ["after"])
    gateway.taken.clear()
    discord.gateway.dispatch("MESSAGE_CREATE", {"id": "1"})
    await discord.until(lambda: len(kept) == 2)

    assert [(event.platform, event.account) for event in kept] == [("discord", "main")] * 2
    assert [event.reason.partition(":")[0] for event in kept] == ["INTERACTION_CREATE", "MESSAGE_CREATE"]
    assert "<token>" in kept[0].raw
    assert "secret" not in kept[0].raw


@pytest.mark.parametrize("frame", ["this is no JSON", "[]", '"text"', '{"op": 0, "t": "READY", "s": 1, "d": {}}'])
async def test_a_frame_that_makes_no_sense_leads_to_a_new_session(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway, frame: str
) -> None:
    """The library's client ends over it; the next one goes on, and what was said meanwhile is fetched."""
    await adapter.start(gateway.deliver)
    discord.say("before")
    await discord.until(lambda: gateway.texts == ["before"])
    discord.gateway.raw(frame)
    await discord.until(lambda: discord.gateway.connected == 0)
    discord.say("meanwhile")
    await discord.until(lambda: discord.gateway.identified == 2)
    discord.say("after")
    await discord.until(lambda: "after" in gateway.texts)

    assert list(dict.fromkeys(gateway.texts)) == ["before", "meanwhile", "after"]
    assert adapter.state is AdapterState.CONNECTED
