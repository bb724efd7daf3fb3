"""From a message on Discord to the answer there: the real client library, the whole gateway, an emulated server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from adapters.discord import connection
from tests.conftest import Elsewhere
from tests.emulators.discord import TEXT, THREAD, DiscordEmulator
from tests.gateways import LocalGateway

BOUND = 20.0


@pytest.fixture
async def discord() -> AsyncIterator[DiscordEmulator]:
    """An emulated Discord."""
    async with DiscordEmulator() as emulator:
        yield emulator


@pytest.fixture
def configured(home: Path, discord: DiscordEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one Discord account at the emulator, whose owner is Ann; locks of accounts are the test's own."""
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    account = {"enabled": True, "token": discord.token, "api_url": discord.api_url, "gateway_url": discord.gateway_url}
    settings = {"owner": {"discord": ["42"]}, "web": {"port": 0}, "platforms": {"discord": account}}
    (home / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return home


def heard_in(discord: DiscordEmulator, channel: str) -> list[str]:
    """What was sent to a channel, in order."""
    return [sent.text for sent in discord.sent if sent.channel == channel]


async def test_a_direct_message_is_stored_and_answered(
    configured: Path, discord: DiscordEmulator, elsewhere: Elsewhere
) -> None:
    """The plain case, with the recall agent's confirmation and a receipt."""
    direct = discord.dm()
    async with LocalGateway(configured):
        await discord.until(lambda: discord.gateway.connected, BOUND)
        discord.say("The deploy script is in tools/deploy.sh", channel=direct)
        await discord.until(lambda: discord.sent, BOUND)
    (answer,) = discord.sent
    assert (answer.channel, "tools/deploy.sh" in answer.text) == (direct, True)
    assert elsewhere("SELECT state, platform_message_id FROM outbox") == [
        {"state": "sent", "platform_message_id": answer.message_id}
    ]
    assert elsewhere("SELECT source, session_key FROM sessions") == [
        {"source": "discord", "session_key": f"agent:main:discord:dm:{direct}"}
    ]


async def test_a_room_is_answered_when_it_asks_and_a_thread_goes_on_by_itself(
    configured: Path, discord: DiscordEmulator, elsewhere: Elsewhere
) -> None:
    """In a thread whose conversation goes on, nobody has to mention the bot; what is not answered is not stored."""
    async with LocalGateway(configured):
        await discord.until(lambda: discord.gateway.connected, BOUND)
        discord.say("not for the bot")
        discord.say("not for the bot either", channel=THREAD)
        discord.say("The key is under the mat", mention=True)
        discord.say("The plan is to leave at noon", channel=THREAD, mention=True)
        await discord.until(lambda: len(discord.sent) == 2, BOUND)
        discord.say("The train is the 12:07", channel=THREAD)
        await discord.until(lambda: len(heard_in(discord, THREAD)) == 2, BOUND)
    assert len(heard_in(discord, TEXT)) == 1
    keys = [row["session_key"] for row in elsewhere("SELECT session_key FROM sessions ORDER BY session_key")]
    assert keys == [f"agent:main:discord:group:{TEXT}:user=42", f"agent:main:discord:thread:{THREAD}"]
    rows = elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
    assert sorted(row["content"] for row in rows) == [
        "The key is under the mat",
        "The plan is to leave at noon",
        "The train is the 12:07",
    ]


async def test_a_slash_command_acts_on_the_conversation_of_its_place(
    configured: Path, discord: DiscordEmulator, elsewhere: Elsewhere
) -> None:
    """It is listed, deferred, and answered in the channel like everything else."""
    async with LocalGateway(configured):
        await discord.until(lambda: discord.bots[discord.token].commands, BOUND)
        discord.say("The key is under the mat", mention=True)
        await discord.until(lambda: len(discord.sent) == 1, BOUND)
        call = discord.call("title", "Keys and mats")
        await discord.until(lambda: len(discord.sent) == 2 and call.text is not None, BOUND)
        stranger = discord.call("title", "Mine now", user="666")
        await discord.until(lambda: stranger.deleted, BOUND)
    assert (call.text, call.ephemeral) == ("`/title Keys and mats`", False)
    assert "Keys and mats" in heard_in(discord, TEXT)[1]
    assert elsewhere("SELECT title FROM sessions") == [{"title": "Keys and mats"}]
    assert {command["name"] for command in discord.bots[discord.token].commands} >= {"new", "title", "help", "stop"}


async def test_the_same_message_by_catch_up_and_live_is_one_row_one_turn_one_answer(
    configured: Path, discord: DiscordEmulator, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost session, a message while it was lost, one in the middle of the catch-up, and one told three times."""

    async def at_once(self: connection.GatewayClient, shard_id: int | None, *, initial: bool = False) -> None:
        del self, shard_id, initial

    monkeypatch.setattr(connection.GatewayClient, "before_identify_hook", at_once)
    direct = discord.dm()
    async with LocalGateway(configured):
        await discord.until(lambda: discord.gateway.connected, BOUND)
        discord.say("The first fact is red", channel=direct)
        await discord.until(lambda: len(discord.sent) == 1, BOUND)
        discord.gateway.forget()
        discord.gateway.abort()
        await discord.until(lambda: discord.gateway.connected == 0, BOUND)
        discord.say("The second fact is green", channel=direct)
        discord.fail("history", "delay", seconds=0.2)
        await discord.until(lambda: ("history", {"channel": direct}) in discord.calls, BOUND)
        discord.say("The third fact is blue", channel=direct, times=3)
        await discord.until(lambda: len(discord.sent) == 3, BOUND)
    assert len(elsewhere("SELECT id FROM inbox")) == 3
    assert len(elsewhere("SELECT id FROM turns")) == 3
    assert [row["content"].split()[1] for row in elsewhere("SELECT content FROM messages WHERE role = 'user'")] == [
        "first",
        "second",
        "third",
    ]
    assert len(discord.sent) == 3


async def test_an_answer_whose_receipt_was_lost_is_not_doubled(
    configured: Path, discord: DiscordEmulator, elsewhere: Elsewhere
) -> None:
    """The connection breaks after Discord has taken the answer; sent again, it is the same message."""
    async with LocalGateway(configured):
        await discord.until(lambda: discord.gateway.connected, BOUND)
        discord.fail("send", "drop", processed=True)
        discord.say("The key is under the mat", channel=discord.dm())
        await discord.until(lambda: [name for name, _ in discord.calls].count("send") == 2, BOUND)
    (answer,) = discord.sent
    assert elsewhere("SELECT state, platform_message_id FROM outbox") == [
        {"state": "sent", "platform_message_id": answer.message_id}
    ]


async def test_a_file_of_a_message_is_kept_and_its_words_are_found(
    configured: Path, discord: DiscordEmulator, elsewhere: Elsewhere
) -> None:
    """Fetched once the message is safe."""
    stored = discord.file(b"The door code is 4711", "door.txt", "text/plain")
    async with LocalGateway(configured):
        await discord.until(lambda: discord.gateway.connected, BOUND)
        discord.say("see this", channel=discord.dm(), attachments=[stored.facts])
        await discord.until(lambda: discord.sent, BOUND)
    (row,) = elsewhere("SELECT content FROM messages WHERE role = 'user'")
    assert "The door code is 4711" in row["content"]
    (link,) = elsewhere("SELECT name, problem FROM message_attachments")
    assert (link["name"], link["problem"]) == ("door.txt", None)


async def test_an_edit_and_a_deletion_reach_the_message_they_mean(
    configured: Path, discord: DiscordEmulator, elsewhere: Elsewhere
) -> None:
    """Its words are the new ones, and that it was taken away is noted at it."""
    async with LocalGateway(configured):
        await discord.until(lambda: discord.gateway.connected, BOUND)
        direct = discord.dm()
        number = discord.say("The key is under the mat", channel=direct)
        await discord.until(lambda: discord.sent, BOUND)
        discord.edit(number, "The key is in the pot")
        discord.delete(number)
        # What happens in one channel is taken in order.
        discord.say("The door is green", channel=direct)
        # The edit of a latest message is told as well, before or after this answer.
        await discord.until(lambda: any("door is green" in sent.text for sent in discord.sent), BOUND)
    (first, _) = elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
    assert first["content"] == "The key is in the pot"
    assert [row["kind"] for row in elsewhere("SELECT kind FROM message_versions ORDER BY id")] == ["edit", "delete"]


async def test_a_thread_that_was_deleted_while_the_gateway_was_down_loses_no_answer(
    configured: Path, discord: DiscordEmulator
) -> None:
    """Its channel is known from the store."""
    held = discord.fail("send", "limit", channel=THREAD, seconds=0.2, times=None)
    async with LocalGateway(configured):
        await discord.until(lambda: discord.gateway.connected, BOUND)
        discord.say("The plan is to leave at noon", channel=THREAD, mention=True)
        await discord.until(lambda: ("send", {"channel": THREAD}) in discord.calls, BOUND)
    held.times = 0
    discord.delete_thread(THREAD)
    async with LocalGateway(configured):
        await discord.until(lambda: len(heard_in(discord, TEXT)) == 2, BOUND)
    answer, note = heard_in(discord, TEXT)
    assert "leave at noon" in answer
    assert "thread does not exist any more" in note


async def test_an_answer_outlives_the_thread_that_it_was_for(
    configured: Path, discord: DiscordEmulator, elsewhere: Elsewhere
) -> None:
    """It goes to the channel, with a word about it; nothing is left over."""
    held = discord.fail("send", "limit", channel=THREAD, seconds=0.2)
    async with LocalGateway(configured):
        await discord.until(lambda: discord.gateway.connected, BOUND)
        discord.say("The plan is to leave at noon", channel=THREAD, mention=True)
        await discord.until(lambda: held.times == 0, BOUND)
        discord.delete_thread(THREAD)
        await discord.until(lambda: len(heard_in(discord, TEXT)) == 2, BOUND)
    answer, note = heard_in(discord, TEXT)
    assert "leave at noon" in answer
    assert "thread does not exist any more" in note
    assert {row["state"] for row in elsewhere("SELECT state FROM outbox")} == {"sent"}
    assert not elsewhere("SELECT 1 FROM routes")
