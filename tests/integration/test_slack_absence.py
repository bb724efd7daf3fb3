"""What is said on Slack while nobody listens: the real client library asks an emulated Slack for it afterwards."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

import adapters.slack.absence as absence_module
import adapters.slack.catching as catching_module
import adapters.slack.receiving as receiving_module
from adapters.base import CatchesUp, OutboundPart, Place
from adapters.slack import SlackAdapter
from tests.emulators.slack import SlackEmulator
from tests.emulators.slack_journal import Journal

ANN = Place("slack", "main", "dm", "T1/D1")


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all waits be short."""
    monkeypatch.setattr(catching_module, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(receiving_module, "backoff", lambda failures: 0.01 * failures)


@pytest.fixture
async def slack() -> AsyncIterator[SlackEmulator]:
    """A Slack."""
    async with SlackEmulator() as emulator:
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


def asked(slack: SlackEmulator, method: str = "conversations.history") -> list[str]:
    """Return the channels that were asked about, in order."""
    return [str(fields["channel"]) for name, fields in slack.calls if name == method]


async def test_what_was_missed_is_taken_in_once_and_before_anything_new(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """In the chat, under a post, in a thread that was begun meanwhile; what was known already comes under its key."""
    known = slack.say("known")
    post = slack.say("<@UBOT> known post", channel="C1")
    slack.say("missed in the chat")
    slack.say("missed in the thread", channel="C1", thread=post.ts)
    begun = slack.say("<@UBOT> missed post", channel="C1")
    slack.say("missed below it", channel="C1", thread=begun.ts)
    slack.say("own", user="UBOT", bot_id="BBOT")
    slack.give_up()
    assert isinstance(adapter, CatchesUp)
    adapter.resume_from({ANN: known.ts, Place("slack", "main", "group", "T1/C1", post.ts): post.ts})
    slack.fail("conversations.history", "delay", seconds=0.2)
    slack.say("new")
    await adapter.start(journal.deliver)
    await slack.until(lambda: len(journal.keys) == 5)

    assert sorted(set(journal.texts)) == [
        "missed below it",
        "missed in the chat",
        "missed in the thread",
        "missed post",
        "new",
    ]
    in_chat = [message.text for message in journal.taken if message.place == ANN]
    assert in_chat[:2] == ["missed in the chat", "new"]
    places = {message.text: (message.place.chat, message.place.thread) for message in journal.taken}
    assert places["missed in the thread"] == ("T1/C1", post.ts)
    assert places["missed below it"] == places["missed post"] == ("T1/C1", begun.ts)
    keys = {message.text: message.dedupe_key for message in journal.taken}
    assert keys["missed post"] == f"m:T1/C1:{begun.ts}"


async def test_nothing_is_asked_that_was_surely_taken_in(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """A chat where nothing was stored for long is asked from the last life sign on; clocks may differ a little."""
    adapter.resume_from({ANN: "1000000000.000000"}, since=1_790_000_400.0)
    slack.channel("D1")
    await adapter.start(journal.deliver)
    await slack.until(lambda: asked(slack))

    (fields,) = [fields for name, fields in slack.calls if name == "conversations.history"]
    assert fields["oldest"] == "1790000100.000000"


async def test_without_a_past_nothing_is_asked(slack: SlackEmulator, adapter: SlackAdapter, journal: Journal) -> None:
    """A new account begins with what comes."""
    adapter.resume_from({}, None)
    await adapter.start(journal.deliver)
    await slack.confirmed(slack.say("first"))

    assert asked(slack) == []


async def test_many_messages_come_in_pages(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order; of very many, the newest."""
    monkeypatch.setattr(catching_module, "PAGE", 10)
    for number in range(70):
        slack.say(f"n{number}")
    slack.give_up()
    adapter.resume_from({ANN: "1000000000.000000"})
    await adapter.start(journal.deliver)
    await slack.until(lambda: len(journal.taken) == 50)

    assert journal.texts == [f"n{number}" for number in range(20, 70)]


async def test_a_channel_that_cannot_be_asked_does_not_keep_the_others(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """One is gone, one is in trouble for a while, one must wait; all that is there is taken in."""
    for channel in ("D1", "D2"):
        slack.say(f"missed in {channel}", channel=channel)
    slack.give_up()
    slack.fail("conversations.history", "refuse", channel="D1", status=500)
    slack.flood(0.1, method="conversations.history", channel="D2")
    places = [Place("slack", "main", "dm", f"T1/{channel}") for channel in ("D1", "D2", "D3")]
    adapter.resume_from(dict.fromkeys(places, "1000000000.000000"))
    with capture_logs() as logs:
        await adapter.start(journal.deliver)
        await slack.until(lambda: len(journal.taken) == 2)

    assert sorted(asked(slack)) == ["D1", "D1", "D2", "D2", "D3"]
    assert [entry["reason"] for entry in logs if entry["event"] == "slack_not_caught_up"] == ["channel_not_found"]


async def test_what_could_not_be_taken_is_asked_for_again(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """Nothing else would bring it."""
    journal.failing = {"missed"}
    slack.say("missed")
    slack.give_up()
    adapter.resume_from({ANN: "1000000000.000000"})
    await adapter.start(journal.deliver)
    await slack.until(lambda: len(journal.tried) == 1)
    journal.failing = set()
    await slack.until(lambda: journal.texts == ["missed"])


async def test_live_events_do_not_wait_for_ever(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are safe with Slack only for minutes."""
    monkeypatch.setattr(absence_module, "HOLD_SECONDS", 0.1)
    slack.channel("D1")
    slack.fail("conversations.history", "hang", times=None)
    adapter.resume_from({ANN: "1000000000.000000"})
    await adapter.start(journal.deliver)
    await slack.confirmed(slack.say("new"))

    assert journal.texts == ["new"]


async def test_a_long_outage_is_made_good_without_a_restart(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Places are known from what came before; after a short one Slack brings everything by itself."""
    slack.epoch = int(time.time())
    await adapter.start(journal.deliver)
    await slack.confirmed(slack.say("before"))
    await slack.close_sockets()
    await slack.until(lambda: slack.opened == 2 and slack.sockets)
    assert asked(slack) == []

    monkeypatch.setattr(absence_module, "GAP_SECONDS", 0.0)
    port = slack.port
    await slack.stop()
    slack.say("missed")
    slack.give_up()
    await slack.start(port)
    await slack.until(lambda: "missed" in journal.texts)
    assert list(dict.fromkeys(journal.texts)) == ["before", "missed"]

    receipt = await adapter.send(ANN, OutboundPart(plain="both"))
    assert receipt.message_id == slack.sent[0].ts


async def test_a_message_of_the_past_that_cannot_be_read_is_set_aside(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """The others are taken in."""
    slack.say("odd", files=[17])
    slack.say("missed")
    slack.give_up()
    adapter.resume_from({ANN: "1000000000.000000"})
    with capture_logs() as logs:
        await adapter.start(journal.deliver)
        await slack.until(lambda: journal.texts == ["missed"])

    assert [entry["event"] for entry in logs].count("slack_event_set_aside") == 1
    assert asked(slack) == ["D1"]
