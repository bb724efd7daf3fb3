"""The life signs of a process."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from gateway import heart as module
from gateway.heart import Heart
from session_store import ControlRow, SessionDB, StoreBusy
from tests.conftest import Elsewhere
from tests.unit.gateway_core.hall import Hall, failing


async def test_a_process_is_there_while_it_lives_and_gone_after_an_orderly_end(db: SessionDB) -> None:
    """With its role, its accounts and what it tells."""
    async with Heart(db, "gateway", ["telegram/main"]) as heart:
        await heart.tell({"address": "http://127.0.0.1:1"})
        (row,) = await db.processes.list()
        assert (row["token"], row["role"], row["accounts"], row["alive"]) == (
            heart.token,
            "gateway",
            ["telegram/main"],
            True,
        )
        assert row["detail"] == {"address": "http://127.0.0.1:1"}
    assert await db.processes.list() == []


async def test_an_end_on_a_full_disk_is_an_end(db: SessionDB, logged: list[Any]) -> None:
    """The row stays; the process's death tells the same."""
    with failing(db.processes, "remove", 1):
        async with Heart(db, "gateway"):
            pass
    assert [entry["event"] for entry in logged] == ["process_not_removed"]


async def test_beats_renew_process_and_leases(hall: Hall, elsewhere: Elsewhere) -> None:
    """A process that was forgotten while it slept is there again, and may take leases again."""
    await hall.say("hello")
    (row,) = await hall.db.inbox.pending([("telegram", "main")], hall.holder)
    await hall.db.turns.claim(await hall.workshop.router.request([row], hall.holder), hall.workshop.router.judge)
    elsewhere("UPDATE leases SET beat = 1")
    elsewhere("DELETE FROM processes")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hall.heart.beat, hall.workshop.runner)

        async def beaten() -> bool:
            return bool(elsewhere("SELECT 1 FROM leases WHERE beat > 1"))

        await hall.until(beaten)
        tasks.cancel_scope.cancel()
    (process,) = await hall.db.processes.list()
    assert process["token"] == hall.holder
    assert hall.heart.well


async def test_a_beat_that_cannot_be_written_is_seen_and_tried_again(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`well` says no while the store fails, and yes again afterwards."""
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.01)
    seen: list[bool] = []
    enough = anyio.Event()
    real = hall.db.turns.beat

    async def beat(holder: str) -> None:
        seen.append(hall.heart.well)
        if len(seen) == 5:
            enough.set()
        if len(seen) < 3:
            raise StoreBusy
        await real(holder)

    monkeypatch.setattr(hall.db.turns, "beat", beat)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hall.heart.beat, hall.workshop.runner)
        with anyio.fail_after(20):
            await enough.wait()
        tasks.cancel_scope.cancel()
    assert seen[:5] == [True, False, False, True, True]


async def test_old_rows_are_swept(hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was settled long ago goes; dead processes too."""
    monkeypatch.setattr(module, "FIRST_SWEEP_SECONDS", 0.0)
    async with hall.running():
        await hall.say("hello")
        await hall.quiet()
    other = await hall.db.processes.register("gateway", [])
    elsewhere("UPDATE processes SET boot_id = 'another' WHERE token = ?", other)
    elsewhere("UPDATE inbox SET done_at = 1")
    elsewhere("UPDATE outbox SET updated_at = 1")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hall.heart.beat, hall.workshop.runner)

        async def swept() -> bool:
            left = [elsewhere(f"SELECT COUNT(*) AS n FROM {name}")[0]["n"] for name in ("inbox", "outbox")]  # noqa: S608 - our names
            return left == [0, 0]

        await hall.until(swept)
        tasks.cancel_scope.cancel()
    assert [row["token"] for row in await hall.db.processes.list()] == [hall.holder]


async def test_requests_that_cannot_be_read_are_read_again(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """Obeying outlives a failing store."""
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    read = anyio.Event()
    real = hall.db.control.open_for

    async def open_for(holder: str) -> list[ControlRow]:
        read.set()
        return await real(holder)

    monkeypatch.setattr(hall.db.control, "open_for", open_for)
    with failing(hall.db.control, "open_for", 3):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hall.heart.obey, hall.workshop.runner)
            with anyio.fail_after(20):
                await read.wait()
            tasks.cancel_scope.cancel()
