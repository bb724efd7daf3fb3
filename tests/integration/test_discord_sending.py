"""The Discord adapter sends: the real client library against an emulated Discord."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from adapters.base import (
    AdapterState,
    Gone,
    InboundMessage,
    OutboundPart,
    Place,
    Refused,
    RetryLater,
    SendError,
    UnknownOutcome,
    Verdict,
)
from adapters.discord import DiscordAdapter, client, connection
from adapters.discord.sending import nonce_of
from tests.emulators.discord import TEXT, THREAD, DiscordEmulator
from tests.emulators.discord_state import Limit

BOUND = 5.0
ROOM = Place("discord", "main", "group", TEXT)
TALK = Place("discord", "main", "thread", THREAD)
PART = OutboundPart(plain="hello", idempotency_key="tl1")


def calls(discord: DiscordEmulator, operation: str) -> int:
    """Count the calls of an operation that reached the server."""
    return [name for name, _ in discord.calls].count(operation)


@pytest.fixture
async def discord() -> AsyncIterator[DiscordEmulator]:
    """A Discord."""
    async with DiscordEmulator() as emulator:
        yield emulator


@pytest.fixture
def inbox() -> list[InboundMessage]:
    """What was received."""
    return []


@pytest.fixture
async def adapter(discord: DiscordEmulator, inbox: list[InboundMessage]) -> AsyncIterator[DiscordAdapter]:
    """A started adapter."""

    async def deliver(message: InboundMessage) -> Verdict:
        inbox.append(message)
        return Verdict.ACCEPTED

    made = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    await made.start(deliver)
    yield made
    await made.stop()


async def test_every_place_is_answered_where_it_is(
    discord: DiscordEmulator, adapter: DiscordAdapter, inbox: list[InboundMessage]
) -> None:
    """A direct chat, a channel, a thread: the answer goes to the place that the message carried."""
    direct = discord.dm()
    for text, channel in (("direct", direct), ("room", TEXT), ("thread", THREAD)):
        discord.say(text, channel=channel)
    await discord.until(lambda: len(inbox) == 3)
    receipts = [await adapter.send(message.place, OutboundPart(plain=message.text)) for message in inbox]

    assert {sent.text: sent.channel for sent in discord.sent} == {"direct": direct, "room": TEXT, "thread": THREAD}
    assert [receipt.message_id for receipt in receipts] == [sent.message_id for sent in discord.sent]


async def test_nobody_is_notified_by_what_is_written(discord: DiscordEmulator, adapter: DiscordAdapter) -> None:
    """An answer that says @everyone only says so."""
    await adapter.send(ROOM, OutboundPart(plain="@everyone <@42>"))
    (sent,) = discord.sent
    assert (sent.text, sent.mentions) == ("@everyone <@42>", {"parse": []})


async def test_an_answer_names_what_it_answers(discord: DiscordEmulator, adapter: DiscordAdapter) -> None:
    """The reply is a real one; without the answered message, or with one that takes no replies, it is sent plainly."""
    asked = discord.say("question")
    await adapter.send(ROOM, OutboundPart(plain="yes", reply_to=asked))
    await adapter.send(ROOM, OutboundPart(plain="gone", reply_to="77"))
    system = discord.say("joined", type=7)
    await adapter.send(ROOM, OutboundPart(plain="welcome", reply_to=system, idempotency_key="k"))
    discord.fail("send", "refuse", status=400, code=160002, message="Cannot reply without permission to read history")
    await adapter.send(ROOM, OutboundPart(plain="blind", reply_to=asked))
    await adapter.send(ROOM, OutboundPart(plain="odd", reply_to="no number"))

    told = {sent.text: sent.reply_to for sent in discord.sent}
    assert told == {"yes": asked, "gone": None, "welcome": None, "blind": None, "odd": None}
    assert all(sent.mentions["parse"] == [] and not sent.mentions.get("replied_user") for sent in discord.sent)


@pytest.mark.parametrize(
    "text", ["a" * 4095 + "😀", "😀" * 5000, "```python\n" + "x = 1\n" * 300 + "```", "**" + "word " * 1000 + "end**"]
)
async def test_long_answers_arrive_whole(discord: DiscordEmulator, adapter: DiscordAdapter, text: str) -> None:
    """No part is refused, and nothing is missing."""
    parts = adapter.render(text)
    for number, part in enumerate(parts):
        await adapter.send(ROOM, OutboundPart(plain=part.plain, idempotency_key=f"tl{number}"))

    told = "".join(sent.text for sent in discord.sent).replace("```python", "").replace("```", "")
    assert "".join(told.split()) == "".join(text.replace("```python", "").replace("```", "").split())
    assert all(sent.text.count("```") % 2 == 0 for sent in discord.sent)


async def test_a_repeat_with_the_same_key_is_the_same_message(
    discord: DiscordEmulator, adapter: DiscordAdapter
) -> None:
    """So an unknown outcome may be settled by sending again; the same key with other words is another message."""
    discord.fail("send", "drop", processed=True)
    with pytest.raises(UnknownOutcome):
        await adapter.send(ROOM, PART)
    receipt = await adapter.send(ROOM, PART)
    again = await adapter.send(ROOM, PART)
    other = await adapter.send(ROOM, OutboundPart(plain="other words", idempotency_key=PART.idempotency_key))

    assert adapter.capabilities.idempotent_send
    assert [sent.text for sent in discord.sent] == ["hello", "other words"]
    assert receipt.message_id == again.message_id == discord.sent[0].message_id
    assert other.message_id == discord.sent[1].message_id
    assert all(len(nonce) <= 25 for nonce in (nonce_of(PART), discord.sent[1].nonce) if nonce)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"action": "drop"}, UnknownOutcome),
        ({"action": "garbage"}, UnknownOutcome),
        ({"action": "refuse", "status": 503}, UnknownOutcome),
        ({"action": "refuse", "status": 401}, RetryLater),
        ({"action": "refuse", "status": 404, "code": 0}, RetryLater),
        ({"action": "refuse", "status": 403, "code": 0}, RetryLater),
        ({"action": "refuse", "status": 404, "code": 10003}, Gone),
        ({"action": "refuse", "status": 403, "code": 50001}, Gone),
        ({"action": "refuse", "status": 403, "code": 50013}, Gone),
        ({"action": "refuse", "status": 403, "code": 50007}, Gone),
        ({"action": "refuse", "status": 403, "code": 160005}, Gone),
        ({"action": "refuse", "status": 400, "code": 50035}, Refused),
        ({"action": "refuse", "status": 403, "code": 40001}, Refused),
        ({"action": "refuse", "status": 400, "code": 200000}, Refused),
        ({"action": "refuse", "status": 400, "code": 20016}, RetryLater),
        ({"action": "limit", "seconds": 60.5}, RetryLater),
    ],
)
async def test_each_failure_is_one_kind_of_error(
    discord: DiscordEmulator, adapter: DiscordAdapter, fault: dict[str, Any], kind: type[SendError]
) -> None:
    """What Discord says decides what becomes of the part."""
    discord.fail("send", **fault)
    with pytest.raises(SendError) as caught:
        await adapter.send(ROOM, PART)
    assert type(caught.value) is kind
    assert (await adapter.send(ROOM, PART)).message_id


@pytest.mark.parametrize("everywhere", [False, True])
async def test_a_long_wait_is_handed_back(
    discord: DiscordEmulator, adapter: DiscordAdapter, *, everywhere: bool
) -> None:
    """The outbox waits better than a call does; a global one holds up the whole account, others only the place."""
    discord.fail("send", "limit", seconds=61.5, everywhere=everywhere)
    with pytest.raises(RetryLater) as caught:
        await adapter.send(ROOM, PART)
    assert (caught.value.delay, caught.value.whole_account) == (61.5, everywhere)


async def test_a_long_wait_of_the_account_holds_for_every_call(
    discord: DiscordEmulator, adapter: DiscordAdapter
) -> None:
    """Each further try would count against the bot, so none is made."""
    discord.fail("send", "limit", seconds=61.5, everywhere=True)
    for place in (ROOM, TALK):
        with pytest.raises(RetryLater) as caught:
            await adapter.send(place, PART)
        assert caught.value.whole_account
        assert 60 < caught.value.delay <= 61.5
    assert calls(discord, "send") == 1


async def test_a_short_wait_is_sat_out(discord: DiscordEmulator, adapter: DiscordAdapter) -> None:
    """The library does that by itself."""
    discord.fail("send", "limit", seconds=0.05)
    await adapter.send(ROOM, PART)
    assert (calls(discord, "send"), len(discord.sent)) == (2, 1)


async def test_a_burst_keeps_to_the_limit_of_its_channel(discord: DiscordEmulator, adapter: DiscordAdapter) -> None:
    """As the answers tell it, so that nothing is refused; the order of the parts holds."""
    discord.limit = Limit(3, 0.3)
    await asyncio.gather(*(adapter.send(ROOM, OutboundPart(plain=f"{number}")) for number in range(8)))
    assert [sent.text for sent in discord.sent] == [str(number) for number in range(8)]
    assert calls(discord, "send") == 8


async def test_being_shut_out_stops_the_account(discord: DiscordEmulator, adapter: DiscordAdapter) -> None:
    """A 429 of the front door, without Discord behind it, is about everything that we do."""
    discord.fail("send", "limit", seconds=120, via=False)
    with pytest.raises(RetryLater) as caught:
        await adapter.send(ROOM, PART)
    assert (caught.value.delay, caught.value.whole_account) == (120, True)


async def test_giving_up_during_a_global_wait_does_not_harm_later_calls(
    discord: DiscordEmulator, adapter: DiscordAdapter
) -> None:
    """The library would let every later call of the client wait for ever."""
    discord.fail("send", "limit", seconds=0.3, everywhere=True)
    sending = asyncio.create_task(adapter.send(ROOM, PART))
    await discord.until(lambda: calls(discord, "send") == 1)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    async with asyncio.timeout(BOUND):
        await adapter.send(TALK, OutboundPart(plain="later"))
    await discord.until(lambda: {sent.text for sent in discord.sent} == {"hello", "later"})


async def test_a_send_that_hangs_ends_for_the_caller(
    discord: DiscordEmulator, adapter: DiscordAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call goes on behind it; the repeat makes no second message."""
    monkeypatch.setattr(client, "SEND_SECONDS", 0.1)
    discord.fail("send", "delay", seconds=0.3)
    with pytest.raises(UnknownOutcome, match="in time"):
        await adapter.send(ROOM, PART)
    monkeypatch.setattr(client, "SEND_SECONDS", BOUND)
    await discord.until(lambda: discord.sent)
    await adapter.send(ROOM, PART)
    assert len(discord.sent) == 1


