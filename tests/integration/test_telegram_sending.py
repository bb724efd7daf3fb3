"""The Telegram adapter sends: the real client library against an emulated Bot API server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from adapters.base import (
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
from adapters.telegram import TelegramAdapter
from tests.emulators.telegram import TelegramEmulator

BOUND = 5.0
ANN = Place("telegram", "main", "dm", "42")
FORUM = -1001
PART = OutboundPart(plain="hello")


def calls(telegram: TelegramEmulator, method: str) -> int:
    """Count the calls of a method that reached the server."""
    return [name for name, _ in telegram.calls].count(method)


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramEmulator]:
    """A Bot API server that knows Ann and a forum with topic 17."""
    async with TelegramEmulator() as emulator:
        emulator.chat(42)
        emulator.chat(FORUM, "supergroup", forum=True).topics.add(17)
        yield emulator


@pytest.fixture
def inbox() -> list[InboundMessage]:
    """What was received."""
    return []


@pytest.fixture
async def adapter(telegram: TelegramEmulator, inbox: list[InboundMessage]) -> AsyncIterator[TelegramAdapter]:
    """A started adapter."""

    async def deliver(message: InboundMessage) -> Verdict:
        inbox.append(message)
        return Verdict.ACCEPTED

    made = TelegramAdapter("main", telegram.token, telegram.base_url)
    await made.start(deliver)
    yield made
    await made.stop()


async def test_a_part_arrives_with_its_formatting(telegram: TelegramEmulator, adapter: TelegramAdapter) -> None:
    """What `render` made is what the server takes; the receipt names the message."""
    (part,) = adapter.render("😀 **bold** [docs](https://example.org)")
    receipt = await adapter.send(ANN, part)

    (sent,) = telegram.sent
    assert (receipt.message_id, receipt.note) == (str(sent.message_id), None)
    assert (sent.chat_id, sent.thread_id, sent.text) == (42, None, "😀 bold docs")
    assert [entity["type"] for entity in sent.entities] == ["bold", "text_link"]


async def test_an_answer_names_what_it_answers(telegram: TelegramEmulator, adapter: TelegramAdapter) -> None:
    """The reply is a real one; a message that is gone does not stop it."""
    await adapter.send(ANN, OutboundPart(plain="yes", reply_to="7"))

    assert telegram.sent[0].reply_to == 7
    (fields,) = [fields for method, fields in telegram.calls if method == "sendMessage"]
    assert json.loads(fields["reply_parameters"])["allow_sending_without_reply"] is True


async def test_every_place_is_answered_where_it_is(
    telegram: TelegramEmulator, adapter: TelegramAdapter, inbox: list[InboundMessage]
) -> None:
    """Five forms of messages, four places: topics are sent to with their number, General and plain groups without."""
    telegram.say("general", chat_id=FORUM)
    telegram.say("general reply", chat_id=FORUM, reply_thread=900)
    telegram.say("topic", chat_id=FORUM, topic=17)
    telegram.say("group reply", chat_id=-7, chat_type="group", reply_thread=17)
    telegram.say("private topic", chat_id=42, topic=17)
    await telegram.until(lambda: len(inbox) == 5)
    for message in inbox:
        await adapter.send(message.place, OutboundPart(plain=message.text))

    assert len({(message.place.chat, message.place.thread) for message in inbox}) == 4
    assert {sent.text: (sent.chat_id, sent.thread_id) for sent in telegram.sent} == {
        "general": (FORUM, None),
        "general reply": (FORUM, None),
        "topic": (FORUM, 17),
        "group reply": (-7, None),
        "private topic": (42, 17),
    }


@pytest.mark.parametrize("text", ["a" * 4095 + "😀", "😀" * 5000, "!" * 4096, "**" + "word " * 3000 + "end**"])
async def test_long_answers_arrive_whole(telegram: TelegramEmulator, adapter: TelegramAdapter, text: str) -> None:
    """No part is refused, and nothing is missing."""
    for part in adapter.render(text):
        await adapter.send(ANN, part)

    assert "".join(sent.text for sent in telegram.sent) == text.strip("*")
    assert not [fields for method, fields in telegram.calls if method == "sendMessage" and not fields.get("text")]


async def test_refused_formatting_goes_as_plain_text(telegram: TelegramEmulator, adapter: TelegramAdapter) -> None:
    """The words matter more; addresses of links are written out."""
    telegram.fail("sendMessage", "refuse", description="Bad Request: can't parse entities: x", formatted_only=True)
    (part,) = adapter.render("**see** [docs](https://example.org)")
    receipt = await adapter.send(ANN, part)

    (sent,) = telegram.sent
    assert (sent.text, sent.entities) == ("see docs (https://example.org)", [])
    assert receipt.message_id == str(sent.message_id)


async def test_flood_control_is_passed_on(telegram: TelegramEmulator, adapter: TelegramAdapter) -> None:
    """The wait is the one that Telegram names, for this chat; nothing was sent."""
    telegram.flood(7)
    with pytest.raises(RetryLater) as caught:
        await adapter.send(ANN, PART)

    assert (caught.value.delay, caught.value.whole_account) == (7.0, False)
    assert telegram.sent == []
    await adapter.send(ANN, PART)
    assert len(telegram.sent) == 1


@pytest.mark.parametrize("status", [302, 401, 403, 404, 413, 429])
async def test_what_stands_in_telegrams_place_refuses_nothing(
    telegram: TelegramEmulator, adapter: TelegramAdapter, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The login page of a network, a firewall: the chat is not gone, the token not wrong, the answer waits."""
    telegram.fail("sendMessage", "stranger", status=status)
    with pytest.raises(RetryLater, match="something else answers") as caught:
        await adapter.send(ANN, PART)

    assert (caught.value.delay, caught.value.whole_account) == (2.0, False)
    assert caplog.records == []
    await adapter.send(ANN, PART)
    assert len(telegram.sent) == 1


