"""How soon the gateway answers under load: three emulated platforms in processes of their own, one real gateway.

On each platform 50 people talk to 5 bots in direct chats; the recall agent answers. A wait goes from the instant that a
message was due until its answer has arrived at the emulator. While that goes on `/health` is asked every 100 ms: its
answer comes from the loop that does all the work, so its wait tells how long that loop was busy at a stretch. Memory
and processor time are the gateway process's. A search tries further rates after that, each for a tenth of the time, to
find the highest one that still holds. The emulators and the people need the same processors, which real ones would not,
so their share is told beside the gateway's; so does whatever else runs there, which the load average tells.
What bounds it: the gateway's one event loop, where the platforms' libraries take most of the time of a message, and the
commits, of which each message waits for four, one after another, before its answer is sent.
Limits: Linux, for memory and processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from benchmarks.crowd import ANSWER_SECONDS, BOTS, PEOPLE, PLATFORMS
from benchmarks.report import machine, write
from tests.gateways import GatewayProcess

__all__ = ["main"]

#: What is aimed at: messages a second on each platform, and seconds within which 95 of 100 are answered.
RATE_AIM, WAIT_AIM = 50.0, 0.3
#: Seconds that the loop may be busy at a stretch.
LOOP_AIM = 0.05
WARM_UP_SECONDS, WARM_UP_RATE = 5.0, 5.0
LOOK_SECONDS = 0.1
#: A rate is found when it is known within this factor.
NEAR = 1.2
LEAST_RATE, LEAST_SECONDS = 2.0, 10.0
COLUMNS = (
    *("messages/s each", "for", "answered", "p50", f"p95 ({', '.join(PLATFORMS)})", "p99"),
    *("`/health` p50, p99, max", "memory", "processor time a message", "cores: gateway, platforms", "load"),
)
#: Of what a crowd says: all waits are one line.
LONGEST_LINE = 2**26
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Load:
    """One load. Seconds; waits and looks (waits for `/health`) sorted; cpu: processor time.

    memory: in bytes, at the begin, half-way and at the end.

    platforms: what the emulators and the people took of it. each: the 95th percentile of the waits on each platform.
    took: until the last answer. others: the load average.
    """

    rate: float
    seconds: float
    said: int
    waits: list[float]
    each: list[float]
    looks: list[float]
    memory: tuple[int, int, int]
    cpu: float
    platforms: float
    took: float
    others: float

    @property
    def holds(self) -> bool:
        """Whether everything was answered, and soon."""
        return bool(self.waits) and len(self.waits) == self.said and part(self.waits, 0.95) <= WAIT_AIM


class Bench:
    """The gateway with its platforms, running."""

    def __init__(self, gateway: GatewayProcess, crowds: list[asyncio.subprocess.Process]) -> None:
        self._gateway = gateway
        self._crowds = crowds

    async def load(self, rate: float, seconds: float) -> Load:
        """Let every platform's people talk so often for so long."""
        looks: list[float] = []
        looking = asyncio.create_task(self._look(looks))
        crowds = [crowd.pid for crowd in self._crowds]
        memory, began, others = self._memory(), time.perf_counter(), os.getloadavg()[0]
        spent, theirs = processor_time(self._gateway.pid), sum(map(processor_time, crowds))
        halfway = asyncio.create_task(self._memory_after(seconds / 2))
        told = await asyncio.gather(*(ask(crowd, f"{rate} {seconds}", seconds) for crowd in self._crowds))
        spent, theirs = processor_time(self._gateway.pid) - spent, sum(map(processor_time, crowds)) - theirs
        took = time.perf_counter() - began
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking
        waits = sorted(wait for one in told for wait in one["waits"])
        each = [part(sorted(one["waits"]), 0.95) for one in told]
        said = sum(one["said"] for one in told)
        memories = (memory, await halfway, self._memory())
        return Load(rate, seconds, said, waits, each, sorted(looks), memories, spent, theirs, took, others)

    async def _look(self, looks: list[float]) -> None:
        address = self._gateway.address.partition("/?")[0]
        async with httpx.AsyncClient(trust_env=False, timeout=ANSWER_SECONDS) as client:
            while True:
                began = time.perf_counter()
                await client.get(f"{address}/health")
                looks.append(time.perf_counter() - began)
                await asyncio.sleep(LOOK_SECONDS)

    async def _memory_after(self, seconds: float) -> int:
        await asyncio.sleep(seconds)
        return self._memory()

    def _memory(self) -> int:
        status = Path(f"/proc/{self._gateway.pid}/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


def processor_time(pid: int) -> float:
    """Seconds that a process has taken so far."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


async def hear(crowd: asyncio.subprocess.Process, seconds: float = 0.0) -> Any:
    """The next line of a crowd; `seconds`: how long it is busy before it has anything to say."""
    assert crowd.stdout is not None  # noqa: S101 - a pipe was asked for
    async with asyncio.timeout(seconds + 3 * ANSWER_SECONDS):
        return json.loads(await crowd.stdout.readline())


async def ask(crowd: asyncio.subprocess.Process, line: str, seconds: float) -> Any:
    """Say a line to a crowd and return what it answers."""
    assert crowd.stdin is not None  # noqa: S101 - the same
    crowd.stdin.write(f"{line}\n".encode())
    return await hear(crowd, seconds)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Bench]:
    """Everything started; ended at the end."""
    async with contextlib.AsyncExitStack() as stack:
        crowds = [await stack.enter_async_context(crowd(name)) for name in PLATFORMS]
        accounts = {name: await hear(one) for name, one in zip(PLATFORMS, crowds, strict=True)}
        more = {"enabled": True, "allow_all": True}
        platforms = {
            name: [{**more, "name": f"bot{number}", **one} for number, one in enumerate(each)]
            for name, each in accounts.items()
        }
        home = folder / "home"
        home.mkdir(mode=0o700)
        settings = {"web": {"port": 0}, "platforms": platforms}
        await asyncio.to_thread((home / "config.yaml").write_text, yaml.safe_dump(settings), encoding="utf-8")
        gateway = GatewayProcess(home)
        await stack.enter_async_context(gateway.running())
        await connected(gateway.address.partition("/?")[0])
        yield Bench(gateway, crowds)


@asynccontextmanager
async def crowd(name: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A platform in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.crowd", name),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        limit=LONGEST_LINE,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def connected(address: str) -> None:
    """Return when every account is connected."""
    async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(2 * ANSWER_SECONDS):
        while True:
            states = (await client.get(f"{address}/health")).json()["accounts"].values()
            if len(states) >= BOTS * len(PLATFORMS) and set(states) == {"connected"}:
                return
            await asyncio.sleep(LOOK_SECONDS)


async def search(bench: Bench, seconds: float, first: Load) -> list[Load]:
    """Try rates beyond the first load's until the highest that holds is known within NEAR; returns every try."""
    tries: list[Load] = []
    low, high = (first.rate, 0.0) if first.holds else (0.0, first.rate)
    while (not high or high > low * NEAR) and (low or high > LEAST_RATE):
        rate = (low + high) / 2 if low and high else low * 2 or high / 2
        tries.append(await bench.load(rate, seconds))
        print(row(tries[-1]), flush=True)
        if tries[-1].holds:
            low = rate
        else:
            high = rate
    return tries


def part(values: list[float], share: float) -> float:
    """The value that this share of the sorted values does not exceed."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


def row(load: Load) -> str:
    """A load as a row of the table."""
    middle, most, slow = (f"{part(load.waits, share) * 1000:,.0f} ms" for share in (0.5, 0.95, 0.99))
    looks = ", ".join(f"{part(load.looks, share) * 1000:,.0f}" for share in (0.5, 0.99, 1.0))
    each = ", ".join(f"{wait * 1000:,.0f}" for wait in load.each)
    memory = " -> ".join(f"{size / 2**20:.0f}" for size in load.memory)
    spent = 1000 * load.cpu / max(load.said, 1)
    answered = f"{100 * len(load.waits) / load.said:.2f} % of {load.said:,}" if load.said else "nothing said"
    return (
        f"| {load.rate:.1f} | {load.seconds:.0f} s | {answered} | {middle} | {most} ({each}) | {slow} | {looks} ms | "
        f"{memory} MB | {spent:.1f} ms | {load.cpu / load.took:.2f}, {load.platforms / load.took:.2f} | "
        f"{load.others:.1f} |"
    )


def table(where: str, loads: list[Load]) -> str:
    """The section as Markdown."""
    holding = [load.rate for load in loads if load.holds]
    found = f"{max(holding):.1f} a second on each" if holding else "none of these"
    return "\n".join(
        [
            f"Measured {where}.",
            "",
            f"{len(PLATFORMS)} platforms at once, {PEOPLE} people and {BOTS} bots on each, direct chats, recall agent,",
            "one gateway process; the emulators and the people run on the same processors. A wait goes from the",
            "instant that a message was due to its answer at the emulator. `/health` is asked meanwhile: its waits",
            "show how long the loop was busy. Memory: at the begin, half-way, at the end; it grows until the page",
            "caches of the three connections to the database are full (32 MB). Load: the machine's at the begin.",
            "",
            f"| {' | '.join(COLUMNS)} |",
            f"|{'---:|' * len(COLUMNS)}",
            *(row(load) for load in loads),
            "",
            f"Aims: {RATE_AIM:.0f} a second on each, all answered, p95 <= {WAIT_AIM * 1000:.0f} ms, memory flat,",
            f"loop never busy for more than {LOOP_AIM * 1000:.0f} ms. The highest rate that held here: {found}.",
        ]
    )


async def measure(folder: Path, rate: float, seconds: float, *, searching: bool) -> list[Load]:
    """Every load, printed as it ends."""
    async with running(folder) as bench:
        await bench.load(min(rate, WARM_UP_RATE), WARM_UP_SECONDS)
        loads = [await bench.load(rate, seconds)]
        print(row(loads[0]), flush=True)
        if searching:
            loads += await search(bench, max(seconds / 10, LEAST_SECONDS), loads[0])
    return loads


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rate", type=float, default=RATE_AIM, help="messages a second on each platform")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--search", action="store_true", help="also find the highest rate that holds")
    parser.add_argument("--folder", help="where the gateway stores; another disk gives other numbers")
    parser.add_argument("--write", type=Path, help="the document whose section is replaced")
    options = parser.parse_args()
    where = machine()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        loads = asyncio.run(measure(Path(folder), options.rate, options.seconds, searching=options.search))
    section = table(where, loads)
    print(section)
    if options.write:
        write(options.write, "gateway", "Answering on three platforms", section)
