"""A gateway whose agent hangs. Run as a script: HOW LIMIT.

HOW: `deaf` does not hear its cancellation, `blocking` blocks the event loop. LIMIT: of the end, in seconds.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from unittest import mock

from config import Home, load_settings
from gateway import stopping
from gateway.agents.base import AgentContext, AgentEvent, TextDelta
from gateway.cli.running import async_run
from gateway.daemon import Daemon
from gateway.logs import set_up_logs


class HungAgent:
    """Begins, and never ends."""

    model = "hung"

    async def run(self, context: AgentContext) -> AsyncIterator[AgentEvent]:
        """Say that it has begun, then hang."""
        print("begun", flush=True)  # noqa: T201 - the way to speak to the test
        if sys.argv[1] == "blocking":
            time.sleep(1000)  # noqa: ASYNC251 - this is what is tested
        yield TextDelta(context.text)
        while True:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                continue


def announce(address: str) -> None:
    """Say that it runs."""
    print("running", address, flush=True)  # noqa: T201 - the way to speak to the test


if __name__ == "__main__":
    stopping.LIMIT_SECONDS = float(sys.argv[2])
    set_up_logs()
    with mock.patch("gateway.workshop.make_agent", return_value=HungAgent()):
        async_run(Daemon(Home(), load_settings(Home())).run(announce))
