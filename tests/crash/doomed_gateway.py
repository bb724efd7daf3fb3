"""A gateway that kills itself with SIGKILL at one step of a handoff: `$TEST_DIES_AT`, as `before bind`, `after opened`.

The steps are those of the store (`claim`, `hold`, `opening`, `opened`, `bind`) and `thread`, the call to the platform.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from adapters.telegram import TelegramAdapter
from gateway.cli.main import run
from session_store.binding import Bindings
from session_store.handoffs import Handoffs

STEPS: dict[str, tuple[type, str]] = {
    "claim": (Handoffs, "claim"),
    "hold": (Handoffs, "hold"),
    "opening": (Handoffs, "opening"),
    "thread": (TelegramAdapter, "open_thread"),
    "opened": (Handoffs, "opened"),
    "bind": (Bindings, "bind"),
}


def doomed(when: str, real: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return a step that is the last thing this process does."""

    async def step(*arguments: Any, **more: Any) -> NoReturn:
        if when == "after":
            await real(*arguments, **more)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    return step


if __name__ == "__main__":
    moment, _, name = os.environ["TEST_DIES_AT"].partition(" ")
    owner, attribute = STEPS[name]
    setattr(owner, attribute, doomed(moment, getattr(owner, attribute)))
    run()
