"""Being told to stop: the first signal begins an orderly end, the second ends at once, and no end takes too long.

Contract: `told_to_stop` returns at the first SIGTERM or SIGINT, or SIGHUP (the terminal was closed) unless that is
ignored. From then on a second signal ends the process on the spot, and so does a thread of its own `LIMIT_SECONDS`
after the first, with a sentence: whatever hangs (an agent that does not stop, a call that blocks the event loop, a
thread that never returns) delays the end no longer. Both are safe at any moment, since everything that was acknowledged
is in the store.
Limits: main thread only; meant for a process that ends afterwards, so the handlers are never taken back.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from types import FrameType

import structlog

__all__ = ["LIMIT_SECONDS", "told_to_stop"]

LIMIT_SECONDS = 10.0

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_TOO_LONG = b"Stopping took too long and was cut short; what was acknowledged is kept.\n"

_log = structlog.get_logger(__name__)


async def told_to_stop() -> None:
    """Wait for the first signal; see the module."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    begun = threading.Event()
    first: list[int] = []

    # Python's own handlers, not the loop's: they run also while the loop is blocked.
    def handle(number: int, _frame: FrameType | None) -> None:
        if first:
            os._exit(128 + number)
        first.append(number)
        begun.set()
        loop.call_soon_threadsafe(told.set)

    threading.Thread(target=_cut_short, args=(begun,), name="threadline-stop-limit", daemon=True).start()
    for number in _SIGNALS:
        # Whoever started us with `nohup` wants us to stay.
        if signal.getsignal(number) is not signal.SIG_IGN or number is not signal.SIGHUP:
            signal.signal(number, handle)
    await told.wait()
    _log.info("told_to_stop", signal=signal.Signals(first[0]).name)


def _cut_short(begun: threading.Event) -> None:
    begun.wait()
    threading.Event().wait(LIMIT_SECONDS)
    os.write(2, _TOO_LONG)
    os._exit(1)
