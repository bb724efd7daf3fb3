"""Line by line: the chat for a terminal that cannot draw a prompt, or whose output goes into a file.

Contract: each line is a message; the next one is asked for when the last is answered. The prompt goes to stderr, so
that what is written to a file is the talk alone.
Limits: the terminal itself takes at most 4095 bytes in a line.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from gateway.cli.front import Listener

__all__ = ["LineFront"]

_READ = 65_536


class LineFront:
    """See the module."""

    def __init__(self) -> None:
        self.echoes = sys.stdout.isatty()
        self._scope = anyio.CancelScope()
        self._offered: str | None = None

    async def run(self, listener: Listener) -> None:
        """Read until the input ends or `leave` is called."""
        with self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._obey_interrupts, listener)
                await self._read(listener)
                tasks.cancel_scope.cancel()

    async def show(self, draw: Callable[[], None]) -> None:
        """Print at once."""
        draw()

    def refresh(self) -> None:
        """Nothing is drawn between the lines."""

    def offer(self, text: str) -> None:
        """Say what could not be sent, so that it can be sent again."""
        self._offered = text

    def leave(self) -> None:
        """End `run` at once."""
        self._scope.cancel()

    async def _obey_interrupts(self, listener: Listener) -> None:
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                listener.interrupt()

    async def _read(self, listener: Listener) -> None:
        while True:
            self._prompt()
            line = await _line()
            if line is None:
                return
            if line.strip():
                listener.submit(line)
            elif self._offered is not None:
                listener.submit(self._offered)
            self._offered = None
            await listener.idle()

    def _prompt(self) -> None:
        if self._offered is not None:
            sys.stderr.write("(Enter alone sends it again.)\n")
        sys.stderr.write("> ")
        sys.stderr.flush()


async def _line() -> str | None:
    """The next line of the terminal, None at its end. The terminal gives whole lines, so nothing is read ahead."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    data = os.read(sys.stdin.fileno(), _READ)
    return data.decode("utf-8", "replace").rstrip("\r\n") if data else None
