"""The Slack adapter sends: the real client library against an emulated Slack."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import adapters.slack.client as client_module
from adapters.base import (
    Gone,
    OutboundPart,
    Place,
    Refused,
    RetryLater,
    SendError,
    UnknownOutcome,
)
from adapters.slack import SlackAdapter
from adapters.slack.connection import SENDS_AT_ONCE
from gateway.keys import session_key
from tests.emulators.slack import SlackEmulator
from tests.emulators.slack_journal import Journal

BOUND = 5.0
ANN = Place("slack", "main", "dm", "T1/D1")
ROOM = Place("slack", "main", "group", "T1/C1")
PART = OutboundPart(plain="hello", payload={"markdown": "**hello**"})


def calls(slack: SlackEmulator, method: str = "chat.postMessage") -> list[dict[str, Any]]:
    """Return the calls of a method that reached the server."""
    return [fields for name, fields in slack.calls if name == method]


def key(place: Place, user: str = "U1") -> str:
    """Return the session key of what `user` says in a place."""
    return session_key(place, user, group_sessions_per_user=True, thread_sessions_per_user=False)


@pytest.fixture
async def slack() -> AsyncIterator[SlackEmulator]:
    """A Slack that knows Ann's direct chat and a channel with one post."""
    async with SlackEmulator() as emulator:
        emulator.channel("D1")
        emulator.channel("C1").posts["1790000000.000001"] = {"ts": "1790000000.000001", "user": "U1"}
        yield emulator


@pytest.fixture
def journal() -> Journal:
    """What was received."""
    return Journal()


@pytest.fixture
async def adapter(slack: SlackEmulator, journal: Journal) -> AsyncIterator[SlackAdapter]:
    """A started adapter."""
    made = SlackAdapter("main", slack.bot_token, slack.app_token, slack.base_url)
    await made.start(journal.deliver)
    yield made
    await made.stop()


