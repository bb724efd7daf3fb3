"""How a process ends that was told to: in order, at once the second time, and never too late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import asyncio, signal, sys, time
import structlog
from gateway import stopping
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
stopping.LIMIT_SECONDS = {limit}

async def stubborn():
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            pass

async def main():
    {first}
    waiting = asyncio.create_task(stopping.told_to_stop())
    await asyncio.sleep(0)
    print("ready", flush=True)
    {before}
    await waiting
    print("told", flush=True)
    {after}

asyncio.run(main())
print("ended", flush=True)
"""


@contextmanager
def program(
    *, first: str = "pass", before: str = "pass", after: str = "pass", limit: float = 30.0
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that does `first`, waits to be told, then does `after`."""
    text = textwrap.dedent(PROGRAM).format(first=first, before=before, after=after, limit=limit)
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and program
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"ready"
        yield process
    finally:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[bytes]) -> str:
    """The next line of its output."""
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_first_signal_begins_an_orderly_end(number: signal.Signals) -> None:
    """All of them mean the same; the exit code is that of the work."""
    with program() as process:
        process.send_signal(number)
        assert (line(process), line(process)) == ("told", "ended")
        assert process.wait(20) == 0


def test_who_was_started_to_outlive_its_terminal_does() -> None:
    """An ignored SIGHUP stays ignored, as `nohup` has it."""
    with program(first="signal.signal(signal.SIGHUP, signal.SIG_IGN)") as process:
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        assert (line(process), line(process)) == ("told", "ended")
        assert process.wait(20) == 0


@pytest.mark.parametrize("hung", ["await asyncio.sleep(1000)", "time.sleep(1000)"])
def test_the_second_signal_ends_at_once(hung: str) -> None:
    """Also when the event loop itself is blocked."""
    with program(after=hung) as process:
        process.send_signal(signal.SIGTERM)
        assert line(process) == "told"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 128 + signal.SIGINT


@pytest.mark.parametrize("hung", ["await asyncio.sleep(1000)", "time.sleep(1000)"])
def test_an_end_that_takes_too_long_is_cut_short_with_a_sentence(hung: str) -> None:
    """Whatever hangs."""
    with program(after=hung, limit=0.2) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 1
        assert process.stderr is not None
        assert b"cut short; what was acknowledged is kept" in process.stderr.read()


def test_a_blocked_event_loop_is_cut_short_too() -> None:
    """The signal finds the loop blocked: it never gets to say that it was told."""
    with program(before="time.sleep(1000)", limit=0.2) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 1


def test_a_task_that_ignores_its_cancellation_does_not_keep_the_process() -> None:
    """The loop's own end waits for such tasks without a limit."""
    with program(after="kept = asyncio.create_task(stubborn()); await asyncio.sleep(0)", limit=0.2) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 1