@pytest.mark.parametrize("processed", [False, True])
async def test_a_connection_lost_in_the_middle_is_unknown(
    telegram: TelegramEmulator, adapter: TelegramAdapter, *, processed: bool
) -> None:
    """Whether the server took it cannot be told, and is not."""
    telegram.fail("sendMessage", "drop", processed=processed)
    with pytest.raises(UnknownOutcome):
        await adapter.send(ANN, PART)

    assert len(telegram.sent) == int(processed)
    assert calls(telegram, "sendMessage") == 1


@pytest.mark.parametrize(
    "fault",
    [
        {"action": "refuse", "status": 500, "description": "Internal Server Error"},
        {"action": "refuse", "status": 502, "description": "Bad Gateway", "processed": True},
        {"action": "garbage"},
    ],
)
async def test_an_answer_that_tells_nothing_is_unknown(
    telegram: TelegramEmulator, adapter: TelegramAdapter, fault: dict[str, Any]
) -> None:
    """Server errors and garbage do not say whether the message went out."""
    telegram.fail("sendMessage", **fault)
    with pytest.raises(UnknownOutcome):
        await adapter.send(ANN, PART)


async def test_no_connection_means_not_sent(telegram: TelegramEmulator, adapter: TelegramAdapter) -> None:
    """Without a server nothing can have left; the reason that is kept does not tell the token."""
    await telegram.stop()
    for _ in range(2):  # a connection that was open before, and none
        with pytest.raises(RetryLater) as caught:
            await adapter.send(ANN, PART)
        assert "emulated-token" not in str(caught.value)


async def test_a_refused_token_keeps_the_answers(telegram: TelegramEmulator, adapter: TelegramAdapter) -> None:
    """They wait, all of the account, until somebody mends the configuration."""
    telegram.fail("sendMessage", "refuse", status=401, description="Unauthorized")
    with pytest.raises(RetryLater) as caught:
        await adapter.send(ANN, PART)

    assert caught.value.whole_account


