"""kill -9 while committing: what was acknowledged is there once, what was not is there whole or not at all."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from pathlib import Path

import pytest

from session_store import SessionDB
from tests.conftest import Elsewhere
from tests.crash.store_children import assert_consistent, child, stored

KILLS = 8


def test_every_acknowledged_message_survives_kill_9(home: Path, elsewhere: Elsewhere) -> None:
    """Killed at random instants, again and again on one file: once each, in order, counters and index right."""
    acknowledged: dict[str, list[str]] = {}
    for round_ in range(KILLS):
        name = f"s{round_}"
        with child("append", home / "state.db", name, 8) as writer:
            writer.until("ack")
            time.sleep(random.uniform(0.0, 0.25))  # noqa: S311 - the instant of the kill, the point of this test
            writer.send(signal.SIGKILL)
            writer.rest()
        acknowledged[name] = writer.acknowledged

    assert_consistent(elsewhere)
    for name, acks in acknowledged.items():
        there = stored(elsewhere, name)
        assert len(there) == len(set(there))
        assert set(acks) <= set(there)
        for producer in range(8):
            mine = [int(op_id.rsplit("-", 1)[1]) for op_id in there if op_id.startswith(f"{name}-{producer}-")]
            assert mine == list(range(len(mine)))


async def test_a_first_opening_killed_at_any_instant_can_be_done_again(home: Path, elsewhere: Elsewhere) -> None:
    """Either there is a whole schema or none; what was begun is in nobody's way."""
    for round_ in range(10):
        path = home / f"{round_}.db"
        with child("open", path) as opener:
            assert opener.line() == "opening"
            await asyncio.sleep(random.uniform(0.0, 0.02))  # noqa: S311 - the instant of the kill
            opener.send(signal.SIGKILL)
            opener.rest()
        async with SessionDB(path) as db:
            await db.create_session("s", "cli")
        assert elsewhere("PRAGMA integrity_check", path=path) == [{"integrity_check": "ok"}]


async def test_work_goes_on_at_once_after_the_holder_of_all_locks_was_killed(home: Path, elsewhere: Elsewhere) -> None:
    """The kernel gives ticket and lock back; nobody waits for a dead process."""
    async with SessionDB(home / "state.db") as db:
        await db.create_session("s", "cli")
        with child("hold", home / "state.db") as holder:
            assert holder.line() == "holding"
            holder.send(signal.SIGKILL)
            holder.rest()
        await db.append_message("s", "user", "after", op_id="after")

    assert stored(elsewhere, "s") == ["after"]


@pytest.mark.parametrize("producers", [1, 64])
def test_a_repeated_operation_is_stored_once(home: Path, elsewhere: Elsewhere, producers: int) -> None:
    """After a crash the outcome of the last operations is unknown: sent again with their ids they change nothing."""
    acknowledged: list[str] = []
    for attempt in range(3):
        with child("append", home / "state.db", "s", producers) as writer:
            writer.until("ack")
            if attempt:
                time.sleep(random.uniform(0.0, 0.1))  # noqa: S311 - the instant of the kill
            writer.send(signal.SIGKILL)
            writer.rest()
            acknowledged = writer.acknowledged

    there = stored(elsewhere, "s")
    assert len(there) == len(set(there))
    assert set(acknowledged) <= set(there)
    assert_consistent(elsewhere)
