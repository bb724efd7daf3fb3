"""One emulated platform with its people, as a process beside the gateway that is measured.

    python -m benchmarks.crowd telegram|slack|discord

Prints one JSON line: the accounts, as the settings of the platform take them. Then, for each line `RATE SECONDS` on its
standard input, lets 50 people say something to 5 bots, so often a second in all and at random instants, waits until
everything is answered (or ANSWER_SECONDS after the end), and prints one JSON line: how much was `said`, and the `waits`
in seconds from the instant that a message was due until its answer was there. Ends with its input.

Each message is a fact of its own, which the answer repeats; that is how the two are matched.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace

from tests.emulators.discord import TOKEN, DiscordEmulator
from tests.emulators.slack import SlackEmulator
from tests.emulators.telegram import TelegramEmulator

__all__ = ["ANSWER_SECONDS", "BOTS", "PEOPLE", "PLATFORMS"]

BOTS = 5
PEOPLE = 50
ANSWER_SECONDS = 30.0
_LOOK_SECONDS = 0.05


class Platform(ABC):
    """A server for each bot. accounts: what the settings say of each; filled by `start`."""

    def __init__(self) -> None:
        self.accounts: list[dict[str, str]] = []

    @abstractmethod
    async def start(self) -> None:
        """Listen."""

    @abstractmethod
    def say(self, bot: int, person: int, text: str) -> None:
        """Let a person say something to a bot in their direct chat."""

    @abstractmethod
    def answers(self) -> Iterator[tuple[str, float]]:
        """Yield the words that were sent since the last call, and when each arrived."""


class Telegram(Platform):
    """Bot API servers."""

    def __init__(self) -> None:
        super().__init__()
        self._servers = [TelegramEmulator() for _ in range(BOTS)]
        self._seen = [0] * BOTS

    async def start(self) -> None:
        """Listen; each bot has a token of its own."""
        for number, server in enumerate(self._servers):
            token = f"{1001 + number}:emulated"
            server.add_bot(token, 1001 + number, f"gate{number}bot")
            await server.start()
            self.accounts.append({"token": token, "base_url": server.base_url})

    def say(self, bot: int, person: int, text: str) -> None:
        """Queue an update."""
        token = self.accounts[bot]["token"]
        self._servers[bot].say(text, chat_id=person, user_id=person, name=f"Person {person}", token=token)

    def answers(self) -> Iterator[tuple[str, float]]:
        """What the bots sent."""
        for number, server in enumerate(self._servers):
            new, self._seen[number] = server.sent[self._seen[number] :], len(server.sent)
            yield from ((sent.text, sent.at) for sent in new)


class Slack(Platform):
    """Workspaces."""

    def __init__(self) -> None:
        super().__init__()
        self._servers = [SlackEmulator() for _ in range(BOTS)]
        self._seen = [0] * BOTS

    async def start(self) -> None:
        """Listen; each is a workspace with an app of its own."""
        for number, server in enumerate(self._servers):
            tokens = {"bot_token": f"xoxb-{number}-emulated", "app_token": f"xapp-{number}-emulated"}
            server.workspace = server.add_workspace(f"T{number}", tokens["bot_token"])
            server.app_tokens.add(tokens["app_token"])
            await server.start()
            self.accounts.append({**tokens, "base_url": server.base_url})

    def say(self, bot: int, person: int, text: str) -> None:
        """Bring an event."""
        self._servers[bot].say(text, channel=f"D{person}", user=f"U{person}")

    def answers(self) -> Iterator[tuple[str, float]]:
        """What the apps posted."""
        for number, server in enumerate(self._servers):
            new, self._seen[number] = server.sent[self._seen[number] :], len(server.sent)
            yield from ((sent.words, sent.at) for sent in new)


class Discord(Platform):
    """Discords."""

    def __init__(self) -> None:
        super().__init__()
        self._servers = [DiscordEmulator() for _ in range(BOTS)]
        self._seen = [0] * BOTS

    async def start(self) -> None:
        """Listen; each bot has a token of its own."""
        for number, server in enumerate(self._servers):
            token = f"emulated-{number}"
            server.bots[token] = replace(server.bots[TOKEN], token=token)
            await server.start()
            self.accounts.append({"token": token, "api_url": server.api_url, "gateway_url": server.gateway_url})

    def say(self, bot: int, person: int, text: str) -> None:
        """Tell the session."""
        server, name = self._servers[bot], f"Person {person}"
        server.say(text, channel=server.dm(str(person), name), user=str(person), name=name)

    def answers(self) -> Iterator[tuple[str, float]]:
        """What the bots sent."""
        for number, server in enumerate(self._servers):
            new, self._seen[number] = server.sent[self._seen[number] :], len(server.sent)
            yield from ((sent.text, sent.at) for sent in new)


PLATFORMS: dict[str, type[Platform]] = {"telegram": Telegram, "slack": Slack, "discord": Discord}


class Crowd:
    """The people, who remember what they have said so far."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._chance = random.Random(1)  # noqa: S311 - repeatable, no secret
        self._said = 0
        self._due: dict[int, float] = {}
        self._waits: list[float] = []

    async def talk(self, rate: float, seconds: float) -> dict[str, object]:
        """Say things for so long, and wait for the answers; returns what is printed."""
        self._due.clear()
        self._waits = []
        before = self._said
        due = started = time.time()
        while (due := due + self._chance.expovariate(rate)) < started + seconds:
            while (ahead := due - time.time()) > 0:
                await asyncio.sleep(min(ahead, _LOOK_SECONDS))
                self._match()
            self._due[self._said] = due
            bot, person = self._chance.randrange(BOTS), 101 + self._chance.randrange(PEOPLE)
            self._platform.say(bot, person, f"fact-{self._said} is kept")
            self._said += 1
            if self._said % 20 == 0:
                await asyncio.sleep(0)
        giving_up = time.time() + ANSWER_SECONDS
        while self._due and time.time() < giving_up:
            await asyncio.sleep(_LOOK_SECONDS)
            self._match()
        return {"said": self._said - before, "waits": self._waits}

    def _match(self) -> None:
        for text, at in self._platform.answers():
            for number in re.findall(r"fact-(\d+)", text):
                if (due := self._due.pop(int(number), None)) is not None:
                    self._waits.append(at - due)


async def _serve(name: str) -> None:
    platform = PLATFORMS[name]()
    await platform.start()
    crowd = Crowd(platform)
    print(json.dumps(platform.accounts), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        rate, seconds = line.split()
        print(json.dumps(await crowd.talk(float(rate), float(seconds))), flush=True)


def main() -> None:
    """Serve until the input ends."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("platform", choices=PLATFORMS)
    asyncio.run(_serve(parser.parse_args().platform))


if __name__ == "__main__":
    main()