@pytest.mark.parametrize(
    ("status", "description"),
    [
        (403, "Forbidden: bot was blocked by the user"),
        (403, "Forbidden: bot was kicked from the supergroup chat"),
        (400, "Bad Request: group chat was deactivated"),
    ],
)
async def test_a_chat_that_is_closed_to_us_is_gone(
    telegram: TelegramEmulator, adapter: TelegramAdapter, status: int, description: str
) -> None:
    """Blocked, kicked, deactivated: no further try can help."""
    telegram.fail("sendMessage", "refuse", status=status, description=description)
    with pytest.raises(Gone) as caught:
        await adapter.send(ANN, PART)

    assert not caught.value.thread_only
    assert caught.value.moved_to is None


async def test_an_unknown_chat_is_gone(adapter: TelegramAdapter) -> None:
    """The server knows no such chat."""
    with pytest.raises(Gone, match="not found"):
        await adapter.send(Place("telegram", "main", "group", "-99"), PART)


async def test_a_deleted_topic_is_gone_but_its_chat_is_not(adapter: TelegramAdapter) -> None:
    """So that the gateway can answer in the chat and say why."""
    with pytest.raises(Gone) as caught:
        await adapter.send(Place("telegram", "main", "group", str(FORUM), "18"), PART)

    assert caught.value.thread_only


async def test_a_topic_that_telegram_swallows_is_noted(telegram: TelegramEmulator, adapter: TelegramAdapter) -> None:
    """Where Telegram silently posts to the main chat, the receipt says so."""
    telegram.chats[FORUM].swallows_topics = True
    receipt = await adapter.send(Place("telegram", "main", "group", str(FORUM), "17"), PART)

    assert "main chat" in (receipt.note or "")


async def test_a_migrated_group_tells_its_new_number(telegram: TelegramEmulator, adapter: TelegramAdapter) -> None:
    """The old number never works again; the new one is told once, here."""
    telegram.fail(
        "sendMessage",
        "refuse",
        description="Bad Request: group chat was upgraded to a supergroup chat",
        parameters={"migrate_to_chat_id": -100555},
    )
    with pytest.raises(Gone) as caught:
        await adapter.send(ANN, PART)

    assert caught.value.moved_to == "-100555"


@pytest.mark.parametrize(
    "part",
    [OutboundPart(plain="x" * 4097), OutboundPart(plain=" ")],
    ids=["too long", "blank"],
)
async def test_what_telegram_will_never_take_is_refused(adapter: TelegramAdapter, part: OutboundPart) -> None:
    """Another try with the same part is no use."""
    with pytest.raises(Refused):
        await adapter.send(ANN, part)


async def test_text_that_cannot_be_encoded_is_refused(adapter: TelegramAdapter) -> None:
    """There is no request that could carry a lone surrogate."""
    with pytest.raises(Refused):
        await adapter.send(ANN, OutboundPart(plain="\ud83d"))


async def test_typing_is_shown_where_it_belongs_and_never_fails(
    telegram: TelegramEmulator, adapter: TelegramAdapter
) -> None:
    """It is decoration: no place, no server, no matter."""
    await adapter.typing(Place("telegram", "main", "group", str(FORUM), "17"))
    assert telegram.calls[-1] == (
        "sendChatAction",
        {"chat_id": str(FORUM), "action": "typing", "message_thread_id": "17"},
    )

    telegram.flood(3, method="sendChatAction")
    await adapter.typing(ANN)
    await adapter.typing(Place("telegram", "main", "group", "no number", "x"))
    await telegram.stop()
    await adapter.typing(ANN)
    await adapter.stop()
    await adapter.typing(ANN)


async def test_an_opened_topic_is_the_place_of_its_messages(
    telegram: TelegramEmulator, adapter: TelegramAdapter, inbox: list[InboundMessage]
) -> None:
    """What `open_thread` returns is what a real message there carries; the bot's own service message is no talk."""
    place = await adapter.open_thread(Place("telegram", "main", "group", str(FORUM)), "The deploy script")
    telegram.say("here", chat_id=FORUM, topic=int(place.thread))
    await telegram.until(lambda: inbox)

    assert [message.text for message in inbox] == ["here"]
    assert inbox[0].place == place
    assert place.name == "The deploy script"


