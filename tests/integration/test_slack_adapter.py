"""The Slack adapter receives: the real client library against an emulated Slack."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

import adapters.slack.intake as intake_module
import adapters.slack.receiving as receiving_module
from adapters.base import AdapterState, Sender
from adapters.slack import SlackAdapter
from gateway.keys import session_key
from tests.emulators.slack import SlackEmulator
from tests.emulators.slack_journal import Journal

BOUND = 5.0


@pytest.fixture
async def slack() -> AsyncIterator[SlackEmulator]:
    """A Slack that brings unconfirmed events again soon."""
    async with SlackEmulator() as emulator:
        emulator.ack_seconds, emulator.retry_delays = 0.2, (0.0, 0.1)
        yield emulator


@pytest.fixture
def journal() -> Journal:
    """Where messages go."""
    return Journal()


@pytest.fixture
async def adapter(slack: SlackEmulator) -> AsyncIterator[SlackAdapter]:
    """An adapter that is not started; stopped at the end."""
    made = SlackAdapter("main", slack.bot_token, slack.app_token, slack.base_url)
    yield made
    await made.stop()


async def test_messages_are_delivered_and_then_confirmed(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """What happened before the start comes too; nothing is confirmed before it was taken."""
    slack.ack_seconds = 10.0
    journal.held = {"before"}
    early = slack.say("before")
    await adapter.start(journal.deliver)
    assert (adapter.state, adapter.problem) == (AdapterState.CONNECTED, None)

    await slack.until(lambda: journal.tried)
    assert not early.acked
    journal.let_go.set()
    await slack.confirmed(early)
    later = slack.say("after")
    await slack.confirmed(later)

    assert journal.texts == ["before", "after"]
    assert (early.deliveries, early.acks) == (1, 1)


async def test_what_could_not_be_taken_comes_again(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """A failed delivery is not confirmed; Slack's retry is processed, under the same key, and confirmed."""
    journal.failing = {"hello"}
    event = slack.say("hello")
    await adapter.start(journal.deliver)
    await slack.until(lambda: len(journal.tried) == 2)
    assert not event.acked
    journal.failing = set()
    await slack.confirmed(event)

    assert event.deliveries >= 3
    assert {message.dedupe_key for message in journal.tried} == {"m:T1/D1:1790000001.000001"}
    assert journal.texts == ["hello"]


async def test_a_failed_delivery_holds_up_nobody(slack: SlackEmulator, adapter: SlackAdapter, journal: Journal) -> None:
    """Slack brings it again in its own time; other words and other chats go on."""
    journal.failing = {"one"}
    one, two, other = slack.say("one"), slack.say("two"), slack.say("other", channel="D2", user="U2")
    await adapter.start(journal.deliver)
    await slack.confirmed(two, other)
    assert not one.acked
    journal.failing = set()
    await slack.confirmed(one)

    assert sorted(journal.texts) == ["one", "other", "two"]


