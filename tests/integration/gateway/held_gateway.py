"""A gateway whose agent is held by the files in `$TEST_AGENT_FOLDER`; it takes in what is said while it works.

Once it has begun it makes the file `begun`, and each time it has taken something in, the file `taken`. It ends when
there is a file `gate`, with all that it was told.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from unittest import mock

from gateway.agents.base import AgentContext, AgentEvent, Final, TextDelta, ToolCalls, ToolResult
from gateway.cli.main import run

LOOK_SECONDS = 0.02


class HeldAgent:
    """See the module."""

    model = "held"
    steerable = True

    async def run(self, context: AgentContext) -> AsyncIterator[AgentEvent]:
        """Work one turn."""
        folder = Path(os.environ["TEST_AGENT_FOLDER"])
        call = {"id": f"call_{context.turn_id}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        yield ToolCalls([call])
        yield ToolResult(f"call_{context.turn_id}", "look", "{}")
        yield TextDelta(f"thinking about {context.text}")
        await asyncio.to_thread((folder / "begun").touch)
        told = [context.text]
        while not await asyncio.to_thread((folder / "gate").exists):
            more = await context.steering.take() if context.steering is not None else ()
            told += more
            if more:
                await asyncio.to_thread((folder / "taken").touch)
            await asyncio.sleep(LOOK_SECONDS)
        yield Final("answer to " + ", ".join(told).replace("\n\n", ", "))


if __name__ == "__main__":
    with mock.patch("gateway.workshop.make_agent", return_value=HeldAgent()):
        run()
