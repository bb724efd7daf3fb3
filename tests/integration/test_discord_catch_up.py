"""Lost connections and what was missed: the real client library against an emulated Discord."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from adapters.base import AdapterState, CatchesUp, InboundMessage, Place, Unreadable, Verdict
from adapters.discord import DiscordAdapter, connection, intake, lines, supervisor, waiting
from tests.emulators.discord import TEXT, THREAD, DiscordEmulator

ROOM = Place("discord", "main", "group", TEXT)
TALK = Place("discord", "main", "thread", THREAD)


class Store:
    """Takes each key once, as the real one does."""

    def __init__(self) -> None:
        self.rows: dict[str, InboundMessage] = {}
        self.doubles = 0
        self.held: set[str] = set()
        self.let_go = asyncio.Event()

    async def deliver(self, message: InboundMessage) -> Verdict:
        """Take a message, unless it is there already; wait with those in `held`."""
        if message.text in self.held:
            await self.let_go.wait()
        if message.dedupe_key in self.rows:
            self.doubles += 1
            return Verdict.DUPLICATE
        self.rows[message.dedupe_key] = message
        return Verdict.ACCEPTED

    @property
    def texts(self) -> list[str]:
        """What was taken, in order."""
        return [message.text for message in self.rows.values()]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying again need not be waited for."""
    monkeypatch.setattr(waiting, "FIRST_WAIT", 0.02)


