"""Threads on Slack: which conversation each is, in channels and direct chats, begun by people or by us."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.base import Gone, Place
from adapters.slack import SlackAdapter
from gateway.keys import session_key
from tests.emulators.slack import SlackEmulator
from tests.emulators.slack_journal import Journal

ANN = Place("slack", "main", "dm", "T1/D1")
ROOM = Place("slack", "main", "group", "T1/C1")


def key(place: Place, user: str = "U1") -> str:
    """Return the session key of what `user` says in a place."""
    return session_key(place, user, group_sessions_per_user=True, thread_sessions_per_user=False)


@pytest.fixture
async def slack() -> AsyncIterator[SlackEmulator]:
    """A Slack that brings unconfirmed events again soon."""
    async with SlackEmulator() as emulator:
        emulator.ack_seconds, emulator.retry_delays = 0.2, (0.0, 0.1)
        emulator.channel("D1")
        emulator.channel("C1")
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


async def test_assistant_threads_are_conversations_of_their_own(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """Slack tells of them once; a plain thread in a direct chat belongs to the chat."""
    await adapter.start(journal.deliver)
    plain = slack.say("plain")
    opened = slack.open_assistant()
    slack.say("in it", thread=opened.ts)
    slack.say("in the plain one", thread=plain.ts)
    await slack.until(lambda: len(journal.taken) == 3 and opened.acked)

    threads = {message.text: message.place.thread for message in journal.taken}
    assert threads == {"plain": "", "in it": opened.ts, "in the plain one": ""}


async def test_assistant_threads_are_known_again_after_a_restart(slack: SlackEmulator, journal: Journal) -> None:
    """Slack is asked what kind of thread it is, once for each."""
    root = slack.assistant_root()
    for text in ("one", "two"):
        adapter = SlackAdapter("main", slack.bot_token, slack.app_token, slack.base_url)
        await adapter.start(journal.deliver)
        for _ in range(2):
            event = slack.say(text, thread=root)
            await slack.confirmed(event)
        await adapter.stop()

    assert {message.place.thread for message in journal.taken} == {root}
    assert [method for method, _ in slack.calls].count("conversations.replies") == 2


async def test_the_kind_of_a_thread_is_not_guessed(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """While Slack cannot tell, the message is left with it; a redelivered one is not left waiting for ever."""
    slack.ack_seconds = 0.5
    root = slack.assistant_root()
    fault = slack.fail("conversations.replies", "refuse", status=503, times=None)
    await adapter.start(journal.deliver)
    first = slack.say("first", thread=root)
    await slack.confirmed(first)
    assert (first.deliveries, journal.taken[0].place.thread) == (2, "")

    fault.times = 0
    second = slack.say("second", thread=root)
    await slack.confirmed(second)
    assert (second.deliveries, journal.taken[1].place.thread) == (1, root)


async def test_threads_in_direct_chats_can_be_conversations(slack: SlackEmulator, journal: Journal) -> None:
    """By the setting, without asking Slack."""
    adapter = SlackAdapter("main", slack.bot_token, slack.app_token, slack.base_url, dm_threads=True)
    await adapter.start(journal.deliver)
    root = slack.say("root")
    slack.say("reply", thread=root.ts)
    await slack.until(lambda: len(journal.taken) == 2)
    await adapter.stop()

    assert [message.place.thread for message in journal.taken] == ["", root.ts]
    assert "conversations.replies" not in [method for method, _ in slack.calls]


async def test_the_place_of_a_post_is_the_place_of_its_thread(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """A post in a channel, the answer to it, and what is said to the answer are one conversation."""
    await adapter.start(journal.deliver)
    post = slack.say("<@UBOT> hello", channel="C1")
    await slack.confirmed(post)
    await adapter.send(journal.taken[0].place, adapter.render("hi")[0])
    reply = slack.say("thanks", channel="C1", thread=slack.sent[0].thread)
    await slack.confirmed(reply)

    assert {message.place for message in journal.taken} == {Place("slack", "main", "group", "T1/C1", post.ts)}


@pytest.mark.parametrize("reply_in_thread", [True, False])
async def test_an_opened_thread_is_the_place_of_its_messages(
    slack: SlackEmulator, journal: Journal, *, reply_in_thread: bool
) -> None:
    """What `open_thread` returns has the key of what is said there; the bot's own post is no talk."""
    adapter = SlackAdapter("main", slack.bot_token, slack.app_token, slack.base_url, reply_in_thread=reply_in_thread)
    await adapter.start(journal.deliver)
    place = await adapter.open_thread(ROOM, "The <deploy> script\n& more")
    slack.say("here", channel="C1", thread=slack.sent[0].ts)
    await slack.until(lambda: journal.taken)
    await adapter.stop()

    (said,) = journal.taken
    assert slack.sent[0].text == "The &lt;deploy&gt; script &amp; more"
    assert said.place == place
    assert said.addressed
    assert key(place) == key(said.place) == f"agent:main:slack:group:T1/C1:thread={slack.sent[0].ts}"


@pytest.mark.parametrize("dm_threads", [True, False])
async def test_a_thread_opened_in_a_direct_chat(slack: SlackEmulator, journal: Journal, *, dm_threads: bool) -> None:
    """It is a place of its own only where threads there are; else what is said there belongs to the chat."""
    adapter = SlackAdapter("main", slack.bot_token, slack.app_token, slack.base_url, dm_threads=dm_threads)
    await adapter.start(journal.deliver)
    place = await adapter.open_thread(ANN, " ")
    slack.say("here", thread=slack.sent[0].ts)
    await slack.until(lambda: journal.taken)
    await adapter.stop()

    assert slack.sent[0].text == "Conversation"
    assert journal.taken[0].place == place
    assert place.thread == (slack.sent[0].ts if dm_threads else "")
    assert key(place) == key(journal.taken[0].place)


async def test_a_thread_that_cannot_be_opened(slack: SlackEmulator, adapter: SlackAdapter, journal: Journal) -> None:
    """The error is that of a send."""
    await adapter.start(journal.deliver)
    slack.channel("C2", archived=True)
    with pytest.raises(Gone):
        await adapter.open_thread(Place("slack", "main", "group", "T1/C2"), "Work")
