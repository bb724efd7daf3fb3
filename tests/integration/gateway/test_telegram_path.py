"""From a message on Telegram to the answer there: the real client library, the whole gateway, an emulated server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.agents.base import AgentContext, AgentEvent, Final
from tests.conftest import Elsewhere
from tests.emulators.telegram import TelegramEmulator
from tests.gateways import LocalGateway, telegram_home
from tests.unit.gateway_core.fakes import FakeAgent


def texts(telegram: TelegramEmulator) -> list[str]:
    """What was sent, in order."""
    return [sent.text for sent in telegram.sent]


async def settled(telegram: TelegramEmulator, sent: int) -> None:
    """Every update confirmed and so many messages sent."""
    await telegram.until(
        lambda: len(telegram.sent) >= sent and all(update.confirmed for update in telegram.updates.values()), 20
    )


async def test_a_message_is_stored_answered_and_confirmed(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """The plain case, with the recall agent's confirmation."""
    async with LocalGateway(configured):
        telegram.say("The deploy script is in tools/deploy.sh")
        await settled(telegram, 1)
    (answer,) = telegram.sent
    assert "tools/deploy.sh" in answer.text
    assert (answer.chat_id, answer.thread_id, answer.reply_to) == (42, None, None)
    (row,) = elsewhere("SELECT state, platform_message_id FROM outbox")
    assert (row["state"], row["platform_message_id"]) == ("sent", str(answer.message_id))
    assert elsewhere("SELECT state FROM inbox") == [{"state": "done"}]


