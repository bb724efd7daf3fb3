"""From a message on Slack to the answer there: the real client library, the whole gateway, an emulated server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Elsewhere
from tests.emulators.slack import SlackEmulator
from tests.gateways import LocalGateway

BOUND = 20.0


@pytest.fixture
async def slack() -> AsyncIterator[SlackEmulator]:
    """A Slack that brings unconfirmed events again soon."""
    async with SlackEmulator() as emulator:
        emulator.ack_seconds, emulator.retry_delays = 1.0, (0.0, 0.1)
        yield emulator


@pytest.fixture
def configured(home: Path, slack: SlackEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one Slack account at the emulator, whose owner is Ann; locks of accounts are the test's own."""
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    write(home, slack)
    return home


def write(home: Path, slack: SlackEmulator, **more: Any) -> None:
    """Write the settings; `more` are further ones of the account."""
    account = {"enabled": True, "bot_token": slack.bot_token, "app_token": slack.app_token, "base_url": slack.base_url}
    settings = {"owner": {"slack": ["U1"]}, "web": {"port": 0}, "platforms": {"slack": account | more}}
    (home / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")


async def settled(slack: SlackEmulator, sent: int) -> None:
    """Every event confirmed and so many messages posted."""
    await slack.until(lambda: len(slack.sent) >= sent and all(event.acked for event in slack.events), BOUND)


async def test_a_direct_message_is_stored_and_answered(
    configured: Path, slack: SlackEmulator, elsewhere: Elsewhere
) -> None:
    """The plain case, with the recall agent's confirmation and a receipt."""
    async with LocalGateway(configured):
        slack.say("The deploy script is in tools/deploy.sh")
        await settled(slack, 1)
    (answer,) = slack.sent
    assert (answer.channel, answer.thread, "tools/deploy.sh" in answer.words) == ("D1", None, True)
    assert elsewhere("SELECT state, platform_message_id FROM outbox") == [
        {"state": "sent", "platform_message_id": answer.ts}
    ]
    assert elsewhere("SELECT source, session_key FROM sessions") == [
        {"source": "slack", "session_key": "agent:main:slack:dm:T1/D1"}
    ]


async def test_a_command_where_the_app_is_no_member_is_answered_to_the_person(
    configured: Path, slack: SlackEmulator, elsewhere: Elsewhere
) -> None:
    """By the address that came with the command, which nobody else sees and no record holds."""
    slack.channel("C9", joined=False)
    async with LocalGateway(configured):
        slack.command("help", channel="C9")
        await slack.until(lambda: slack.responses, BOUND)
    ((number, answer),) = slack.responses
    assert (number, answer["response_type"], "/title" in answer["text"]) == ("1", "ephemeral", True)
    assert not slack.sent
    assert elsewhere("SELECT state, platform_message_id FROM outbox") == [
        {"state": "sent", "platform_message_id": "1.trigger/1"}
    ]
    assert not [row for row in elsewhere("SELECT payload FROM inbox") if "/responses/" in str(row)]


async def test_one_post_however_often_delivered_is_one_row_one_turn_one_answer(
    configured: Path, slack: SlackEmulator, elsewhere: Elsewhere
) -> None:
    """As `message` and `app_mention`, again long after, and again after a restart."""
    async with LocalGateway(configured):
        post = slack.say("<@UBOT> The key is under the mat", channel="C1")
        mention = slack.events[-1]
        await settled(slack, 1)
        slack.repeat(post)
        slack.repeat(mention)
        await slack.until(lambda: post.acks == 2 and mention.acks == 2, BOUND)
    async with LocalGateway(configured):
        slack.repeat(post)
        await slack.until(lambda: post.acks == 3, BOUND)
        slack.say("And the garage is open")
        await settled(slack, 2)
    assert len(elsewhere("SELECT id FROM inbox")) == 2
    assert len(elsewhere("SELECT id FROM turns")) == 2
    assert [row["content"] for row in elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")] == [
        "The key is under the mat",
        "And the garage is open",
    ]
    assert len(slack.sent) == 2


async def test_a_post_is_answered_in_its_thread_and_the_thread_goes_on(
    configured: Path, slack: SlackEmulator, elsewhere: Elsewhere
) -> None:
    """Nobody has to mention the bot there; what is not for it is not stored."""
    async with LocalGateway(configured):
        slack.say("not for the bot", channel="C1")
        post = slack.say("<@UBOT> The plan is to leave at noon", channel="C1")
        await settled(slack, 1)
        slack.say("The train is the 12:07", channel="C1", thread=post.ts)
        await settled(slack, 2)
    assert {sent.thread for sent in slack.sent} == {post.ts}
    assert elsewhere("SELECT session_key FROM sessions") == [
        {"session_key": f"agent:main:slack:group:T1/C1:thread={post.ts}"}
    ]
    assert len(elsewhere("SELECT id FROM messages WHERE role = 'user'")) == 2


async def test_commands_act_on_the_conversation_of_their_place(
    configured: Path, slack: SlackEmulator, elsewhere: Elsewhere
) -> None:
    """The slash command in a direct chat, the typed one behind the mention in a thread; a stranger's does nothing."""
    async with LocalGateway(configured):
        slack.say("The key is under the mat")
        post = slack.say("<@UBOT> The plan is to leave at noon", channel="C1")
        await settled(slack, 2)
        slack.command("title Keys and mats")
        slack.say("<@UBOT> /title Plans", channel="C1", thread=post.ts)
        await settled(slack, 4)
        slack.command("title Mine now", user="U666")
        await settled(slack, 4)
    titles = elsewhere("SELECT title, session_key FROM sessions ORDER BY title")
    assert [(row["title"], row["session_key"]) for row in titles] == [
        ("Keys and mats", "agent:main:slack:dm:T1/D1"),
        ("Plans", f"agent:main:slack:group:T1/C1:thread={post.ts}"),
    ]
    assert {(sent.channel, sent.thread) for sent in slack.sent[2:]} == {("D1", None), ("C1", post.ts)}


async def test_settings_decide_where_channels_are_answered(
    configured: Path, slack: SlackEmulator, elsewhere: Elsewhere
) -> None:
    """Without threads of its own, each person has a conversation in the channel."""
    write(configured, slack, reply_in_thread=False)
    async with LocalGateway(configured):
        slack.say("<@UBOT> The plan is to leave at noon", channel="C1")
        await settled(slack, 1)
    assert slack.sent[0].thread is None
    assert elsewhere("SELECT session_key FROM sessions") == [{"session_key": "agent:main:slack:group:T1/C1:user=U1"}]


async def test_an_answer_waits_as_long_as_slack_says(
    configured: Path, slack: SlackEmulator, elsewhere: Elsewhere
) -> None:
    """It is sent once, after the wait; other chats are not held up."""
    slack.flood(1.5, channel="D1")
    async with LocalGateway(configured):
        slack.say("The key is under the mat")
        slack.say("<@UBOT> The plan is to leave at noon", channel="C1")
        await settled(slack, 2)
    assert [sent.channel for sent in slack.sent] == ["C1", "D1"]
    assert {row["state"] for row in elsewhere("SELECT state FROM outbox")} == {"sent"}


async def test_what_is_said_while_the_gateway_is_away_is_answered(
    configured: Path, slack: SlackEmulator, elsewhere: Elsewhere
) -> None:
    """Slack keeps an event for minutes only; afterwards it is asked for, in chats and threads that are known."""
    async with LocalGateway(configured):
        slack.say("The key is under the mat")
        post = slack.say("<@UBOT> The plan is to leave at noon", channel="C1")
        await settled(slack, 2)
    slack.say("The garage is open")
    slack.say("The train is the 12:07", channel="C1", thread=post.ts)
    slack.give_up()
    async with LocalGateway(configured):
        await slack.until(lambda: len(slack.sent) == 4, BOUND)
    rows = elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
    assert sorted(row["content"] for row in rows) == [
        "The garage is open",
        "The key is under the mat",
        "The plan is to leave at noon",
        "The train is the 12:07",
    ]
    assert {(sent.channel, sent.thread) for sent in slack.sent[2:]} == {("D1", None), ("C1", post.ts)}
    assert len(elsewhere("SELECT id FROM turns")) == 4