async def test_a_topic_name_is_cut_to_what_telegram_takes(telegram: TelegramEmulator, adapter: TelegramAdapter) -> None:
    """At most 128 characters, no half emoji, never empty."""
    forum = Place("telegram", "main", "group", str(FORUM))
    long = await adapter.open_thread(forum, "x" * 126 + "👨\u200d👩\u200d👧")
    blank = await adapter.open_thread(forum, " \n")

    assert long.name == "x" * 126
    assert blank.name == "Conversation"
    assert {int(long.thread), int(blank.thread)} <= telegram.chats[FORUM].topics


async def test_a_chat_without_topics_refuses_to_open_one(telegram: TelegramEmulator, adapter: TelegramAdapter) -> None:
    """The refusal is Telegram's, in words."""
    telegram.chat(-7, "group")
    with pytest.raises(Refused, match="not a forum"):
        await adapter.open_thread(Place("telegram", "main", "group", "-7"), "Work")


async def test_stop_ends_sends_in_flight(telegram: TelegramEmulator, adapter: TelegramAdapter) -> None:
    """Those on their way end as unknown, those that found no place as not sent; nothing hangs, nothing starts anew."""
    telegram.fail("sendMessage", "hang", times=None)
    sends = [asyncio.create_task(adapter.send(ANN, PART)) for _ in range(12)]
    await telegram.until(lambda: calls(telegram, "sendMessage") == 8)
    await adapter.typing(ANN)
    async with asyncio.timeout(BOUND):
        await adapter.stop()
        outcomes = await asyncio.gather(*sends, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [UnknownOutcome] * 8 + [RetryLater] * 4
    assert calls(telegram, "sendMessage") == 8
    assert calls(telegram, "sendChatAction") == 0
    with pytest.raises(RetryLater):
        await adapter.send(ANN, PART)


async def test_stop_lets_a_send_end(telegram: TelegramEmulator, adapter: TelegramAdapter) -> None:
    """A send that only needs a moment gets its receipt."""
    telegram.fail("sendMessage", "delay", seconds=0.2)
    send = asyncio.create_task(adapter.send(ANN, PART))
    await telegram.until(lambda: calls(telegram, "sendMessage"))
    await adapter.stop()

    assert (await send).message_id == str(telegram.sent[0].message_id)


async def test_one_chat_in_trouble_does_not_stop_others(telegram: TelegramEmulator, adapter: TelegramAdapter) -> None:
    """A flood wait is an error of one send, not a pause of the account."""
    telegram.flood(30, chat_id=42, times=None)
    forum = Place("telegram", "main", "group", str(FORUM))
    outcomes = await asyncio.gather(
        *(adapter.send(place, PART) for place in (ANN, forum, ANN, forum)), return_exceptions=True
    )

    assert [isinstance(outcome, SendError) for outcome in outcomes] == [True, False, True, False]


async def test_the_emulator_serves_another_process() -> None:
    """As its own process it can be told what happens and asked what happened."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.emulators.telegram", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    told = json.loads(await process.stdout.readline())
    taken = asyncio.Event()

    async def deliver(message: InboundMessage) -> Verdict:
        await bot.send(message.place, OutboundPart(plain=f"you said {message.text}"))
        taken.set()
        return Verdict.ACCEPTED

    bot = TelegramAdapter("main", told["token"], told["base_url"])
    async with httpx.AsyncClient(base_url=told["control"], trust_env=False) as control:
        await control.post("/say", json=[{"text": "hello"}])
        await bot.start(deliver)
        counts = (await control.post("/wait", json={"sent": 1, "confirmed": 1})).json()
        sent = (await control.get("/sent")).json()
        updates = (await control.get("/updates")).json()
    await bot.stop()
    process.terminate()

    assert await process.wait() == 0
    assert counts == {"met": True, "updates": 1, "delivered": 1, "confirmed": 1, "sent": 1}
    assert sent[0]["text"] == "you said hello"
    assert (updates[0]["deliveries"], updates[0]["confirmed"]) == (1, True)