async def test_a_call_that_is_never_answered_is_cut(
    discord: DiscordEmulator, adapter: DiscordAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing waits for ever."""
    monkeypatch.setattr(connection, "CALL_SECONDS", 0.2)
    discord.fail("send", "hang")
    with pytest.raises(UnknownOutcome):
        await adapter.send(ROOM, PART)


async def test_one_slow_place_does_not_hold_up_the_others(discord: DiscordEmulator, adapter: DiscordAdapter) -> None:
    """A limit of one channel is that channel's."""
    discord.fail("send", "limit", seconds=0.5, channel=TEXT)
    slow = asyncio.create_task(adapter.send(ROOM, PART))
    await discord.until(lambda: calls(discord, "send") == 1)
    await adapter.send(TALK, OutboundPart(plain="quick"))
    assert not slow.done()
    await slow


async def test_server_trouble_is_repeated_by_the_library_without_doubles(
    discord: DiscordEmulator, adapter: DiscordAdapter
) -> None:
    """The nonce makes its own repeats safe too."""
    discord.fail("send", "refuse", status=502, processed=True)
    receipt = await adapter.send(ROOM, PART)
    assert calls(discord, "send") == 2
    assert [sent.message_id for sent in discord.sent] == [receipt.message_id]


async def test_without_a_connection_nothing_is_sent(discord: DiscordEmulator) -> None:
    """Before the start, after the stop, and while Discord is not there, the part waits."""
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)

    async def deliver(message: InboundMessage) -> Verdict:
        del message
        return Verdict.ACCEPTED

    with pytest.raises(RetryLater, match="not connected"):
        await adapter.send(ROOM, PART)
    await adapter.start(deliver)
    await discord.stop()
    with pytest.raises(RetryLater, match="cannot be reached"):
        await adapter.send(ROOM, PART)
    await adapter.stop()
    with pytest.raises(RetryLater, match="not connected"):
        await adapter.send(ROOM, PART)