async def test_a_part_arrives_with_its_formatting(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """What `render` made is what Slack takes; the receipt names the message; links are not unfolded."""
    (part,) = adapter.render("**bold** [docs](https://example.org)")
    receipt = await adapter.send(ANN, part)

    (sent,) = slack.sent
    assert (receipt.message_id, receipt.note) == (sent.ts, None)
    assert (sent.channel, sent.thread, sent.text) == ("D1", None, None)
    assert sent.markdown == "**bold** [docs](https://example.org)"
    (fields,) = calls(slack)
    assert (fields["unfurl_links"], fields["unfurl_media"]) == (False, False)


async def test_every_place_is_answered_where_it_is(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """Direct chat, assistant thread, post, thread: each answer goes where the words came from."""
    opened = slack.open_assistant()
    for text, channel, thread in (
        ("direct", "D1", None),
        ("assistant", "D1", opened.ts),
        ("post", "C1", None),
        ("thread", "C1", "1790000000.000001"),
    ):
        slack.say(text, channel=channel, thread=thread)
    await slack.until(lambda: len(journal.taken) == 4)
    for message in journal.taken:
        await adapter.send(message.place, OutboundPart(plain=message.text))

    post = next(message for message in journal.taken if message.text == "post")
    assert {sent.words: (sent.channel, sent.thread) for sent in slack.sent} == {
        "direct": ("D1", None),
        "assistant": ("D1", opened.ts),
        "post": ("C1", post.message_id),
        "thread": ("C1", "1790000000.000001"),
    }


@pytest.mark.parametrize("text", ["x < y & z " * 1400, "😀" * 15_000, "```py\n" + "print(1)\n" * 2000 + "```"])
async def test_long_answers_arrive_whole(slack: SlackEmulator, adapter: SlackAdapter, text: str) -> None:
    """No part is refused, and nothing is missing."""
    for part in adapter.render(text):
        await adapter.send(ANN, part)

    shown = "".join(sent.words.replace("&lt;", "<") for sent in slack.sent)
    assert shown.replace("```\n", "").replace("```py\n", "").replace("```", "") == text.replace("```py\n", "").replace(
        "```", ""
    )
    assert all(sent.markdown is not None for sent in slack.sent)


@pytest.mark.parametrize("error", ["invalid_blocks", "msg_blocks_too_long", "no_text", "invalid_arguments"])
async def test_refused_formatting_goes_as_plain_text(slack: SlackEmulator, adapter: SlackAdapter, error: str) -> None:
    """The words matter more; nothing in them is taken for formatting or for a mention."""
    slack.fail("chat.postMessage", "refuse", error=error, formatted_only=True)
    (part,) = adapter.render("**see** <!channel> & <@U2>")
    receipt = await adapter.send(ANN, part)

    (sent,) = slack.sent
    assert (sent.text, sent.markdown) == ("**see** &lt;!channel&gt; &amp; &lt;@U2&gt;", None)
    assert receipt.message_id == sent.ts
    assert (calls(slack)[1]["mrkdwn"], calls(slack)[1]["link_names"], calls(slack)[1]["parse"]) == (
        False,
        False,
        "none",
    )


async def test_a_long_part_goes_as_plain_text_in_several_messages(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """In order, each within the limit of plain text, complete; the receipt is the first one's."""
    slack.fail("chat.postMessage", "refuse", error="msg_too_long", formatted_only=True, times=None)
    (part,) = adapter.render("a < b & c " * 900)
    receipt = await adapter.send(ANN, part)

    assert len(slack.sent) == 4
    assert "".join((sent.text or "").replace("&lt;", "<").replace("&amp;", "&") for sent in slack.sent) == part.plain
    assert receipt.message_id == slack.sent[0].ts


async def test_a_half_sent_plain_form_goes_on_where_it_stopped(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """A wait in the middle repeats nothing when the part is sent again."""
    slack.fail("chat.postMessage", "refuse", error="invalid_blocks", formatted_only=True, times=None)
    part = OutboundPart("word " * 2000, {"markdown": "x" * 100}, idempotency_key="tl7")
    slack.flood(1.0)
    fault = slack.faults[-1]
    fault.times = 0
    slack.max_text = 4000

    async def interrupt() -> None:
        await slack.until(lambda: len(slack.sent) == 1)
        fault.times = 1

    interruption = asyncio.create_task(interrupt())
    slack.fail("chat.postMessage", "delay", seconds=0.1, times=2)
    with pytest.raises(RetryLater):
        await adapter.send(ANN, part)
    await interruption
    sent_before = len(slack.sent)
    await adapter.send(ANN, part)

    assert 0 < sent_before < 3
    assert "".join(sent.words for sent in slack.sent) == part.plain


async def test_text_that_slack_finds_longer_than_we_do_goes_in_smaller_pieces(
    slack: SlackEmulator, adapter: SlackAdapter
) -> None:
    """Whatever it counts."""
    slack.max_text = 1000
    part = OutboundPart(plain="word " * 800)
    await adapter.send(ANN, part)

    assert "".join(sent.words for sent in slack.sent) == part.plain
    slack.max_text = 10
    with pytest.raises(Refused, match="msg_too_long"):
        await adapter.send(ANN, part)


async def test_a_wait_is_passed_on(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """It is the one that Slack names, for this chat; nothing was sent, and the call was made once."""
    slack.flood(7)
    with pytest.raises(RetryLater) as caught:
        await adapter.send(ANN, PART)

    assert (caught.value.delay, caught.value.whole_account) == (7.0, False)
    assert (slack.sent, len(calls(slack))) == ([], 1)
    await adapter.send(ANN, PART)
    assert len(slack.sent) == 1


@pytest.mark.parametrize("told", ["", "soon", "-3"])
async def test_a_wait_without_a_proper_time_is_a_wait(slack: SlackEmulator, adapter: SlackAdapter, told: str) -> None:
    """Some seconds, then."""
    slack.fail("chat.postMessage", "refuse", status=429, headers={"Retry-After": told})
    with pytest.raises(RetryLater) as caught:
        await adapter.send(ANN, PART)

    assert 0 < caught.value.delay < 60


@pytest.mark.parametrize("processed", [False, True])
async def test_a_connection_lost_in_the_middle_is_unknown(
    slack: SlackEmulator, adapter: SlackAdapter, *, processed: bool
) -> None:
    """Whether Slack took it cannot be told, and is not; above all it is not posted again behind our back."""
    slack.fail("chat.postMessage", "drop", processed=processed)
    with pytest.raises(UnknownOutcome):
        await adapter.send(ANN, PART)

    assert len(slack.sent) == int(processed)
    assert len(calls(slack)) == 1


@pytest.mark.parametrize(
    "fault",
    [
        {"action": "refuse", "status": 500},
        {"action": "refuse", "status": 502, "processed": True},
        {"action": "refuse", "error": "internal_error"},
        {"action": "refuse", "error": "fatal_error"},
        {"action": "garbage"},
    ],
)
async def test_an_answer_that_tells_nothing_is_unknown(
    slack: SlackEmulator, adapter: SlackAdapter, fault: dict[str, Any]
) -> None:
    """Server errors and garbage do not say whether the message went out; nor does Slack, at times."""
    slack.fail("chat.postMessage", **fault)
    with pytest.raises(UnknownOutcome):
        await adapter.send(ANN, PART)


async def test_no_connection_means_not_sent(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """Without a server nothing can have left; nor can it through something in between that lets nothing pass."""
    slack.fail("chat.postMessage", "refuse", status=404)
    with pytest.raises(RetryLater):
        await adapter.send(ANN, PART)
    await slack.stop()
    with pytest.raises(RetryLater):
        await adapter.send(ANN, PART)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("invalid_auth", "platforms.slack.bot_token"),
        ("token_revoked", "platforms.slack.bot_token"),
        ("missing_scope", "chat:write"),
        ("message_limit_exceeded", "workspace"),
    ],
)
async def test_an_account_that_is_closed_to_us_keeps_its_answers(
    slack: SlackEmulator, adapter: SlackAdapter, error: str, words: str
) -> None:
    """They wait, all of the account, until somebody mends it."""
    slack.fail("chat.postMessage", "refuse", error=error, more={"needed": "chat:write"})
    with pytest.raises(RetryLater, match=words) as caught:
        await adapter.send(ANN, PART)

    assert caught.value.whole_account
    assert caught.value.delay >= 30


async def test_a_channel_that_is_closed_to_us_is_gone(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """Unknown, archived, left: no further try can help, and plain text is not tried."""
    slack.channel("C2", archived=True)
    slack.channel("C3", joined=False)
    for channel in ("C2", "C3", "C4"):
        with pytest.raises(Gone) as caught:
            await adapter.send(Place("slack", "main", "group", f"T1/{channel}"), PART)
        assert not caught.value.thread_only
        assert caught.value.moved_to is None

    assert len(calls(slack)) == 3


async def test_a_deleted_root_is_gone_but_its_channel_is_not(adapter: SlackAdapter) -> None:
    """So that the gateway can answer in the channel and say why."""
    with pytest.raises(Gone) as caught:
        await adapter.send(Place("slack", "main", "group", "T1/C1", "1790000000.000002"), PART)

    assert caught.value.thread_only


async def test_a_thread_that_slack_swallows_is_noted(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """Where Slack silently posts to the channel, the receipt says so."""
    slack.swallows_threads = True
    receipt = await adapter.send(Place("slack", "main", "group", "T1/C1", "1790000000.000001"), PART)

    assert "into the channel" in (receipt.note or "")
    assert receipt.thread_gone


async def test_what_slack_will_never_take_is_refused(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """Another try with the same part is no use; the sentence says why."""
    slack.fail("chat.postMessage", "refuse", error="restricted_action_read_only_channel", times=None)
    with pytest.raises(Refused, match="read-only"):
        await adapter.send(ROOM, PART)
    with pytest.raises(Refused, match="<team>/<channel>"):
        await adapter.send(Place("slack", "main", "dm", "D1"), PART)


async def test_typing_is_shown_in_assistant_threads_only_and_never_fails(
    slack: SlackEmulator, adapter: SlackAdapter
) -> None:
    """It is decoration: no place, no server, no matter."""
    root = slack.assistant_root()
    await adapter.typing(Place("slack", "main", "dm", "T1/D1", root))
    (fields,) = calls(slack, "assistant.threads.setStatus")
    assert (fields["channel_id"], fields["thread_ts"]) == ("D1", root)
    assert fields["status"]

    await adapter.typing(ANN)
    await adapter.typing(Place("slack", "main", "group", "T1/C1", "1790000000.000001"))
    assert len(calls(slack, "assistant.threads.setStatus")) == 1
    await adapter.typing(Place("slack", "main", "dm", "nowhere", "1.2"))
    await slack.stop()
    await adapter.typing(Place("slack", "main", "dm", "T1/D1", root))
    await adapter.stop()
    await adapter.typing(Place("slack", "main", "dm", "T1/D1", root))


async def test_stop_ends_sends_in_flight(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """Those on their way end as unknown, those that found no place as not sent; nothing hangs, nothing starts anew."""
    slack.fail("chat.postMessage", "hang", times=None)
    sends = [asyncio.create_task(adapter.send(ANN, PART)) for _ in range(SENDS_AT_ONCE + 4)]
    await slack.until(lambda: len(calls(slack)) == SENDS_AT_ONCE)
    async with asyncio.timeout(BOUND):
        await adapter.stop()
        outcomes = await asyncio.gather(*sends, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [UnknownOutcome] * SENDS_AT_ONCE + [RetryLater] * 4
    assert len(calls(slack)) == SENDS_AT_ONCE
    with pytest.raises(RetryLater):
        await adapter.send(ANN, PART)


async def test_stop_lets_a_send_end(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """A send that only needs a moment gets its receipt."""
    slack.fail("chat.postMessage", "delay", seconds=0.2)
    send = asyncio.create_task(adapter.send(ANN, PART))
    await slack.until(lambda: calls(slack))
    await adapter.stop()

    assert (await send).message_id == slack.sent[0].ts


async def test_a_send_is_bounded_in_time(
    slack: SlackEmulator, adapter: SlackAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that never answers leaves the outcome unknown."""
    monkeypatch.setattr(client_module, "SEND_SECONDS", 0.2)
    slack.fail("chat.postMessage", "hang")
    with pytest.raises(UnknownOutcome, match="in time"):
        await adapter.send(ANN, PART)


async def test_one_chat_in_trouble_does_not_stop_others(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """A wait is an error of one send, not a pause of the account."""
    slack.flood(30, channel="D1", times=None)
    outcomes = await asyncio.gather(
        *(adapter.send(place, PART) for place in (ANN, ROOM, ANN, ROOM)), return_exceptions=True
    )

    assert [isinstance(outcome, SendError) for outcome in outcomes] == [True, False, True, False]
