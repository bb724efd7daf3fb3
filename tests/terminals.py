"""A person at a real terminal, for tests: a process on a pseudo-terminal whose screen can be read.

Everything waits for text on the screen, never for time. The terminal answers as a real one (cursor reports), and keeps
what scrolled away.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
import pyte

from tests.gateways import clean_environment

__all__ = ["COMMAND", "SLOW_COMMAND", "Person", "at_a_terminal", "environment", "eventually", "threadline"]

COMMAND = [sys.executable, "-c", "from gateway.cli.main import run; run()"]
SLOW_COMMAND = [sys.executable, "-c", "from tests.slow_agent import run; run()"]
PATIENCE = 30.0
LOOK_SECONDS = 0.05
KEYS = {
    "enter": "\r",
    "alt-enter": "\x1b\r",
    "ctrl-c": "\x03",
    "ctrl-d": "\x04",
    "ctrl-u": "\x15",
    "tab": "\t",
    "up": "\x1b[A",
}


def environment(home: Path, **more: str) -> dict[str, str]:
    """Variables for a process of ours on this home: no settings of whoever runs the tests, a terminal with colours."""
    kept = dict(clean_environment(home))
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        kept.pop(name, None)
    return kept | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "TEST_AGENT_GATE": str(home / "gate")} | more


def threadline(
    home: Path,
    *arguments: str,
    said: str | bytes = b"",
    command: list[str] = COMMAND,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run `threadline` without a terminal; `said` comes from a pipe."""
    return subprocess.run(  # noqa: S603 - our own interpreter and script
        [*command, *arguments],
        input=said.encode() if isinstance(said, str) else said,
        capture_output=True,
        env=environment(home, **(variables or {})),
        timeout=60,
        check=False,
    )


def eventually(there: Callable[[], object], what: str) -> None:
    """Wait for something that no screen tells of."""
    limit = time.monotonic() + PATIENCE
    while not there():
        if time.monotonic() > limit:
            raise AssertionError(f"It did not happen: {what}")
        time.sleep(LOOK_SECONDS)


class _Screen(pyte.HistoryScreen):
    """A screen that answers what a program asks of its terminal."""

    def __init__(self, columns: int, rows: int, answer: Callable[[str], object]) -> None:
        super().__init__(columns, rows, history=2000, ratio=0.5)
        self._answer = answer

    def write_process_input(self, data: str) -> None:
        """Send an answer to the program."""
        self._answer(data)


class Person:
    """Who sits at the terminal."""

    def __init__(self, process: Any, columns: int, rows: int) -> None:
        self._process = process
        self._screen = _Screen(columns, rows, process.send)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""

    @property
    def pid(self) -> int:
        """Of the process."""
        pid: int = self._process.pid
        return pid

    @property
    def screen(self) -> str:
        """What is on the screen now."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    @property
    def everything(self) -> str:
        """What scrolled away, and what is on the screen."""
        scrolled = ["".join(line[x].data for x in range(self._screen.columns)) for line in self._screen.history.top]
        return "\n".join(line.rstrip() for line in [*scrolled, *self._screen.display]).rstrip()

    def type(self, text: str) -> None:
        """Press keys, one for each character."""
        self._process.send(text)

    def press(self, key: str) -> None:
        """Press a key by its name."""
        self._process.send(KEYS[key])

    def enter(self, text: str) -> None:
        """Type a message and send it."""
        self.type(text)
        self.sees(text)
        self.press("enter")

    def paste(self, text: str) -> None:
        """Paste, as terminals tell programs of it."""
        self._process.send("\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~")

    def sees(self, *texts: str) -> str:
        """Wait until all these are on the screen or above it; returns everything."""
        return self.until(lambda: all(text in self.everything for text in texts), f"{texts}")

    def sees_no_more(self, text: str) -> str:
        """Wait until this is gone from the screen."""
        return self.until(lambda: text not in self.screen, f"{text!r} is still there")

    def until(self, there: Callable[[], bool], what: str = "") -> str:
        """Wait until something holds of the screen; returns everything."""
        limit = time.monotonic() + PATIENCE
        while not there():
            if not self._read(limit - time.monotonic()):
                raise AssertionError(f"The process ended; waited for: {what}\n{self.everything}")
        return self.everything

    def _read(self, seconds: float) -> bool:
        """Take what comes within `seconds`; False at the end of the process."""
        try:
            data = self._process.read_nonblocking(65_536, timeout=max(0.0, seconds))
        except pexpect.EOF:
            return False
        except pexpect.TIMEOUT as error:
            raise AssertionError(f"It did not come:\n{self.everything}") from error
        self.raw += data
        self._stream.feed(data)
        return True

    def ends(self) -> int:
        """Wait until the process has ended; returns its exit code, or minus the signal that ended it."""
        limit = time.monotonic() + PATIENCE
        while self._read(limit - time.monotonic()):
            pass
        self._process.wait()
        if self._process.signalstatus is not None:
            return -int(self._process.signalstatus)
        return int(self._process.exitstatus)

    def leave(self) -> int:
        """Ctrl-D; returns the exit code."""
        self.press("ctrl-d")
        return self.ends()

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal and wait for the end."""
        os.kill(self.pid, number)
        return self.ends()

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the window."""
        self._screen.resize(rows, columns)
        self._process.setwinsize(rows, columns)


@contextmanager
def at_a_terminal(
    home: Path,
    *arguments: str,
    command: list[str] = COMMAND,
    columns: int = 100,
    rows: int = 40,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Person]:
    """`threadline` on a terminal of its own; killed at the end if it still runs."""
    process = pexpect.spawn(
        command[0],
        [*command[1:], *arguments],
        env=environment(home, **(variables or {})),
        dimensions=(rows, columns),
        timeout=PATIENCE,
    )
    process.delaybeforesend = None
    try:
        yield Person(process, columns, rows)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.close(force=True)