async def test_a_place_that_is_none_is_refused(adapter: DiscordAdapter) -> None:
    """Channels are numbers."""
    with pytest.raises(Refused, match="channels there are numbers"):
        await adapter.send(Place("discord", "main", "group", "general"), PART)


async def test_too_much_at_once_waits_outside(
    discord: DiscordEmulator, adapter: DiscordAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls take bounded room."""
    monkeypatch.setattr(client, "AT_ONCE", 2)
    discord.fail("send", "delay", times=2, seconds=0.2)
    first = [asyncio.create_task(adapter.send(ROOM, OutboundPart(plain=text))) for text in ("a", "b")]
    await discord.until(lambda: calls(discord, "send") >= 1)
    with pytest.raises(RetryLater, match="at once"):
        await adapter.send(ROOM, PART)
    await asyncio.gather(*first)


async def test_typing_is_shown_and_never_in_the_way(discord: DiscordEmulator, adapter: DiscordAdapter) -> None:
    """Decoration: whatever goes wrong with it, nobody notices."""
    await adapter.typing(ROOM)
    await discord.until(lambda: discord.typed == [TEXT])
    discord.fail("typing", "refuse", status=403, code=50013)
    await adapter.typing(ROOM)
    discord.fail("typing", "limit", seconds=60)
    await adapter.typing(ROOM)
    await adapter.typing(Place("discord", "main", "group", "x"))
    await discord.until(lambda: calls(discord, "typing") == 3)
    await adapter.send(ROOM, PART)
    await adapter.stop()
    await adapter.typing(ROOM)
    assert calls(discord, "typing") == 3


async def test_stop_lets_sends_in_flight_end(discord: DiscordEmulator, adapter: DiscordAdapter) -> None:
    """An answer on its way arrives, and its receipt too."""
    discord.fail("send", "delay", seconds=0.3)
    sending = asyncio.create_task(adapter.send(ROOM, PART))
    await discord.until(lambda: calls(discord, "send") == 1)
    async with asyncio.timeout(BOUND):
        await adapter.stop()
    assert (await sending).message_id == discord.sent[0].message_id


@pytest.mark.parametrize("fault", [{"action": "hang"}, {"action": "limit", "seconds": 9, "everywhere": True}])
async def test_stop_cuts_sends_that_do_not_end(
    discord: DiscordEmulator, adapter: DiscordAdapter, monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any]
) -> None:
    """In bounded time, and nobody says that it was sent."""
    monkeypatch.setattr(client, "STOP_GRACE", 0.2)
    discord.fail("send", **fault)
    sending = asyncio.create_task(adapter.send(ROOM, PART))
    await discord.until(lambda: calls(discord, "send") == 1)
    async with asyncio.timeout(BOUND):
        await adapter.stop()
    with pytest.raises(UnknownOutcome):
        await sending
    assert adapter.state is AdapterState.STOPPED


async def test_the_emulator_serves_as_a_process() -> None:
    """With everything that a test in another process needs to ask."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.emulators.discord", "--port", "0", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    told = json.loads(await process.stdout.readline())
    heard: list[str] = []

    async def deliver(message: InboundMessage) -> Verdict:
        heard.append(message.text)
        await elsewhere.send(message.place, OutboundPart(plain=f"re: {message.text}"))
        return Verdict.ACCEPTED

    elsewhere = DiscordAdapter("main", told["token"], told["api_url"], told["gateway_url"])
    await elsewhere.start(deliver)
    async with httpx.AsyncClient(base_url=told["control"], timeout=BOUND) as control:
        await control.post("/say", json=[{"text": "direct", "dm": "42"}, {"text": "room", "channel": TEXT}])
        counts = (await control.post("/wait", json={"sent": 2, "connected": 1, "seconds": BOUND})).json()
        sent = (await control.get("/sent")).json()
        await control.post("/gateway", json={"do": "abort"})
        await control.post("/call", json={"command": "help"})
        await control.post("/wait", json={"sent": 3, "seconds": BOUND})
        answered = (await control.get("/calls")).json()
    await elsewhere.stop()
    process.terminate()
    assert await process.wait() == 0

    assert counts["met"] is True
    assert {message["text"] for message in sent} == {"re: direct", "re: room"}
    assert heard[-1] == "/help"
    assert answered[0]["deferred"] is True
