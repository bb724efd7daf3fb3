"""A gateway whose agent takes its time: each answer is made word by word within one to four seconds, then it is whole.

The words of an answer end with the question's number, in brackets, only when it is whole.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator
from unittest import mock

from gateway.agents.base import AgentContext, AgentEvent, Final, TextDelta
from gateway.cli.main import run

WORDS = 12


class WordyAgent:
    """See the module."""

    model = "wordy"

    async def run(self, context: AgentContext) -> AsyncIterator[AgentEvent]:
        """Work one turn."""
        (number,) = re.findall(r"question-(\d+)", context.text)
        pause = random.uniform(1.0, 4.0) / WORDS  # noqa: S311 - no secret
        said = f"About question-{number}:"
        yield TextDelta(said)
        for word in range(WORDS):
            await asyncio.sleep(pause)
            said += f" word{word}"
            yield TextDelta(f" word{word}")
        yield Final(f"{said} [{number}]")


if __name__ == "__main__":
    with mock.patch("gateway.workshop.make_agent", return_value=WordyAgent()):
        run()
