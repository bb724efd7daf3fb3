"""Several Slack workspaces at once: accounts of their own, or one app that shares its sockets among them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from adapters.base import OutboundPart
from adapters.slack import SlackAdapter
from gateway.keys import session_key
from tests.emulators.slack import SlackEmulator
from tests.emulators.slack_journal import Journal


@pytest.fixture
async def slack() -> AsyncIterator[SlackEmulator]:
    """A Slack where the app is installed in two workspaces, and brings unconfirmed events again soon."""
    async with SlackEmulator() as emulator:
        emulator.ack_seconds, emulator.retry_delays = 0.2, (0.0, 0.1)
        emulator.add_workspace("T2", "xoxb-second", user="UBOT2", bot="BBOT2")
        yield emulator


async def test_two_workspaces_of_one_app_share_its_sockets(slack: SlackEmulator) -> None:
    """Any socket may bring an event of either; each goes to its own account, and is answered by it."""
    second = slack.workspaces["xoxb-second"]
    journals = {"main": Journal(), "work": Journal()}
    adapters = {
        "main": SlackAdapter("main", slack.bot_token, slack.app_token, slack.base_url),
        "work": SlackAdapter("work", "xoxb-second", slack.app_token, slack.base_url),
    }
    for account, adapter in adapters.items():
        await adapter.start(journals[account].deliver)
    for number in range(6):
        slack.say(f"first {number}", channel="C1")
        slack.say(f"second {number}", channel="C1", workspace=second)
    await slack.confirmed(*slack.events)
    for account, adapter in adapters.items():
        await adapter.send(journals[account].taken[0].place, OutboundPart(plain=account))
        await adapter.stop()

    assert sorted(journals["main"].texts) == [f"first {number}" for number in range(6)]
    assert sorted(journals["work"].texts) == [f"second {number}" for number in range(6)]
    assert all(event.deliveries == 1 for event in slack.events if not event.echo)
    assert {(sent.text, sent.team) for sent in slack.sent} == {("main", "T1"), ("work", "T2")}
    keys = {
        session_key(message.place, "U1", group_sessions_per_user=True, thread_sessions_per_user=False).split(":thread")[
            0
        ]
        for journal in journals.values()
        for message in journal.taken
    }
    assert keys == {"agent:main:slack:group:T1/C1", "agent:work:slack:group:T2/C1"}


async def test_a_workspace_that_nobody_serves_is_left_to_others(slack: SlackEmulator) -> None:
    """Its events are not confirmed here: another gateway may have a socket of the same app. It is told once."""
    journal = Journal()
    adapter = SlackAdapter("main", slack.bot_token, slack.app_token, slack.base_url)
    with capture_logs() as logs:
        await adapter.start(journal.deliver)
        foreign = slack.say("foreign", workspace=slack.workspaces["xoxb-second"])
        ours = slack.say("ours")
        await slack.until(lambda: ours.acked and foreign.deliveries > 1)
    assert (journal.texts, foreign.acked) == (["ours"], False)
    assert [entry["team"] for entry in logs if entry["event"] == "slack_workspace_not_served"] == ["T2"]

    late = Journal()
    other = SlackAdapter("work", "xoxb-second", slack.app_token, slack.base_url)
    await other.start(late.deliver)
    await slack.confirmed(foreign)
    await adapter.stop()
    await other.stop()

    assert late.texts == ["foreign"]


async def test_an_app_of_a_whole_organization(slack: SlackEmulator) -> None:
    """One account; chats are kept apart by the workspaces that events name, people are the organization's."""
    org = slack.add_workspace("T7", "xoxb-org", user="UORG", bot="BORG", enterprise="E1", org_wide=True)
    journal = Journal()
    adapter = SlackAdapter("org", "xoxb-org", slack.app_token, slack.base_url)
    await adapter.start(journal.deliver)
    event = slack.say("hello", workspace=org)
    await slack.confirmed(event)
    receipt = await adapter.send(journal.taken[0].place, OutboundPart(plain="hi"))
    await adapter.stop()

    (message,) = journal.taken
    assert (message.place.chat, message.sender.realm) == ("T7/D1", "E1")
    assert receipt.message_id == slack.sent[0].ts
