"""Stop requests: they reach the process that runs the turn, and end with it."""

from __future__ import annotations

from session_store.models import NewMessage
from tests.unit.queues.bench import Bench, fence

ROOT = "session-t1"


async def test_a_stop_reaches_the_process_that_runs_the_turn(bench: Bench) -> None:
    """Nobody else sees it, and nobody after it is done."""
    bench.process("B")
    await bench.claimed()
    assert await bench.control.request_stop(ROOT, "owner")
    assert await bench.control.open_for("B") == []
    (row,) = await bench.control.open_for("A")
    assert (row["kind"], row["root_id"], row["turn_id"], row["person_id"]) == ("stop", ROOT, "t1", "owner")
    await bench.control.done(row["id"])
    assert await bench.control.open_for("A") == []


async def test_asking_twice_is_one_request(bench: Bench) -> None:
    """Impatience does not stop the next turn too."""
    await bench.claimed()
    assert await bench.control.request_stop(ROOT, "owner")
    assert await bench.control.request_stop(ROOT, "owner")
    assert len(await bench.control.open_for("A")) == 1


async def test_without_a_running_turn_nothing_is_asked(bench: Bench) -> None:
    """A stop is for a turn, never for the next one."""
    assert not await bench.control.request_stop(ROOT, "owner")
    assert bench.value("SELECT COUNT(*) FROM control") == 0


async def test_the_end_of_the_turn_closes_its_requests(bench: Bench) -> None:
    """An answer that was quicker than the stop leaves nothing behind."""
    held = fence(await bench.claimed())
    await bench.control.request_stop(ROOT, "owner")
    await bench.turns.finish(held, NewMessage("assistant", "hi"))
    await bench.claimed("m:2", "t2")
    assert await bench.control.open_for("A") == []


async def test_a_turn_taken_over_is_still_to_be_stopped(bench: Bench) -> None:
    """What a person stopped is not resumed by the next process."""
    bench.process("B")
    await bench.claimed()
    await bench.control.request_stop(ROOT, "owner")
    bench.kill("A")
    await bench.turns.take_over("t1", "B")
    assert [row["turn_id"] for row in await bench.control.open_for("B")] == ["t1"]


async def test_old_requests_are_closed_and_forgotten(bench: Bench) -> None:
    """Requests whose turn is gone are closed; a day later they are removed. Open ones stay."""
    await bench.claimed()
    await bench.control.request_stop(ROOT, "owner")
    await bench.control.expire()
    assert len(await bench.control.open_for("A")) == 1
    bench.wall = -2 * 86_400.0
    bench.apply(lambda tx: tx.run("UPDATE turns SET state = 'done'"))
    await bench.control.expire()
    assert bench.value("SELECT COUNT(*) FROM control WHERE done_at IS NOT NULL") == 1
    bench.wall = 0.0
    await bench.control.expire()
    assert bench.value("SELECT COUNT(*) FROM control") == 0