@pytest.fixture(autouse=True)
def no_rest_after_a_lost_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library sleeps five seconds before it begins a new session in the place of a lost one."""

    async def at_once(self: connection.GatewayClient, shard_id: int | None, *, initial: bool = False) -> None:
        del self, shard_id, initial

    monkeypatch.setattr(connection.GatewayClient, "before_identify_hook", at_once)


@pytest.fixture
async def discord() -> AsyncIterator[DiscordEmulator]:
    """A Discord."""
    async with DiscordEmulator() as emulator:
        yield emulator


@pytest.fixture
def store() -> Store:
    """Where messages go."""
    return Store()


@pytest.fixture
async def adapter(discord: DiscordEmulator) -> AsyncIterator[DiscordAdapter]:
    """An adapter that is not started; stopped at the end."""
    made = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    yield made
    await made.stop()


def fetched(discord: DiscordEmulator) -> list[str]:
    """The channels whose history was asked for."""
    return [parameters["channel"] for name, parameters in discord.calls if name == "history"]


@pytest.mark.parametrize("how", ["reconnect", "abort"])
async def test_a_resumed_session_misses_nothing_and_fetches_nothing(
    discord: DiscordEmulator, adapter: DiscordAdapter, store: Store, how: str
) -> None:
    """Discord tells what happened in between, once."""
    await adapter.start(store.deliver)
    discord.say("before")
    await discord.until(lambda: store.texts == ["before"])
    getattr(discord.gateway, how)()
    await discord.until(lambda: discord.gateway.connected == 0)
    discord.say("between")
    await discord.until(lambda: store.texts == ["before", "between"])
    discord.say("after")
    await discord.until(lambda: store.texts == ["before", "between", "after"])
    await discord.until(lambda: adapter.state is AdapterState.CONNECTED)

    assert (discord.gateway.resumed, discord.gateway.identified, store.doubles) == (1, 1, 0)
    assert fetched(discord) == []


async def test_while_the_connection_is_lost_the_state_says_so(
    discord: DiscordEmulator, adapter: DiscordAdapter, store: Store
) -> None:
    """And when it is there again, too."""
    await adapter.start(store.deliver)
    await discord.gateway.stop()
    await discord.until(lambda: adapter.state is AdapterState.RETRYING)
    assert adapter.problem == "The connection to Discord was lost; it is being made anew."
    await discord.gateway.start(discord.gateway.port)
    await discord.until(lambda: adapter.state is AdapterState.CONNECTED)
    assert adapter.problem is None


@pytest.mark.parametrize("how", ["invalidate", "forget"])
async def test_what_a_lost_session_missed_is_fetched_in_order_before_anything_new(
    discord: DiscordEmulator, adapter: DiscordAdapter, store: Store, how: str
) -> None:
    """Only channels with something new are asked for; doubles have the same key."""
    await adapter.start(store.deliver)
    discord.say("room before")
    discord.say("thread before", channel=THREAD)
    direct = discord.dm()
    discord.say("direct before", channel=direct)
    await discord.until(lambda: len(store.rows) == 3)
    getattr(discord.gateway, how)()
    discord.gateway.abort()
    await discord.until(lambda: discord.gateway.connected == 0)
    for number in range(3):
        discord.say(f"room {number}", mention=number == 1)
    discord.say("direct meanwhile", channel=direct)
    await discord.until(lambda: discord.gateway.identified == 2)
    discord.say("room after")
    await discord.until(lambda: len(store.rows) == 8)

    room = [message for message in store.rows.values() if message.place == ROOM]
    assert [message.text for message in room] == ["room before", "room 0", "room 1", "room 2", "room after"]
    assert [message.addressed for message in room] == [False, False, True, False, False]
    assert {message.place.chat_type for message in store.rows.values() if message.place.chat == direct} == {"dm"}
    assert sorted(fetched(discord)) == sorted([TEXT, direct])
    assert store.doubles <= 1


async def test_the_same_message_by_catch_up_and_live_has_one_key(
    discord: DiscordEmulator, adapter: DiscordAdapter, store: Store
) -> None:
    """Said after the session began but before the history was read, it comes twice, as one."""
    await adapter.start(store.deliver)
    discord.say("before")
    await discord.until(lambda: store.texts == ["before"])
    discord.gateway.forget()
    discord.gateway.abort()
    await discord.until(lambda: discord.gateway.connected == 0)
    discord.say("missed")
    discord.fail("history", "delay", seconds=0.1)
    await discord.until(lambda: fetched(discord))
    discord.say("both")
    await discord.until(lambda: store.doubles == 1)
    assert store.texts == ["before", "missed", "both"]


async def test_after_a_restart_it_goes_on_where_it_was(discord: DiscordEmulator, store: Store) -> None:
    """Who starts it says which message was the last one known in each place."""
    number = discord.say("known")
    old = discord.channel(None, "thread", name="archived", unlisted=True, archived=True).id
    first = discord.say("known too", channel=old)
    for text in ("missed 1", "missed 2"):
        discord.say(text)
        discord.say(f"thread {text}", channel=old)
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    assert isinstance(adapter, CatchesUp)
    thread = Place("discord", "main", "thread", old)
    adapter.resume_from({ROOM: number, thread: first, Place("discord", "main", "group", "none"): "x"})
    await adapter.start(store.deliver)
    await discord.until(lambda: len(store.rows) == 4)
    await adapter.stop()

    heard: dict[Place, list[str]] = {}
    for message in store.rows.values():
        heard.setdefault(message.place, []).append(message.text)
    assert heard == {ROOM: ["missed 1", "missed 2"], thread: ["thread missed 1", "thread missed 2"]}


async def test_a_stopped_adapter_knows_where_it_was(
    discord: DiscordEmulator, adapter: DiscordAdapter, store: Store
) -> None:
    """What was said while it was stopped, or was not delivered when it was, comes with the next start."""
    await adapter.start(store.deliver)
    discord.say("before")
    await discord.until(lambda: store.texts == ["before"])
    store.held = {"held"}
    discord.say("held")
    await discord.until(lambda: discord.gateway.connected == 1)
    await adapter.stop()
    discord.say("meanwhile")
    store.held = set()
    await adapter.start(store.deliver)
    await discord.until(lambda: store.texts == ["before", "held", "meanwhile"])


async def test_trouble_with_one_channel_does_not_stop_the_others(
    discord: DiscordEmulator, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal is final, other trouble is tried again later; live messages are taken meanwhile."""
    monkeypatch.setattr(intake, "MEND_SECONDS", 0.2)
    closed = discord.channel(None, "text", hidden=True).id
    last = discord.say("known")
    discord.say("missed")
    thread = discord.say("thread known", channel=THREAD)
    discord.say("thread missed", channel=THREAD)
    discord.fail("history", "refuse", status=503, channel=THREAD)
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    adapter.resume_from({ROOM: last, TALK: thread, Place("discord", "main", "group", closed): last})
    with capture_logs() as logs:
        await adapter.start(store.deliver)
        await discord.until(lambda: "missed" in store.texts)
        discord.say("thread live", channel=THREAD)
        await discord.until(lambda: "thread live" in store.texts)
        await discord.until(lambda: "thread missed" in store.texts)
    await adapter.stop()

    assert {entry["event"] for entry in logs} >= {"discord_catch_up_refused", "discord_catch_up_failed"}
    assert fetched(discord).count(closed) == 1


