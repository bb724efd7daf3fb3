"""A terminal that compresses a conversation and is killed on the way. Run as a script: HOME SESSION COMMAND STEP.

It works COMMAND (`/compress`, `/undo`, `/branch`) in SESSION and kills itself with SIGKILL at STEP: `held` (the
conversation is held), `summed` (the summary is there), `writing` (the transaction is under way), `written` (it is
committed, nobody knows yet); or at no step but when somebody kills it (`none`). Prints `ready` before, `done` after.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from config import Home, Settings
from gateway.agents.base import SummaryRequest, Written
from gateway.agents.recall import RecallAgent
from gateway.terminal import open_terminal
from session_store import SessionDB
from session_store.holding import Holding


def die() -> None:
    """Be killed, here and now."""
    os.kill(os.getpid(), signal.SIGKILL)


def dying(call: Callable[..., Any], *, before: bool = False) -> Callable[..., Any]:
    """The same, and death when it is done (or about to be)."""

    async def called(*args: Any, **kwargs: Any) -> Any:
        if before:
            asyncio.get_running_loop().call_later(0.0005, die)
        result = await call(*args, **kwargs)
        die()
        return result

    return called


async def slowly(self: RecallAgent, request: SummaryRequest) -> Written:
    """A summary that takes a moment, so that a kill may fall into it."""
    del self
    await asyncio.sleep(0.02)
    return Written(f"{len(request.history)} messages")


def arm(step: str) -> None:
    """Be killed at this step."""
    RecallAgent.summarize = slowly  # type: ignore[method-assign]
    match step:
        case "held":
            Holding.take = dying(Holding.take)  # type: ignore[method-assign]
        case "summed":
            RecallAgent.summarize = dying(slowly)  # type: ignore[method-assign]
        case "writing":
            SessionDB.apply = dying(SessionDB.apply, before=True)  # type: ignore[method-assign]
        case "written":
            SessionDB.apply = dying(SessionDB.apply)  # type: ignore[method-assign]


async def main(home: str, session_id: str, command: str, step: str) -> None:
    """Work the command."""
    async with open_terminal(Home(Path(home)), Settings()) as terminal:
        await terminal.open(session_id)
        call = terminal.parse(command)
        assert call is not None
        arm(step)
        print("ready", flush=True)  # noqa: T201 - the way to speak to the test
        await terminal.command(call)
        print("done", flush=True)  # noqa: T201 - the same


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