async def test_a_mention_that_comes_twice_has_one_key(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """As `message` and `app_mention`, and both again long after: one key, the same words each time."""
    await adapter.start(journal.deliver)
    event = slack.say("<@UBOT> deploy", channel="C1")
    twin = slack.events[-1]
    await slack.confirmed(event, twin)
    slack.repeat(event)
    slack.repeat(twin)
    await slack.until(lambda: event.acks == 2 and twin.acks == 2)

    assert event.payload["event_id"] != twin.payload["event_id"]
    assert journal.keys == {f"m:T1/C1:{event.ts}"}
    assert journal.texts == ["deploy"] * 4
    first, *others = journal.taken
    assert {replace(message, received_at=first.received_at) == first for message in others} == {True}


async def test_a_workspace_that_sends_only_mentions_is_heard(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """Some never send the `message` of a channel."""
    await adapter.start(journal.deliver)
    slack.say("<@UBOT> alone", channel="C1", mention_only=True)
    await slack.until(lambda: journal.taken)

    assert [(message.text, message.addressed) for message in journal.taken] == [("alone", True)]


async def test_names_are_looked_up_once(slack: SlackEmulator, adapter: SlackAdapter, journal: Journal) -> None:
    """Of people, of those they mention, and of channels."""
    await adapter.start(journal.deliver)
    for _ in range(3):
        event = slack.say("<@UBOT> ask <@U2>", channel="C1")
        await slack.confirmed(event)

    message = journal.taken[-1]
    assert (message.text, message.sender) == ("ask @Bob", Sender("U1", "Ann", "T1"))
    assert message.place.name == "#c1"
    asked = [(method, fields.get("user") or fields.get("channel")) for method, fields in slack.calls[2:]]
    assert sorted(asked) == [("conversations.info", "C1"), ("users.info", "U1"), ("users.info", "U2")]


async def test_names_that_cannot_be_learned_hold_nothing_up(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """They are decoration."""
    slack.fail("users.info", "refuse", error="missing_scope", times=None)
    slack.fail("conversations.info", "hang", times=None)
    await adapter.start(journal.deliver)
    event = slack.say("<@UBOT> hi", channel="C1")
    await slack.confirmed(event)

    assert (journal.taken[0].text, journal.taken[0].sender.name, journal.taken[0].place.name) == ("hi", "", None)


async def test_order_within_a_conversation_is_that_of_slack(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes in a burst in the wrong order is put right, each conversation for itself."""
    monkeypatch.setattr(intake_module, "LINGER_SECONDS", 0.5)
    slack.ack_seconds = 10.0
    await adapter.start(journal.deliver)
    slack.hold()
    for number in range(6):
        slack.say(f"a{number}", channel="D1")
        slack.say(f"b{number}", channel="C1", thread="1790000000.000001")
    slack.release(lambda events: events[::-1])
    await slack.until(lambda: len(journal.taken) == 12)

    assert [text for text in journal.texts if text[0] == "a"] == [f"a{number}" for number in range(6)]
    assert [text for text in journal.texts if text[0] == "b"] == [f"b{number}" for number in range(6)]


async def test_conversations_do_not_wait_for_each_other(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """A slow delivery in one thread holds back only that thread."""
    slack.ack_seconds = 10.0
    journal.held = {"a1"}
    await adapter.start(journal.deliver)
    for text, thread in (("a1", "1790000000.000001"), ("b1", "1790000000.000002"), ("a2", "1790000000.000001")):
        slack.say(text, channel="C1", thread=thread)
    await slack.until(lambda: journal.texts == ["b1"])
    journal.let_go.set()
    await slack.confirmed(*slack.events)

    assert journal.texts == ["b1", "a1", "a2"]


async def test_edits_and_deletes_come_as_such(slack: SlackEmulator, adapter: SlackAdapter, journal: Journal) -> None:
    """They are not second messages."""
    await adapter.start(journal.deliver)
    said = slack.say("good")
    edited = slack.edit(said.ts, "better")
    deleted = slack.delete(said.ts)
    await slack.until(lambda: deleted.acked and edited.acked and said.acked)

    assert [(message.kind, message.text, message.message_id) for message in journal.taken] == [
        ("message", "good", said.ts),
        ("edit", "better", said.ts),
        ("delete", "", said.ts),
    ]


async def test_commands_are_confirmed_with_nothing_to_show(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """A command has the place and the key that a message there would have; its confirmation is empty."""
    await adapter.start(journal.deliver)
    said, called = slack.say("hello"), slack.command("new deploy script")
    await slack.confirmed(said, called)

    keys = {
        session_key(message.place, message.sender.user_id, group_sessions_per_user=True, thread_sessions_per_user=False)
        for message in journal.taken
    }
    assert keys == {"agent:main:slack:dm:T1/D1"}
    assert {message.sender.user_id for message in journal.taken} == {"U1"}
    assert [(message.kind, message.text) for message in journal.taken if message.kind == "command"] == [
        ("command", "/new deploy script")
    ]
    assert called.answers in ([None], [{}])


async def test_a_command_that_could_not_be_taken_is_not_confirmed(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """Slack tells the person then that it did not work."""
    slack.ack_seconds = 10.0
    journal.failing = {"/stop"}
    await adapter.start(journal.deliver)
    called, later = slack.command("stop"), slack.say("later")
    await slack.until(lambda: later.acked and journal.tried)

    assert not called.acked


async def test_own_words_and_system_messages_are_confirmed_and_ignored(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """They block nothing; other bots are delivered, flagged."""
    await adapter.start(journal.deliver)
    slack.say("own", user="UBOT", bot_id="BBOT")
    slack.say("joined", channel="C1", subtype="channel_join")
    slack.event({"type": "reaction_added", "user": "U1", "item": {"type": "message"}})
    slack.event({"type": "brand_new_type"})
    slack.say("robot", channel="C1", user="U7", bot_id="B7")
    last = slack.say("talk")
    await slack.until(lambda: last.acked and all(event.acked for event in slack.events))

    assert [(message.text, message.sender.is_bot) for message in journal.taken] == [("robot", True), ("talk", False)]


async def test_stop_ends_at_once_and_twice_is_fine(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """Also while a delivery hangs; what was not taken stays with Slack."""
    journal.held = {"stuck"}
    event = slack.say("stuck")
    await adapter.start(journal.deliver)
    await slack.until(lambda: journal.tried)
    async with asyncio.timeout(BOUND):
        await adapter.stop()
        await adapter.stop()

    assert adapter.state is AdapterState.STOPPED
    assert not event.acked
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("slack")]


async def test_a_stopped_adapter_can_start_again(slack: SlackEmulator, adapter: SlackAdapter, journal: Journal) -> None:
    """A supervisor may restart it; starting twice is a mistake that is told."""
    await adapter.start(journal.deliver)
    with pytest.raises(RuntimeError, match="started already"):
        await adapter.start(journal.deliver)
    await adapter.stop()
    await adapter.start(journal.deliver)
    event = slack.say("again")
    await slack.confirmed(event)

    assert journal.texts == ["again"]


async def test_secrets_are_never_logged(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even with debugging on, and not when things go wrong."""
    caplog.set_level(logging.DEBUG)
    slack.links_work = False
    with capture_logs() as logs:
        await adapter.start(journal.deliver)
        slack.links_work = True
        event = slack.say("hello")
        await slack.confirmed(event)

    for secret in (slack.bot_token, slack.app_token, "ticket-"):
        assert secret not in caplog.text
        assert secret not in repr(logs)


async def test_a_receiver_that_ends_by_itself_says_so(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever started it can start it again."""

    async def broken(*_: object) -> None:
        raise LookupError("a mistake of ours")

    with monkeypatch.context() as patch:
        patch.setattr(receiving_module.Receiver, "run", broken)
        await adapter.start(journal.deliver)
        await slack.until(lambda: adapter.state is AdapterState.STOPPED)
        assert "a mistake of ours" in (adapter.problem or "")
    await adapter.stop()
    await adapter.start(journal.deliver)
    await slack.confirmed(slack.say("again"))

    assert journal.texts == ["again"]
