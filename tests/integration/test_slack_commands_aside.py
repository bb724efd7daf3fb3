"""Slash commands on Slack where the app is no member: answered by the address that comes with each command."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.base import Gone, InboundMessage, OutboundPart, Place, Refused, RetryLater, UnknownOutcome, Verdict
from adapters.slack import SlackAdapter, responses
from tests.emulators.slack import SlackEmulator

ELSEWHERE = Place("slack", "main", "group", "T1/C9")


@pytest.fixture
async def slack() -> AsyncIterator[SlackEmulator]:
    """A Slack with a channel that the app is not in."""
    async with SlackEmulator() as emulator:
        emulator.channel("C9", joined=False)
        yield emulator


@pytest.fixture
def taken() -> list[InboundMessage]:
    """What was delivered."""
    return []


@pytest.fixture
async def adapter(slack: SlackEmulator, taken: list[InboundMessage]) -> AsyncIterator[SlackAdapter]:
    """A started adapter."""

    async def deliver(message: InboundMessage) -> Verdict:
        taken.append(message)
        return Verdict.ACCEPTED

    made = SlackAdapter("main", slack.bot_token, slack.app_token, slack.base_url)
    await made.start(deliver)
    yield made
    await made.stop()


async def asked(slack: SlackEmulator, user: str = "U1", channel: str = "C9") -> str:
    """Let somebody give a command; returns what its answer names."""
    event = slack.command("help", channel=channel, user=user)
    await slack.confirmed(event)
    return str(event.payload["trigger_id"])


def part(text: str = "the answer", answers: str | None = None) -> OutboundPart:
    """A part of an answer; further ones name no message."""
    return OutboundPart(text, {"markdown": text}, reply_to=answers)


async def test_an_answer_goes_to_the_person_who_asked_in_all_its_parts(
    slack: SlackEmulator, adapter: SlackAdapter
) -> None:
    """Whoever asked in between; what would notify others is only shown."""
    anns, _ = await asked(slack), await asked(slack, "U2")
    receipts = [await adapter.send(ELSEWHERE, part("<!channel> one", anns)), await adapter.send(ELSEWHERE, part("two"))]

    assert [(number, fields["text"]) for number, fields in slack.responses] == [
        ("1", "&lt;!channel&gt; one"),
        ("1", "two"),
    ]
    assert all(fields["response_type"] == "ephemeral" for _, fields in slack.responses)
    assert [receipt.message_id for receipt in receipts] == [f"{anns}/1", f"{anns}/2"]


async def test_an_answer_that_names_no_command_is_given_to_nobody_where_several_asked(
    slack: SlackEmulator, adapter: SlackAdapter
) -> None:
    """It might be meant for the other one."""
    await asked(slack)
    await adapter.send(ELSEWHERE, part())
    other = Place("slack", "main", "group", "T1/C8")
    slack.channel("C8", joined=False)
    await asked(slack, "U1", "C8")
    await asked(slack, "U2", "C8")
    with pytest.raises(Gone):
        await adapter.send(other, part())

    assert len(slack.responses) == 1


async def test_a_command_is_answered_five_times_and_then_no_more(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """As Slack allows it; what is left over is visibly undeliverable."""
    answers = await asked(slack)
    for _ in range(responses.USES):
        await adapter.send(ELSEWHERE, part(answers=answers))
    with pytest.raises(Gone):
        await adapter.send(ELSEWHERE, part(answers=answers))

    assert len(slack.responses) == responses.USES


async def test_an_old_command_is_not_answered_so(
    slack: SlackEmulator, adapter: SlackAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor after a restart, when nothing is known of it."""
    monkeypatch.setattr(responses, "SECONDS", 0.0)
    with pytest.raises(Gone):
        await adapter.send(ELSEWHERE, part(answers=await asked(slack)))

    assert not slack.responses


async def test_only_addresses_of_slack_are_asked(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """Whatever the event says."""
    event = slack.command("help", channel="C9", response_url="http://127.0.0.1:1/elsewhere")
    await slack.confirmed(event)
    with pytest.raises(Gone):
        await adapter.send(ELSEWHERE, part(answers=str(event.payload["trigger_id"])))


@pytest.mark.parametrize(("status", "error"), [(404, Gone), (500, UnknownOutcome), (429, RetryLater), (400, Refused)])
async def test_what_slack_says_to_it_is_told_like_any_other_send(
    slack: SlackEmulator, adapter: SlackAdapter, status: int, error: type[Exception]
) -> None:
    """Used up, in trouble, too often, refused."""
    answers = await asked(slack)
    slack.fail("response", "refuse", status=status)
    with pytest.raises(error):
        await adapter.send(ELSEWHERE, part(answers=answers))


async def test_a_connection_that_breaks_leaves_it_open_whether_it_was_sent(
    slack: SlackEmulator, adapter: SlackAdapter
) -> None:
    """It is not repeated by the library."""
    answers = await asked(slack)
    fault = slack.fail("response", "drop", times=2)
    with pytest.raises(UnknownOutcome):
        await adapter.send(ELSEWHERE, part(answers=answers))

    assert fault.times == 1


async def test_a_member_posts_as_always(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """Where all can read it."""
    slack.channel("C1")
    answers = await asked(slack, channel="C1")
    await adapter.send(Place("slack", "main", "group", "T1/C1"), part(answers=answers))

    assert ([sent.channel for sent in slack.sent], slack.responses) == (["C1"], [])


async def test_buttons_and_dialogs_are_confirmed_and_nothing_else(
    slack: SlackEmulator, adapter: SlackAdapter, taken: list[InboundMessage]
) -> None:
    """We show none; those of others' messages are no talk, and unconfirmed they would look broken."""
    del adapter
    around = {"team": {"id": "T1"}, "user": {"id": "U1"}, "trigger_id": "1.2"}
    events = [
        slack.inject({"type": kind, **around, **more}, kind="interactive")
        for kind, more in (
            ("block_actions", {"actions": [{"action_id": "yes"}]}),
            ("view_submission", {"view": {"callback_id": "form"}}),
            ("shortcut", {"callback_id": "short"}),
        )
    ]
    await slack.confirmed(*events)

    assert [event.deliveries for event in events] == [1, 1, 1]
    assert taken == []