@pytest.mark.parametrize(("missed", "first"), [(9, 0), (10, 0), (25, 0), (29, 0), (40, 10)])
async def test_a_long_absence_is_made_up_for_page_by_page_up_to_a_limit(
    discord: DiscordEmulator, store: Store, monkeypatch: pytest.MonkeyPatch, missed: int, first: int
) -> None:
    """In order; of too much, what was said last. What is left out is told."""
    monkeypatch.setattr(intake, "PAGE", 10)
    monkeypatch.setattr(intake, "PAGES", 3)
    last = discord.say("known")
    for number in range(missed):
        discord.say(f"missed {number}")
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    adapter.resume_from({ROOM: last})
    with capture_logs() as logs:
        await adapter.start(store.deliver)
        await discord.until(lambda: len(store.rows) == missed - first)
    await adapter.stop()

    assert store.texts == [f"missed {number}" for number in range(first, missed)]
    assert bool([entry for entry in logs if entry["event"] == "discord_catch_up_cut"]) == bool(first)


async def test_what_was_surely_taken_in_is_not_asked_for_again(discord: DiscordEmulator, store: Store) -> None:
    """The store keeps only what was answered: without a time, all talk since then would be read again."""
    room, ann = discord.channels[TEXT], discord.user()
    for number in ("1000000000000000000", "1000000000000000005"):
        discord.post(room, ann, "not for the bot", number=number)
    new = discord.say("new")
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    adapter.resume_from({ROOM: "1000000000000000000"}, since=time.time())
    await adapter.start(store.deliver)
    await discord.until(lambda: store.rows)
    await adapter.stop()
    assert list(store.rows) == [f"m:{new}"]


