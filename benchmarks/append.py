"""How fast messages are stored: one process beside raw SQL, and four processes beside each other.

    python benchmarks/append.py [--rounds 5] [--seconds 5] [--write docs/benchmarks.md]

Each round stores the same varied text with the same search index: first raw (`executemany` in one transaction, the
least that can be done), then through `SessionDB.append_message` with 1, 8 and 64 producers that each wait for their
commit. Reported is the median of the ratios within the rounds, since absolute numbers are the machine's. All with
synchronous=FULL. Then four processes with 8 producers each write for some seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpus import messages
from benchmarks.report import machine, write
from session_store import SessionDB, StoreError, index
from session_store.driver import connect
from session_store.processes import boot_clock
from session_store.tx import Tx, dict_row

#: Producers, messages per round, and the least ratio to raw that is aimed at.
LOADS = ((1, 600, 0.05), (8, 2500, None), (64, 8000, 0.45))
RAW = 8000
PROCESSES = 4
PRODUCERS_EACH = 8
SHARE_AIM = 0.8
WAIT_AIM = 0.5

INSERT = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', ?, ?)"
COUNT = "UPDATE sessions SET message_count = message_count + 1, last_active = ? WHERE id = 's'"


@dataclass(frozen=True, slots=True)
class Load:
    """Medians of one load over all rounds. Times in milliseconds."""

    producers: int
    rate: float
    ratio: float
    middle: float
    slow: float
    aim: float | None


@dataclass(frozen=True, slots=True)
class Crowd:
    """What several processes did side by side. wait: the worst of any message, in seconds."""

    counts: list[int]
    failures: int
    wait: float
    rate: float


async def make(path: Path) -> None:
    """A store with one session."""
    async with SessionDB(path) as db:
        await db.create_session("s", "cli")


def raw_rate(path: Path, texts: list[str]) -> float:
    """Messages per second when everything is one transaction and nobody waits for anything."""
    connection = connect(path, "rw")
    connection.row_factory = dict_row
    for setting in ("synchronous = FULL", "cache_size = -16000", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {setting}")
    now = time.time()
    started = time.perf_counter()
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(INSERT, ((text, now) for text in texts))
    connection.executemany(COUNT, ((now,) for _ in texts))
    index.update(Tx(connection, now, boot_clock()), len(texts))
    connection.execute("COMMIT")
    took = time.perf_counter() - started
    connection.close()
    return len(texts) / took


async def produce(db: SessionDB, texts: list[str], waits: list[float]) -> None:
    """One caller that waits for each commit."""
    for text in texts:
        started = time.perf_counter()
        await db.append_message("s", "user", text)
        waits.append(time.perf_counter() - started)


async def store_rate(path: Path, texts: list[str], producers: int) -> tuple[float, list[float]]:
    """Messages per second through the store, and how long each one waited."""
    waits: list[float] = []
    async with SessionDB(path) as db:
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(producers):
                group.create_task(produce(db, texts[number::producers], waits))
        took = time.perf_counter() - started
    return len(texts) / took, sorted(waits)


def one_process(folder: Path, rounds: int) -> tuple[float, list[Load]]:
    """All loads beside raw, interleaved; medians."""
    raws: list[float] = []
    found: dict[int, list[tuple[float, float, float, float]]] = {producers: [] for producers, _, _ in LOADS}
    for number in range(rounds):
        texts = list(itertools.islice(messages(number), RAW))
        path = folder / f"raw-{number}.db"
        asyncio.run(make(path))
        raws.append(raw_rate(path, texts))
        for producers, count, _ in LOADS:
            path = folder / f"{producers}-{number}.db"
            asyncio.run(make(path))
            rate, waits = asyncio.run(store_rate(path, texts[:count], producers))
            found[producers].append(
                (rate, rate / raws[-1], waits[len(waits) // 2] * 1000, waits[len(waits) * 99 // 100] * 1000)
            )
    loads = []
    for producers, _, aim in LOADS:
        rate, ratio, middle, slow = (statistics.median(column) for column in zip(*found[producers], strict=True))
        loads.append(Load(producers, rate, ratio, middle, slow, aim))
    return statistics.median(raws), loads


async def work(path: str, name: str, seconds: float) -> None:
    """One process of the crowd: prints its count, its failures and its worst wait."""
    texts = list(itertools.islice(messages(hash(name) % 1000), 2000))
    count, failures, worst = 0, 0, 0.0

    async def run(db: SessionDB, number: int) -> None:
        nonlocal count, failures, worst
        for text in itertools.islice(itertools.cycle(texts), number, None):
            started = time.perf_counter()
            if started > until:
                return
            try:
                await db.append_message(name, "user", text)
            except StoreError:
                failures += 1
            count += 1
            worst = max(worst, time.perf_counter() - started)

    async with SessionDB(path) as db:
        await db.create_session(name, "cli")
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        until = time.perf_counter() + seconds
        async with asyncio.TaskGroup() as group:
            for number in range(PRODUCERS_EACH):
                group.create_task(run(db, number))
    print(count, failures, worst, flush=True)


def several_processes(folder: Path, seconds: float) -> Crowd:
    """Four processes on one file, started together."""
    path = folder / "crowd.db"
    asyncio.run(make(path))
    with contextlib.ExitStack() as stack:
        crowd = [
            stack.enter_context(
                subprocess.Popen(  # noqa: S603 - this script
                    [sys.executable, __file__, "--work", str(path), f"p{number}", "--seconds", str(seconds)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
                )
            )
            for number in range(PROCESSES)
        ]
        for one in crowd:
            assert one.stdout is not None  # noqa: S101 - a pipe was asked for
            one.stdout.readline()
        reports = []
        for one in crowd:
            assert one.stdin is not None  # noqa: S101 - the same
            one.stdin.write("go\n")
            one.stdin.flush()
        for one in crowd:
            count, failures, worst = one.communicate()[0].split()
            reports.append((int(count), int(failures), float(worst)))
    counts = [count for count, _, _ in reports]
    return Crowd(
        counts, sum(failures for _, failures, _ in reports), max(worst for *_, worst in reports), sum(counts) / seconds
    )


def table(where: str, raw: float, loads: list[Load], crowd: Crowd, seconds: float) -> str:
    """The section as Markdown."""
    together = f"One process; raw is `executemany` of everything in one transaction with the same index ({raw:,.0f}/s):"
    lines = [
        f"Measured {where}.",
        "",
        together,
        "",
        "| producers | messages/s | ratio to raw | aim | wait p50 | wait p99 |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {load.producers} | {load.rate:,.0f} | {load.ratio:.2f} | {'' if load.aim is None else f'>= {load.aim}'} | "
        f"{load.middle:.1f} ms | {load.slow:.1f} ms |"
        for load in loads
    ]
    share = min(crowd.counts) / max(crowd.counts)
    worst, limit = f"{crowd.wait * 1000:.0f} ms", f"<= {WAIT_AIM * 1000:.0f} ms"
    lines += [
        "",
        f"{PROCESSES} processes with {PRODUCERS_EACH} producers each, {seconds:.0f} s on one file:",
        "",
        "| messages/s together | failures | smallest share / largest | aim | worst wait | aim |",
        "|---:|---:|---:|---:|---:|---:|",
        f"| {crowd.rate:,.0f} | {crowd.failures} | {share:.2f} | >= {SHARE_AIM} | {worst} | {limit} |",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--folder", help="where to store; another disk gives other numbers")
    parser.add_argument("--write", type=Path, help="the document whose section is replaced")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        path, name = options.work
        asyncio.run(work(path, name, options.seconds))
        return
    where = machine()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        raw, loads = one_process(Path(folder), options.rounds)
        crowd = several_processes(Path(folder), options.seconds)
        section = table(where, raw, loads, crowd, options.seconds)
    print(section)
    if options.write:
        write(options.write, "append", "Storing messages", section)


if __name__ == "__main__":
    main()
