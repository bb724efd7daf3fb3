"""A process that uses a store, for tests that kill, stop or starve it. Run as a script; talks in lines.

append PATH NAME PRODUCERS [SECONDS]  appends messages to session NAME; prints `ack OP_ID` after each commit, and
                                      `failed ...` for errors; at the end `done COUNT WORST_WAIT`
open PATH                             prints `opening`, opens the store, prints `opened`
hold PATH                             takes the ticket and a write transaction, prints `holding`, keeps them
ticket PATH                           takes the ticket alone, prints `holding`, keeps it
snapshot PATH                         starts a read transaction, prints `holding`, ends at the next line of input
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from session_store import SessionDB, StoreError
from session_store.driver import connect
from session_store.files import StoreFiles
from session_store.ticket import Ticket


def say(*words: object) -> None:
    """One line to whoever started us, at once."""
    print(*words, flush=True)  # noqa: T201 - the way to speak to the test


async def append(path: str, name: str, producers: int, seconds: float) -> None:
    """Append until the time is over, each producer waiting for its commit before the next message."""
    worst, count = 0.0, 0
    until = time.monotonic() + seconds

    async def produce(db: SessionDB, producer: int) -> None:
        nonlocal worst, count
        number = 0
        while time.monotonic() < until:
            op_id = f"{name}-{producer}-{number}"
            started = time.monotonic()
            try:
                await db.append_message(name, "user", f"{op_id} quokka number {number} in some words", op_id=op_id)
            except StoreError as error:
                say("failed", op_id, type(error).__name__, error)
                await asyncio.sleep(0.05)  # a person would not retry faster; the next message is another one
            else:
                say("ack", op_id)
                count += 1
                worst = max(worst, time.monotonic() - started)
            number += 1

    async with SessionDB(path) as db:
        await db.create_session(name, "cli")
        say("ready")
        async with asyncio.TaskGroup() as group:
            for producer in range(producers):
                group.create_task(produce(db, producer))
    say("done", count, worst)


async def open_once(path: str) -> None:
    """Open, and nothing more."""
    say("opening")
    async with SessionDB(path):
        say("opened")


def hold(path: str) -> None:
    """Be in the middle of a transaction."""
    ticket = Ticket(StoreFiles(path).lock, patient=False)
    ticket.acquire(10)
    connection = connect(Path(path), "rw")
    connection.execute("BEGIN IMMEDIATE")
    say("holding")
    sys.stdin.readline()


def hold_ticket(path: str) -> None:
    """Hold the ticket and nothing else."""
    ticket = Ticket(StoreFiles(path).lock, patient=False)
    say("holding" if ticket.acquire(10) else "not holding")
    sys.stdin.readline()


def snapshot(path: str) -> None:
    """Park a reader on an old state."""
    connection = connect(Path(path), "rw")
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM messages").fetchone()
    say("holding")
    sys.stdin.readline()
    connection.close()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["append", path, name, producers, *rest]:
            asyncio.run(append(path, name, int(producers), float(rest[0]) if rest else 3600))
        case ["open", path]:
            asyncio.run(open_once(path))
        case ["hold", path]:
            hold(path)
        case ["ticket", path]:
            hold_ticket(path)
        case ["snapshot", path]:
            snapshot(path)
        case arguments:
            sys.exit(f"unknown: {arguments}")
