"""Whose a conversation in a group is on Discord and Slack, where threads differ from Telegram's topics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Elsewhere
from tests.emulators.discord import TEXT, THREAD, DiscordEmulator
from tests.emulators.slack import SlackEmulator
from tests.gateways import LocalGateway

BOUND = 30.0

Settings = Callable[..., Path]


@pytest.fixture
def settle(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Write the settings of one platform's account; locks of accounts are the test's own."""
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))

    def write(platform: str, account: dict[str, Any], owner: str, **more: Any) -> Path:
        settings = {
            "owner": {platform: [owner]},
            "web": {"port": 0},
            "platforms": {platform: {"enabled": True} | account},
        }
        (home / "config.yaml").write_text(yaml.safe_dump(settings | more), encoding="utf-8")
        return home

    return write


def owned(elsewhere: Elsewhere) -> dict[str, str]:
    """Whether each key's session is a person's or the room's."""
    rows = elsewhere("SELECT session_key, owner = room_id AS rooms FROM sessions ORDER BY rowid")
    return {row["session_key"].removeprefix("agent:main:"): "room" if row["rooms"] else "person" for row in rows}


@pytest.fixture
async def discord() -> AsyncIterator[DiscordEmulator]:
    """An emulated Discord."""
    async with DiscordEmulator() as emulator:
        yield emulator


async def asked(discord: DiscordEmulator, text: str, **how: Any) -> str:
    """Say something to the bot; returns its answer."""
    before = len(discord.sent)
    discord.say(text, mention=True, **how)
    await discord.until(lambda: len(discord.sent) > before, BOUND)
    return discord.sent[-1].text


@pytest.mark.parametrize("apart", ["by person", "together"])
async def test_a_discord_channel_by_person_and_its_threads_together(
    settle: Settings, discord: DiscordEmulator, elsewhere: Elsewhere, apart: str
) -> None:
    """Neither finds what the other said alone; in a thread and in a shared channel both find it."""
    account = {"token": discord.token, "api_url": discord.api_url, "gateway_url": discord.gateway_url}
    home = settle("discord", account | {"allowed_users": ["43"]}, "42", group_sessions_per_user=apart == "by person")
    bo = {"user": "43", "name": "Bo"}
    async with LocalGateway(home):
        await discord.until(lambda: discord.gateway.connected, BOUND)
        await asked(discord, "the zebra is in the attic")
        found = await asked(discord, "where is the zebra?", **bo)
        listed = await asked(discord, "/resume", **bo)
        await asked(discord, "the lion is in the cellar", channel=THREAD)
        in_thread = await asked(discord, "where is the lion?", channel=THREAD, **bo)
    assert ("attic" in found) is (apart == "together")
    assert ("attic" in listed) is (apart == "together")
    assert "cellar" in in_thread
    channel = {f"discord:group:{TEXT}": "room"}
    if apart == "by person":
        channel = {f"discord:group:{TEXT}:user=42": "person", f"discord:group:{TEXT}:user=43": "person"}
    assert owned(elsewhere) == channel | {f"discord:thread:{THREAD}": "room"}


@pytest.fixture
async def slack() -> AsyncIterator[SlackEmulator]:
    """An emulated Slack."""
    async with SlackEmulator() as emulator:
        yield emulator


async def posted(slack: SlackEmulator, text: str, **how: Any) -> tuple[str, str]:
    """Say something to the app in a channel; returns the answer, and the thread it came in."""
    before = len(slack.sent)
    slack.say(f"<@UBOT> {text}", channel="C1", **how)
    await slack.until(lambda: len(slack.sent) > before, BOUND)
    return slack.sent[-1].words, slack.sent[-1].thread or ""


@pytest.mark.parametrize("in_thread", ["yes", "no"])
async def test_a_slack_channel_answers_in_threads_that_are_shared_or_by_person_without(
    settle: Settings, slack: SlackEmulator, elsewhere: Elsewhere, in_thread: str
) -> None:
    """A thread is everybody's who reads it; where answers stand in the channel, each has their own conversation."""
    account = {"bot_token": slack.bot_token, "app_token": slack.app_token, "base_url": slack.base_url}
    home = settle("slack", account | {"allowed_users": ["U2"], "reply_in_thread": in_thread == "yes"}, "U1")
    async with LocalGateway(home):
        _, thread = await posted(slack, "the zebra is in the attic")
        beside, _ = await posted(slack, "where is the zebra?", user="U2")
        within = ""
        if thread:
            within, _ = await posted(slack, "where is the zebra?", user="U2", thread=thread)
    kinds = owned(elsewhere)
    assert len(kinds) == 2
    if in_thread == "yes":
        assert set(kinds.values()) == {"room"}
        assert "attic" in within
        assert all(key.startswith("slack:group:T1/C1:thread=") for key in kinds)
    else:
        assert kinds == {"slack:group:T1/C1:user=U1": "person", "slack:group:T1/C1:user=U2": "person"}
        assert "attic" not in beside
