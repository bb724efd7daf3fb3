"""The gateway killed with SIGKILL at random instants while people write to it on Telegram, Slack and Discord at once.

Each platform keeps in its own way what nobody took: Telegram until it is confirmed, Slack by retrying, Discord in its
history. Everything must be stored once and answered where it was said. A double is allowed only where the platform
takes no key for a send, and only as often as the store has counted a repeat of unknown outcome there.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.conftest import Elsewhere
from tests.crash.killing import SOAK_MINUTES, Killing
from tests.crash.town import PLATFORMS, Town
from tests.gateways import GatewayProcess, eventually

CHATS = range(101, 107)
RESENDS = "SELECT platform, SUM(resends) AS n FROM outbox GROUP BY platform"
GIVEN_UP = "SELECT m.content FROM turns AS t JOIN messages AS m ON m.id = t.input_message_id WHERE t.state = 'given_up'"


class Facts(Town):
    """What is said are facts, and each is answered with its number."""

    def __init__(self) -> None:
        super().__init__("fact-{} is kept", CHATS)

    async def talk_within(self, platform: str, chance: random.Random, plan: Plan) -> None:
        """Let people say things until stopped, as long as not too much is open."""
        while not self.stopped:
            heard = len(self.telegram.sent) + len(self.slack.sent) + len(self.discord.sent)
            if len(self.said) - heard >= plan.most_open:
                await asyncio.sleep(0.1)
                continue
            self.say(platform, chance.choice(CHATS))
            await asyncio.sleep(chance.uniform(0, 2 * plan.pause))

    def answers(self) -> Iterable[tuple[int, tuple[str, int]]]:
        """Yield each number that was answered, and where, as often as it was."""
        for platform, chat, text in self.shown():
            for number in re.findall(r"fact-(\d+)", text):
                yield int(number), (platform, chat)

    async def answered(self) -> bool:
        """Whether everything was, but for turns that were killed three times, of which the person was told."""
        return len(set(self.said) - {number for number, _ in self.answers()}) <= self.told()


@dataclass(frozen=True, slots=True)
class Plan:
    """A run. pause: seconds between two messages on one platform, on average. patience: for each thing waited for.

    most_open: while so much is not answered, nothing more is said; a long run on a slow machine must not end with more
    than can be worked off.
    """

    killing: Killing
    pause: float
    patience: float
    most_open: float = math.inf


@pytest.mark.alone
@pytest.mark.timeout(280)
async def test_a_gateway_killed_thirty_times_answers_everybody_on_every_platform(
    home: Path, elsewhere: Elsewhere
) -> None:
    """Stored once, answered in its own chat; doubles only where no key is taken and the outcome was unknown."""
    killing = Killing(30, random.Random(3))  # noqa: S311 - repeatable, no secret
    await _killed(home, elsewhere, Plan(killing, pause=0.15, patience=90))


@pytest.mark.soak
async def test_a_gateway_killed_five_hundred_times_answers_everybody_on_every_platform(
    home: Path, elsewhere: Elsewhere
) -> None:
    """The same with 500 kills."""
    killing = Killing(500, random.Random(6), minutes=SOAK_MINUTES)  # noqa: S311 - repeatable, no secret
    kills = await _killed(home, elsewhere, Plan(killing, pause=0.8, patience=600, most_open=150))
    assert kills == 500, "all held, but the machine was too slow for more kills in this time"


async def _killed(home: Path, elsewhere: Elsewhere, plan: Plan) -> int:
    """Kill the gateway under load, let the last one end the work, look at what there is; returns how many kills."""
    chance, town = plan.killing.chance, Facts()
    async with AsyncExitStack() as stack:
        for server in (town.telegram, town.slack, town.discord):
            await stack.enter_async_context(server)
        (home / "config.yaml").write_text(yaml.safe_dump(town.settings()), encoding="utf-8")
        gateway = GatewayProcess(home, patience=plan.patience)
        async with gateway.running():
            # Discord's history is read of chats that are known.
            await town.discord.until(lambda: town.discord.gateway.connected, plan.patience)
            for platform in PLATFORMS:
                for chat in CHATS:
                    town.say(platform, chat)
            await eventually(town.answered, plan.patience)
        async with asyncio.TaskGroup() as group:
            for platform in PLATFORMS:
                group.create_task(town.talk_within(platform, chance, plan))
            kills = await plan.killing.run(gateway)
            town.stopped = True
        async with gateway.running():
            await eventually(town.answered, plan.patience)
            assert await gateway.stop() == 0

    doubles, resends = _doubles(town), _resends(elsewhere)
    sys.stdout.write(f"{kills} kills: {len(town.said)} messages, doubled {doubles}, unknown outcomes {resends}\n")
    assert doubles["discord"] == 0
    assert all(doubles[platform] <= resends[platform] for platform in ("telegram", "slack")), (doubles, resends)
    _check_store(town, elsewhere)
    return kills


def _doubles(town: Facts) -> dict[str, int]:
    """How many answers came again on each platform; every one of them where its message was."""
    times: Counter[int] = Counter()
    for number, where in town.answers():
        assert town.said[number] == where, f"fact-{number} was answered elsewhere"
        times[number] += 1
    doubles = dict.fromkeys(PLATFORMS, 0)
    for number, count in times.items():
        doubles[town.said[number][0]] += count - 1
    return doubles


def _resends(elsewhere: Elsewhere) -> dict[str, int]:
    return {row["platform"]: row["n"] for row in elsewhere(RESENDS)}


def _check_store(town: Facts, elsewhere: Elsewhere) -> None:
    """Everything is stored once, what was not answered was given up in words, and the file is whole."""
    stored = [row["content"] for row in elsewhere("SELECT content FROM messages WHERE role = 'user'")]
    assert Counter(stored) == Counter(f"fact-{number} is kept" for number in town.said)
    given_up = {row["content"] for row in elsewhere(GIVEN_UP)}
    answered = {number for number, _ in town.answers()}
    assert given_up == {f"fact-{number} is kept" for number in town.said if number not in answered}
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
