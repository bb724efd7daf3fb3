"""Kills in a row: a gateway that is started and killed with SIGKILL at random instants, again and again.

A gateway lives for nothing up to somewhat longer than its start took, so that a slow machine leaves it as much to do as
a fast one. A run that is limited in time ends early, with as many kills as there were; what must hold after it is the
same. Every 50 kills are told on standard output.
"""

from __future__ import annotations

import asyncio
import math
import random
import sys
import time
from dataclasses import dataclass

from tests.gateways import GatewayProcess

__all__ = ["SOAK_MINUTES", "Killing"]

#: 500 kills take a quarter of an hour where the machine has nothing else to do.
SOAK_MINUTES = 90

_TELL_EVERY = 50
#: How long a gateway lives at most, in starts.
_LIFE = 1.3


@dataclass(frozen=True, slots=True)
class Killing:
    """A run of kills. minutes: after so many, no further gateway is started."""

    kills: int
    chance: random.Random
    minutes: float = math.inf

    async def run(self, gateway: GatewayProcess) -> int:
        """Kill the gateway as often as it is said; returns how often it was."""
        began = time.monotonic()
        for done in range(self.kills):
            if time.monotonic() - began > 60 * self.minutes:
                return done
            starting = time.monotonic()
            await gateway.start()
            await asyncio.sleep(self.chance.uniform(0.0, _LIFE * (time.monotonic() - starting)))
            await gateway.kill()
            if (done + 1) % _TELL_EVERY == 0:
                sys.stdout.write(f"{done + 1} kills after {(time.monotonic() - began) / 60:.1f} minutes\n")
                sys.stdout.flush()
        return self.kills
