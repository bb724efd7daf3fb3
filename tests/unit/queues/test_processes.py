"""Processes: who lives is judged by pid, start time and boot on this machine, and by the beat elsewhere."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from session_store.processes import ProcessIdentity, boot_clock, identity_of, is_alive
from tests.unit.queues.bench import Bench

HAS_PROC = Path("/proc/self/stat").exists()


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Another process of this machine, alive until the test kills it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture
def me() -> ProcessIdentity:
    """This process as it registers itself."""
    return identity_of(os.getpid())


async def alive(bench: Bench) -> dict[str, bool]:
    """All processes as judged now."""
    return {row["token"]: row["alive"] for row in await bench.processes.list()}


async def test_a_process_tells_about_itself(bench: Bench) -> None:
    """What is registered is what status shows; the token is new each time."""
    token = await bench.processes.register("gateway", ["telegram/main"], {"address": "http://127.0.0.1"})
    other = await bench.processes.register("terminal")
    assert token != other
    await bench.processes.set_detail(token, {"state": "running"})
    row = next(row for row in await bench.processes.list() if row["token"] == token)
    assert (row["role"], row["accounts"], row["detail"]) == ("gateway", ["telegram/main"], {"state": "running"})
    assert (row["pid"], row["alive"]) == (os.getpid(), True)


async def test_a_process_taken_out_is_gone(bench: Bench) -> None:
    """Its later beats do not bring it back."""
    token = await bench.processes.register("gateway")
    await bench.processes.remove(token)
    await bench.processes.beat(token)
    assert token not in await alive(bench)


async def test_a_process_lives_until_it_is_killed(bench: Bench, child: subprocess.Popen[bytes]) -> None:
    """Dead at once, also while nobody has reaped it yet."""
    bench.process("child", await asyncio.to_thread(identity_of, child.pid))
    assert (await alive(bench))["child"]
    child.kill()
    if HAS_PROC:
        await asyncio.to_thread(os.waitid, os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, but not reaped
        assert not (await alive(bench))["child"]
    await asyncio.to_thread(child.wait)
    assert not (await alive(bench))["child"]


@pytest.mark.skipif(not HAS_PROC, reason="without /proc only the pid tells")
async def test_a_reused_pid_is_not_the_process(bench: Bench, me: ProcessIdentity) -> None:
    """The start time tells them apart."""
    bench.process("former", replace(me, pid_start=me.pid_start - 1))
    assert not (await alive(bench))["former"]


async def test_nobody_survives_a_restart_of_the_machine(bench: Bench, me: ProcessIdentity) -> None:
    """Another boot id, or a beat later than now, is of another boot."""
    bench.process("before", replace(me, boot_id="another boot"))
    bench.boot = 3600.0
    bench.process("later", me)
    bench.boot = 0.0
    judged = await alive(bench)
    assert (judged["before"], judged["later"]) == (False, False)


@pytest.mark.parametrize("change", [{"host": "another host"}, {"pid_ns": "pid:[1]"}])
async def test_elsewhere_only_the_beat_tells(bench: Bench, me: ProcessIdentity, change: dict[str, Any]) -> None:
    """The pid of another host or container says nothing here."""
    who = replace(me, pid=1, pid_start=1, **change)
    bench.process("beating", who)
    bench.boot = -61.0
    bench.process("silent", who)
    bench.boot = 0.0
    judged = await alive(bench)
    assert (judged["beating"], judged["silent"]) == (True, False)


async def test_a_process_that_does_not_beat_counts_as_dead_until_it_beats(bench: Bench) -> None:
    """It may be asleep; then it is back with its next beat."""
    bench.boot = -61.0
    bench.process("A")
    assert not (await alive(bench))["A"]
    bench.boot = 0.0
    await bench.processes.beat("A")
    assert (await alive(bench))["A"]


async def test_the_dead_are_forgotten_and_the_sleeping_are_not(bench: Bench, me: ProcessIdentity) -> None:
    """A row goes when its process cannot come back."""
    bench.process("before", replace(me, boot_id="another boot"))
    bench.boot = -100.0
    bench.process("asleep", me)
    bench.process("asleep elsewhere", replace(me, host="another host"))
    bench.boot = -100_000.0
    bench.process("gone elsewhere", replace(me, host="another host"))
    bench.boot = 0.0
    assert await bench.processes.forget_dead() == 2
    assert set(await alive(bench)) == {"A", "asleep", "asleep elsewhere"}


async def test_a_process_forgotten_in_its_sleep_enters_itself_again(bench: Bench) -> None:
    """With everything it had told before."""
    token = await bench.processes.register("gateway", ["telegram/main"])
    bench.apply(lambda tx: tx.run("DELETE FROM processes"))
    await bench.processes.beat(token)
    (row,) = await bench.processes.list()
    assert (row["token"], row["accounts"], row["alive"]) == (token, ["telegram/main"], True)


def test_a_system_without_proc_goes_by_the_pid_alone(
    monkeypatch: pytest.MonkeyPatch, child: subprocess.Popen[bytes]
) -> None:
    """No start time, no name space, no boot id: a pid that exists counts while its beat is fresh."""
    import session_store.processes as module  # noqa: PLC0415 - patched here only

    real = Path

    def elsewhere(path: str) -> Path:
        return real("/nonexistent" + path) if path.startswith("/proc") else real(path)

    monkeypatch.setattr(module, "Path", elsewhere)
    module._machine.cache_clear()  # noqa: SLF001 - what was read from /proc before
    try:
        who = identity_of(child.pid)
        assert (who.pid_start, who.pid_ns, who.boot_id) == (0, "", "")
        row = {"pid": who.pid, "pid_start": 0, "pid_ns": "", "boot_id": "", "host": who.host, "beat": boot_clock()}
        assert is_alive(row, boot_clock())
        child.kill()
        child.wait()
        assert not is_alive(row, boot_clock())
    finally:
        module._machine.cache_clear()  # noqa: SLF001 - the next test reads /proc again