async def test_one_message_however_often_delivered_is_one_row_one_turn_one_answer(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """Three deliveries, a restart between the second and the third."""
    async with LocalGateway(configured):
        first = telegram.say("The key is under the mat")
        await settled(telegram, 1)
        body = {name: value for name, value in telegram.updates[first].body.items() if name != "update_id"}
        telegram.inject(body)
        await settled(telegram, 1)
    # As if the confirmation had never arrived: the same update, with its number, waits again.
    telegram.updates[first].confirmed = False
    telegram.bots[telegram.token].waiting.append(first)
    async with LocalGateway(configured):
        telegram.say("And the garage is open")
        await settled(telegram, 2)
    assert telegram.updates[first].deliveries == 2
    assert len(elsewhere("SELECT id FROM inbox")) == 2
    assert len(elsewhere("SELECT id FROM turns")) == 2
    assert [row["content"] for row in elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")] == [
        "The key is under the mat",
        "And the garage is open",
    ]
    assert len(telegram.sent) == 2


async def test_five_forms_of_places_are_four_sessions_and_answers_go_back_exactly(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """General plain and General as a reply are one; a topic, a plain group's reply and a private topic are others."""
    forum: dict[str, Any] = {"chat_id": -100, "chat_type": "supergroup", "forum": True}
    group: dict[str, Any] = {"chat_id": -200, "chat_type": "supergroup"}
    async with LocalGateway(configured):
        telegram.say("@gatebot one in General", **forum)
        await settled(telegram, 1)
        telegram.say("@gatebot two in General", reply_thread=999, **forum)
        await settled(telegram, 2)
        telegram.say("@gatebot three in the topic", topic=17, **forum)
        await settled(telegram, 3)
        telegram.say("@gatebot four in a group", reply_thread=5, **group)
        await settled(telegram, 4)
        telegram.say("five in a private topic", topic=17)
        await settled(telegram, 5)
    assert [(sent.chat_id, sent.thread_id) for sent in telegram.sent] == [
        (-100, None),
        (-100, None),
        (-100, 17),
        (-200, None),
        (42, 17),
    ]
    keys = [row["session_key"] for row in elsewhere("SELECT session_key FROM sessions ORDER BY started_at, rowid")]
    assert keys == [
        "agent:main:telegram:group:-100:user=42",
        "agent:main:telegram:group:-100:thread=17",
        "agent:main:telegram:group:-200:user=42",
        "agent:main:telegram:dm:42:thread=17",
    ]


async def test_a_group_is_answered_when_mentioned_replied_to_or_commanded(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """As a reply to the message; what is said among people is not stored."""
    group: dict[str, Any] = {"chat_id": -200, "chat_type": "supergroup"}
    async with LocalGateway(configured):
        telegram.say("just among us", **group)
        telegram.say("The plan is B @gatebot", **group)
        await settled(telegram, 1)
        telegram.say("/whoami@gatebot", **group)
        await settled(telegram, 2)
        telegram.say("/whoami@otherbot", **group)
        ours = {"message_id": telegram.sent[0].message_id, "from": {"id": 1000, "is_bot": True, "first_name": "Gate"}}
        reply = {**ours, "date": 1, "chat": {"id": -200, "type": "supergroup", "title": "The room"}, "text": "x"}
        telegram.say("And the plan after that is C", reply_to_message=reply, **group)
        await settled(telegram, 3)
    assert [sent.reply_to for sent in telegram.sent] == [2, 4, 7]
    said = [row["content"] for row in elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")]
    assert said == ["The plan is B", "And the plan after that is C"]
    assert len(elsewhere("SELECT id FROM inbox")) == 3


async def test_strangers_leave_no_trace(configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere) -> None:
    """Their messages are confirmed to the platform and forgotten; they get no answer."""
    async with LocalGateway(configured):
        telegram.say("let me in", chat_id=66, user_id=66)
        telegram.say("/status", chat_id=66, user_id=66)
        telegram.say("The tea is ready")
        await settled(telegram, 1)
    assert {sent.chat_id for sent in telegram.sent} == {42}
    for table in ("inbox", "places", "sessions"):
        assert len(elsewhere(f"SELECT 1 FROM {table}")) == 1  # noqa: S608 - our names
    assert elsewhere("SELECT * FROM identities WHERE user_id = '66'") == []


async def test_flood_control_is_waited_out(configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere) -> None:
    """The answer comes after the time that Telegram named; another chat is not held up."""
    telegram_home(configured, telegram.base_url, telegram.token, people={"colleague": {"telegram": ["43"]}})
    telegram.flood(2, chat_id=42)
    async with LocalGateway(configured):
        telegram.say("one for the flood")
        await telegram.until(lambda: not any(fault.times for fault in telegram.faults))
        telegram.say("another chat", chat_id=43, user_id=43)
        await settled(telegram, 2)
    assert [sent.chat_id for sent in telegram.sent] == [43, 42]
    (row,) = elsewhere(
        "SELECT attempts, resends FROM outbox AS o JOIN places AS p ON p.id = o.place_id WHERE chat = '42'"
    )
    assert (row["attempts"], row["resends"]) == (2, 0)


@pytest.mark.parametrize("processed", [True, False])
async def test_a_connection_that_breaks_while_sending_is_an_unknown_outcome_sent_once_more(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere, *, processed: bool
) -> None:
    """Whether Telegram had taken it or not: the answer is there, and a double is counted."""
    telegram.fail("sendMessage", "drop", processed=processed)
    async with LocalGateway(configured):
        telegram.say("The moon is full")
        await settled(telegram, 1 + processed)
    assert len(telegram.sent) == 1 + processed
    assert len(set(texts(telegram))) == 1
    (row,) = elsewhere("SELECT state, resends FROM outbox")
    assert (row["state"], row["resends"]) == ("sent", 1)


async def test_an_outage_of_the_platform_is_sat_out(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """What was said meanwhile is fetched, answered and confirmed when it is back; nothing is doubled."""
    async with LocalGateway(configured):
        telegram.say("Before the outage")
        await settled(telegram, 1)
        port = telegram.port
        await telegram.stop()
        telegram.say("During the outage")
        await telegram.start(port)
        await settled(telegram, 2)
    assert len(telegram.sent) == 2
    assert len(elsewhere("SELECT id FROM inbox")) == 2


async def test_formatting_that_is_refused_is_left_out_rather_than_the_words(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """The answer arrives as plain text."""
    telegram.fail(
        "sendMessage", "refuse", formatted_only=True, times=None, description="Bad Request: can't parse entities"
    )
    async with LocalGateway(configured):
        telegram.say("/help")
        await settled(telegram, 1)
    assert telegram.sent[0].entities == []
    assert "/status" in telegram.sent[0].text
    assert [row["state"] for row in elsewhere("SELECT state FROM outbox")] == ["sent"]


async def test_a_topic_that_was_deleted_loses_no_answer(configured: Path, telegram: TelegramEmulator) -> None:
    """It comes to the chat itself, with a word about where it belonged."""
    forum: dict[str, Any] = {"chat_id": -100, "chat_type": "supergroup", "forum": True}
    telegram.fail("sendMessage", "refuse", description="Bad Request: message thread not found", chat_id=-100)
    async with LocalGateway(configured):
        telegram.say("@gatebot The shelf is blue", topic=17, **forum)
        await settled(telegram, 2)
    answer, word = telegram.sent
    assert "shelf is blue" in answer.text
    assert "topic that is gone" in word.text
    assert {sent.thread_id for sent in telegram.sent} == {None}


async def test_a_long_answer_arrives_whole_and_in_order_also_after_flood_control_in_the_middle(
    configured: Path, telegram: TelegramEmulator, monkeypatch: pytest.MonkeyPatch, elsewhere: Elsewhere
) -> None:
    """Several parts, each with its own receipt; the one that had to wait keeps its place."""
    words = [f"word{number:04}" for number in range(1500)]
    agent = FakeAgent()

    async def play(_context: AgentContext) -> AsyncIterator[AgentEvent]:
        yield Final(" ".join(words))

    agent.play = play
    monkeypatch.setattr("gateway.workshop.make_agent", lambda _settings: agent)
    async with LocalGateway(configured):
        telegram.say("all of them")
        await settled(telegram, 1)
        telegram.flood(1)
        await settled(telegram, 4)
    assert [word for sent in telegram.sent for word in sent.text.split()] == words
    rows = elsewhere("SELECT part, parts, platform_message_id, attempts FROM outbox ORDER BY part")
    assert [row["part"] for row in rows] == [1, 2, 3, 4]
    assert [row["platform_message_id"] for row in rows] == [str(sent.message_id) for sent in telegram.sent]


async def test_an_update_that_nobody_understands_blocks_nothing(configured: Path, telegram: TelegramEmulator) -> None:
    """It is confirmed and logged; the next one is answered."""
    async with LocalGateway(configured):
        telegram.inject({"message": {"message_id": "x", "chat": []}})
        telegram.say("The kettle is on")
        await settled(telegram, 1)
    assert "kettle" in telegram.sent[0].text
