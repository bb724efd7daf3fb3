"""The gateway killed with SIGKILL at random instants while it shows answers that are being made, on every platform.

However often it is killed, an answer is one message in the end, and whole. A beginning may stay behind, or an answer
come twice, only where the platform takes no key for a send, and only as often as the store has counted a repeat of
unknown outcome there.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from tests import gateways
from tests.conftest import Elsewhere
from tests.crash.town import PLATFORMS, Town
from tests.gateways import GatewayProcess, eventually

WORDY = [sys.executable, str(Path(__file__).with_name("shown_gateway.py"))]
CHATS = range(101, 105)
KILLS = 6
#: Seconds between two questions on one platform, on average.
PAUSE = 1.6
RESENDS = "SELECT platform, SUM(resends) AS n FROM outbox GROUP BY platform"
SHOWN = "SELECT COUNT(*) AS n FROM outbox WHERE finishes IS NOT NULL"


class Questions(Town):
    """What is said are questions, and the whole answer to each ends with its number in brackets."""

    def __init__(self) -> None:
        super().__init__("question-{}", CHATS)
        self.slack.echoes = True

    async def answered(self) -> bool:
        """Whether everything was, but for turns that were killed three times, of which the person was told."""
        whole = {number for _, _, text in self.shown() for number in re.findall(r"\[(\d+)\]", text)}
        return len(self.said) - len(whole) <= self.told()


@pytest.mark.alone
@pytest.mark.timeout(280)
async def test_an_answer_that_is_shown_is_one_message_however_often_the_gateway_is_killed(
    home: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole, in its chat; what is left of unknown outcomes is counted, and is nothing where a key is taken."""
    monkeypatch.setattr(gateways, "COMMAND", WORDY)
    chance, town = random.Random(7), Questions()  # noqa: S311 - repeatable, no secret
    async with AsyncExitStack() as stack:
        for server in (town.telegram, town.slack, town.discord):
            await stack.enter_async_context(server)
        (home / "config.yaml").write_text(yaml.safe_dump(town.settings()), encoding="utf-8")
        gateway = GatewayProcess(home)
        async with gateway.running():
            # Discord's history is read of chats that are known.
            await town.discord.until(lambda: town.discord.gateway.connected, 30)
            for chat in CHATS:
                town.say("discord", chat)
            await eventually(town.answered, 60)
        async with asyncio.TaskGroup() as group:
            for platform in PLATFORMS:
                group.create_task(town.talk(platform, chance, PAUSE))
            for _ in range(KILLS):
                await gateway.start()
                await asyncio.sleep(chance.uniform(1.5, 5.0))
                await gateway.kill()
            town.stopped = True
        async with gateway.running():
            await eventually(town.answered, 120)
            assert await gateway.stop() == 0

    whole: Counter[int] = Counter()
    left: Counter[str] = Counter()
    for platform, chat, text in town.shown():
        for number in map(int, re.findall(r"question-(\d+)", text)):
            assert town.said[number] == (platform, chat), f"question-{number} was answered elsewhere"
            if text.endswith(f"[{number}]"):
                whole[number] += 1
            else:
                left[platform] += 1
    for number, count in whole.items():
        left[town.said[number][0]] += count - 1
    resends = {row["platform"]: row["n"] for row in elsewhere(RESENDS)}
    (shown,) = elsewhere(SHOWN)
    edits = sum(len(server.edits) for server in (town.telegram, town.slack, town.discord))
    sys.stdout.write(
        f"{KILLS} kills: {len(town.said)} questions, {shown['n']} answers shown while they were made, {edits} edits, "
        f"left behind or doubled {dict(left)}, unknown outcomes {resends}\n"
    )
    assert shown["n"] > KILLS, "hardly anything was shown: the test does not test it"
    assert left["discord"] == 0
    assert all(left[platform] <= resends[platform] for platform in ("telegram", "slack")), (left, resends)
    assert elsewhere("SELECT COUNT(*) AS n FROM messages WHERE role = 'user'") == [{"n": len(town.said)}]
    assert elsewhere("SELECT DISTINCT state FROM outbox") == [{"state": "sent"}]