async def test_only_so_many_channels_are_asked_for(
    discord: DiscordEmulator, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those where something was said last."""
    monkeypatch.setattr(intake, "CHANNELS", 2)
    known = {}
    for number in range(4):
        channel = discord.channel(f"60{number}")
        known[Place("discord", "main", "group", channel.id)] = discord.say("known", channel=channel.id)
    for number in range(4):
        discord.say(f"missed {number}", channel=f"60{number}")
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    adapter.resume_from(known)
    await adapter.start(store.deliver)
    await discord.until(lambda: len(store.rows) == 2)
    await adapter.stop()
    assert sorted(fetched(discord)) == ["602", "603"]


async def test_a_malformed_message_in_the_history_is_set_aside(discord: DiscordEmulator, store: Store) -> None:
    """Its neighbours are delivered."""
    last = discord.say("known")
    poison = discord.say("poison")
    discord.channels[TEXT].messages[poison]["author"] = "nobody"
    discord.say("good")
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    adapter.resume_from({ROOM: last})
    with capture_logs() as logs:
        await adapter.start(store.deliver)
        await discord.until(lambda: store.texts == ["good"])
    await adapter.stop()
    assert [entry["event"] for entry in logs].count("discord_event_set_aside") == 1


async def test_what_was_recorded_of_the_history_is_not_recorded_again(discord: DiscordEmulator, store: Store) -> None:
    """Also when nothing came after it."""
    last = discord.say("known")
    poison = discord.say("poison")
    discord.channels[TEXT].messages[poison]["author"] = "nobody"
    kept: list[str] = []

    async def report(event: Unreadable) -> None:
        kept.append(event.raw)

    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    adapter.report_to(report)
    adapter.resume_from({ROOM: last})
    await adapter.start(store.deliver)
    await discord.until(lambda: kept)
    await adapter.stop()
    discord.say("good")
    await adapter.start(store.deliver)
    await discord.until(lambda: store.texts == ["good"])
    await adapter.stop()

    assert len(kept) == 1
    assert poison in kept[0]


@pytest.mark.parametrize("limit", ["IN_LINE", "IN_ALL"])
async def test_a_flood_takes_bounded_room_and_nothing_is_lost(
    discord: DiscordEmulator, store: Store, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """What finds no room is fetched when there is room again, in order, before what comes then."""
    monkeypatch.setattr(lines, limit, 5)
    store.held = {"0"}
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    await adapter.start(store.deliver)
    with capture_logs() as logs:
        for number in range(30):
            discord.say(str(number))
        discord.say("elsewhere", channel=THREAD)
        await discord.until(lambda: [entry for entry in logs if entry["event"] == "discord_line_full"])
        if limit == "IN_LINE":
            await discord.until(lambda: store.texts == ["elsewhere"])
        else:
            await discord.until(lambda: [entry for entry in logs if entry.get("channel") == THREAD])
    store.let_go.set()
    discord.say("30")
    await discord.until(lambda: len(store.rows) == 32)
    assert [text for text in store.texts if text.isdigit()] == [str(number) for number in range(31)]
    await adapter.stop()


async def test_events_out_of_order_are_all_taken(
    discord: DiscordEmulator, adapter: DiscordAdapter, store: Store
) -> None:
    """Discord does not promise an order; none is taken for known because a later one was."""
    await adapter.start(store.deliver)
    discord.gateway.hold()
    for text in ("one", "two", "three"):
        discord.say(text)
    discord.gateway.release(backwards=True)
    await discord.until(lambda: store.texts == ["three", "two", "one"])


async def test_a_silent_gateway_is_left(
    discord: DiscordEmulator, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a sign of life the connection is made anew; nothing said meanwhile is lost."""
    monkeypatch.setattr(connection, "HEARTBEAT_SECONDS", 0.3)
    discord.gateway.heartbeat_interval = 50
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    await adapter.start(store.deliver)
    discord.say("before")
    await discord.until(lambda: store.texts == ["before"])
    discord.gateway.silent = True
    discord.say("into the silence")
    await discord.until(lambda: adapter.state is AdapterState.RETRYING)
    discord.gateway.silent = False
    await discord.until(lambda: "into the silence" in store.texts)
    await discord.until(lambda: adapter.state is AdapterState.CONNECTED)
    await adapter.stop()


async def test_a_client_without_a_session_is_replaced(
    discord: DiscordEmulator, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library waits ever longer between its own tries, up to a quarter of an hour; we do not."""
    monkeypatch.setattr(supervisor, "REPLACE_SECONDS", 0.2)
    monkeypatch.setattr(supervisor, "LOOK_SECONDS", 0.05)
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    await adapter.start(store.deliver)
    discord.gateway.silent = True
    discord.gateway.abort()
    await discord.until(lambda: "no session for" in (adapter.problem or ""))
    discord.gateway.silent = False
    await discord.until(lambda: adapter.state is AdapterState.CONNECTED)
    discord.say("heard")
    await discord.until(lambda: store.texts == ["heard"])
    await adapter.stop()


@pytest.mark.parametrize("code", [1000, 4000, 4008, 4009])
async def test_closes_that_may_pass_are_survived(
    discord: DiscordEmulator, adapter: DiscordAdapter, store: Store, code: int
) -> None:
    """Whatever the reason, the account comes back by itself."""
    await adapter.start(store.deliver)
    await discord.gateway.close(code)
    await discord.until(lambda: discord.gateway.identified + discord.gateway.resumed == 2)
    discord.say("heard")
    await discord.until(lambda: store.texts == ["heard"])
    await discord.until(lambda: adapter.state is AdapterState.CONNECTED)


async def test_stop_is_quick_in_any_state(discord: DiscordEmulator, store: Store) -> None:
    """Connected, reconnecting, silent, or not there at all: less than five seconds, and nothing goes on."""
    for trouble in ("none", "silent", "aborted", "gone"):
        discord.gateway.silent = False
        adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
        await adapter.start(store.deliver)
        if trouble == "silent":
            discord.gateway.silent = True
        elif trouble == "aborted":
            discord.gateway.forget()
            discord.gateway.abort()
        elif trouble == "gone":
            await discord.stop()
        async with asyncio.timeout(5):
            await adapter.stop()
        assert adapter.state is AdapterState.STOPPED, trouble
