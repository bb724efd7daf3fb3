"""What was said on Discord while the gateway was away: the whole gateway, stopped and started, and killed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.discord import intake
from gateway import presence
from tests.conftest import Elsewhere
from tests.emulators.discord import THREAD, DiscordEmulator
from tests.gateways import GatewayProcess, LocalGateway, eventually

BOUND = 20.0


@pytest.fixture
async def discord() -> AsyncIterator[DiscordEmulator]:
    """An emulated Discord."""
    async with DiscordEmulator() as emulator:
        yield emulator


def configure(home: Path, discord: DiscordEmulator, **more: Any) -> Path:
    """Write the settings of one Discord account, whose owner is Ann."""
    account = {"enabled": True, "token": discord.token, "api_url": discord.api_url, "gateway_url": discord.gateway_url}
    settings = {"owner": {"discord": ["42"]}, "web": {"port": 0}, "platforms": {"discord": account | more}}
    (home / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return home


@pytest.fixture(autouse=True)
def locks_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks of accounts are the test's own."""
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))


async def test_what_was_said_while_the_gateway_was_down_is_answered_once(
    home: Path, discord: DiscordEmulator, elsewhere: Elsewhere
) -> None:
    """Killed in the middle of everything: direct chats and threads that go on are caught up, in order."""
    configure(home, discord)
    direct = discord.dm()
    gateway = GatewayProcess(home)
    async with gateway.running():
        await discord.until(lambda: discord.gateway.connected, BOUND)
        discord.say("The first fact is red", channel=direct)
        discord.say("The plan is to leave at noon", channel=THREAD, mention=True)
        await discord.until(lambda: len(discord.sent) == 2, BOUND)
        await gateway.kill()
    discord.say("The second fact is blue", channel=direct)
    discord.say("The third fact is green", channel=direct)
    discord.say("The train is the 12:07", channel=THREAD)
    async with gateway.running():
        await discord.until(lambda: len(discord.sent) == 5, BOUND)
        await gateway.stop()
    rows = elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
    facts = [row["content"] for row in rows if "fact" in row["content"]]
    assert facts == ["The first fact is red", "The second fact is blue", "The third fact is green"]
    assert len(rows) == len(discord.sent) == 5


async def test_chatter_that_was_ignored_is_not_answered_late(
    home: Path, discord: DiscordEmulator, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came while the account was served, so the next start does not ask for it, whatever is answered then."""
    monkeypatch.setattr(presence, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(presence, "SETTLED_SECONDS", 0.05)
    monkeypatch.setattr(intake, "_CLOCKS_SECONDS", 0.0)
    configure(home, discord)
    async with LocalGateway(home):
        await discord.until(lambda: discord.gateway.connected, BOUND)
        discord.say("The key is under the mat", mention=True)
        await discord.until(lambda: len(discord.sent) == 1, BOUND)
        discord.say("The chatter is about the weather")
        said = time.time() + 0.1

        async def served() -> bool:
            (sign,) = elsewhere("SELECT value FROM state_meta WHERE key = 'account:discord/main:last_seen'") or [
                {"value": "0"}
            ]
            return float(sign["value"]) > said

        await eventually(served)
    discord.say("The missed fact is yellow")
    configure(home, discord, groups="always")
    async with LocalGateway(home):
        await discord.until(lambda: len(discord.sent) == 2, BOUND)
    rows = elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
    assert [row["content"] for row in rows] == ["The key is under the mat", "The missed fact is yellow"]
