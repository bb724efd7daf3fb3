"""`threadline` with an agent that tests hold in their hands.

It begins every answer with a tool call and the words "thinking about ...", makes the file `begun` beside its gate,
waits until the gate, the file named in `$TEST_AGENT_GATE`, exists, and ends with "answer to ...". A question that
begins with "stubborn" makes it ignore that it is cancelled; one that begins with "broken" makes it fail.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from unittest import mock

from gateway import workshop
from gateway.agents.base import (
    AgentContext,
    AgentError,
    AgentEvent,
    Final,
    SummaryRequest,
    TextDelta,
    ToolCalls,
    ToolResult,
    Written,
)
from gateway.agents.digest import digest
from gateway.cli.main import run as run_threadline

__all__ = ["run"]

LOOK_SECONDS = 0.02


class SlowAgent:
    """See the module."""

    model = "slow"

    async def run(self, context: AgentContext) -> AsyncIterator[AgentEvent]:
        """Work one turn."""
        call = {"id": f"call_{context.turn_id}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        yield ToolCalls([call])
        yield ToolResult(f"call_{context.turn_id}", "look", "{}")
        yield TextDelta(f"thinking about {context.text}")
        if context.text.startswith("broken"):
            raise AgentError("The agent is broken today.")
        gate = Path(os.environ["TEST_AGENT_GATE"])
        await asyncio.to_thread(gate.with_name("begun").touch)
        while not await asyncio.to_thread(gate.exists):
            try:
                await asyncio.sleep(LOOK_SECONDS)
            except asyncio.CancelledError:
                if not context.text.startswith("stubborn"):
                    raise
        yield Final(f"answer to {context.text}")

    async def summarize(self, request: SummaryRequest) -> Written:
        """The conversation in its own words."""
        return Written(digest(request.history, limit=request.limit, focus=request.focus))


def run() -> None:
    """Entry point."""
    with mock.patch.object(workshop, "make_agent", return_value=SlowAgent()):
        run_threadline()
