"""How long a handoff takes on an idle gateway: from the request to the summary that the person reads in the new place.

    python -m benchmarks.handoff [--count 50] [--write docs/benchmarks.md]

A whole gateway in a process of its own, the real client library, an emulated Telegram; conversations of some dozen
messages, each handed off to a fresh topic, one after another.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from uuid import uuid4

from benchmarks.report import machine, write
from session_store import Home, NewHandoff, PlaceRef, SessionDB
from tests.emulators.telegram import TelegramEmulator
from tests.gateways import GatewayProcess, telegram_home

HOME = PlaceRef("telegram", "main", "dm", "42")
MESSAGES = 24


async def conversation(db: SessionDB) -> str:
    """One that there is something to say about."""
    session_id = await db.create_session(uuid4().hex, "cli", owner="owner")
    for number in range(MESSAGES):
        role = "assistant" if number % 2 else "user"
        await db.append_message(session_id, role, f"message {number} about the deployment of the staging server")
    return session_id


async def handed_off(db: SessionDB, telegram: TelegramEmulator, session_id: str) -> tuple[float, float]:
    """Seconds until the conversation is in its new place, and until its summary has been sent there."""
    before, began = len(telegram.sent), time.perf_counter()
    await db.handoffs.request(NewHandoff(uuid4().hex, "handoff", session_id, Home(HOME, "42"), "owner"))
    news = db.changes.subscribe()
    while not await db.routes.of_session(session_id):
        await news.wait(1.0)
    bound = time.perf_counter() - began
    await telegram.until(lambda: len(telegram.sent) > before, 30)
    return bound, time.perf_counter() - began


async def measure(count: int) -> str:
    """The numbers as a table."""
    with tempfile.TemporaryDirectory() as folder:
        async with TelegramEmulator() as telegram:
            telegram.chat(42)
            home = telegram_home(Path(folder) / "home", telegram.base_url, telegram.token)
            gateway = GatewayProcess(home)
            async with gateway.running(), SessionDB(home / "state.db") as db:
                sessions = [await conversation(db) for _ in range(count + 1)]
                # The first one also pays for the account's first connection.
                await handed_off(db, telegram, sessions.pop())
                times = [await handed_off(db, telegram, session_id) for session_id in sessions]
                await gateway.stop()
    rows = ["| from the request until | median | p95 | worst |", "|---|---|---|---|"]
    for name, column in (("the conversation is in its new place", 0), ("the summary has been sent there", 1)):
        taken = sorted(one[column] for one in times)
        p95 = taken[min(len(taken) - 1, round(0.95 * len(taken)))]
        rows.append(f"| {name} | {statistics.median(taken):.2f} s | {p95:.2f} s | {taken[-1]:.2f} s |")
    return "\n".join(rows)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    measured_on = machine()
    table = asyncio.run(measure(arguments.count))
    section = (
        f"{arguments.count} handoffs of conversations of {MESSAGES} messages to fresh Telegram topics, one after "
        f"another, by an idle gateway in a process of its own; agent `recall`. The aim is a p95 below 2 s.\n\n"
        f"{table}\n\n"
        f"{measured_on}. `python -m benchmarks.handoff`"
    )
    print(section)
    if arguments.write is not None:
        write(arguments.write, "handoff", "Handoff", section)


if __name__ == "__main__":
    main()
