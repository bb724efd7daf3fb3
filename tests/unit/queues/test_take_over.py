"""Taking over: turns of dead processes are found, go to exactly one other, and the former holder can write no more."""

from __future__ import annotations

import asyncio

import pytest

from session_store.errors import FenceLost, InvalidArgument
from session_store.models import NewMessage, NewOutbox
from tests.unit.queues.bench import HOME, TELEGRAM, Bench, fence, never, request

STEP = NewMessage("assistant", "thinking", op_id="t1.1")
ANSWER = NewMessage("assistant", "answer", op_id="t1.final")


async def test_a_turn_of_a_living_process_is_not_orphaned(bench: Bench) -> None:
    """Nobody can take it."""
    bench.process("B")
    await bench.claimed()
    assert await bench.turns.orphaned(TELEGRAM) == []
    assert await bench.turns.orphaned_in("session-t1") == []
    before = bench.dump()
    assert (await bench.turns.take_over("t1", "B")).status == "busy"
    assert bench.dump() == before


async def test_a_turn_of_a_dead_process_goes_to_one_other(bench: Bench) -> None:
    """Of two that try at once one wins; the input goes with the turn and the attempt is counted."""
    bench.process("B")
    bench.process("C")
    first = await bench.claimed()
    bench.kill("A")
    assert [turn["id"] for turn in await bench.turns.orphaned(TELEGRAM)] == ["t1"]
    both = await asyncio.gather(bench.turns.take_over("t1", "B"), bench.turns.take_over("t1", "C"))
    assert sorted(claim.status for claim in both) == ["busy", "claimed"]
    (won,) = [claim for claim in both if claim.status == "claimed"]
    assert (won.attempt, won.session_id, won.message_id) == (2, first.session_id, first.message_id)
    assert fence(won).number > fence(first).number
    (row,) = await bench.inbox.of_turn("t1")
    assert (row["holder"], row["attempts"], row["payload"]) == (fence(won).holder, 2, {"text": "hello"})
    assert await bench.turns.orphaned(TELEGRAM) == []


async def test_who_lost_a_turn_writes_nothing_more(bench: Bench) -> None:
    """Every durable step of the former holder is refused as a whole."""
    bench.process("B")
    held = fence(await bench.claimed())
    bench.kill("A")
    await bench.turns.take_over("t1", "B")
    before = bench.dump()
    out = [NewOutbox(HOME, "answer", "answer")]
    with pytest.raises(FenceLost):
        await bench.turns.step(held, [STEP])
    with pytest.raises(FenceLost):
        await bench.turns.finish(held, ANSWER, out)
    with pytest.raises(FenceLost):
        await bench.turns.give_up(held, "x", out)
    with pytest.raises(FenceLost):
        await bench.turns.interrupt(held, "x", out)
    with pytest.raises(FenceLost):
        await bench.turns.abandon(held)
    assert bench.dump() == before


async def test_a_process_that_slept_loses_its_turn_although_it_lives(bench: Bench) -> None:
    """A minute without a beat on the boot clock is enough; the sleeper then finds out at its next step."""
    bench.process("B")
    bench.boot = -61.0
    bench.process("A")
    held = fence(await bench.claimed())
    bench.boot = 0.0
    assert (await bench.turns.take_over("t1", "B")).status == "claimed"
    with pytest.raises(FenceLost):
        await bench.turns.step(held, [STEP])


async def test_a_process_never_finds_its_own_turn_orphaned(bench: Bench) -> None:
    """When the machine wakes up the first beat may come after the first look; the turn goes on."""
    bench.boot = -61.0
    bench.process("A")
    held = fence(await bench.claimed())
    bench.boot = 0.0
    assert await bench.turns.orphaned(TELEGRAM) == []
    assert await bench.turns.orphaned_in("session-t1") == []
    assert (await bench.claimed("m:2", "t2")).orphan is None
    assert len(await bench.turns.step(held, [STEP])) == 1


async def test_a_beat_keeps_the_turn(bench: Bench) -> None:
    """Process and leases are renewed together."""
    bench.process("B")
    bench.boot = -61.0
    bench.process("A")
    held = fence(await bench.claimed())
    bench.boot = 0.0
    await bench.turns.beat("A")
    assert (await bench.turns.take_over("t1", "B")).status == "busy"
    assert len(await bench.turns.step(held, [STEP])) == 1


async def test_a_lease_without_beats_is_lost_although_the_process_beats(bench: Bench) -> None:
    """A process that forgot its turn does not hold it for ever."""
    bench.process("B")
    bench.boot = -61.0
    bench.process("A")
    await bench.claimed()
    bench.boot = 0.0
    await bench.processes.beat("A")
    assert (await bench.turns.take_over("t1", "B")).status == "claimed"


async def test_a_process_taken_out_in_order_holds_nothing(bench: Bench) -> None:
    """What it still held may be taken over at once."""
    bench.process("B")
    await bench.claimed()
    await bench.processes.remove("A")
    assert (await bench.turns.take_over("t1", "B")).status == "claimed"


async def test_an_ended_turn_is_gone(bench: Bench) -> None:
    """There is nothing to take over, nor of a turn that never was."""
    await bench.turns.finish(fence(await bench.claimed()), ANSWER)
    assert (await bench.turns.take_over("t1", "A")).status == "gone"
    assert (await bench.turns.take_over("unknown", "A")).status == "gone"


async def test_every_interruption_is_counted(bench: Bench) -> None:
    """So that a turn which kills its process is given up in the end."""
    attempts = [(await bench.claimed()).attempt]
    for former, token in [("A", "B"), ("B", "C"), ("C", "D")]:
        bench.process(token)
        bench.kill(former)
        attempts.append((await bench.turns.take_over("t1", token)).attempt)
    assert attempts == [1, 2, 3, 4]


async def test_the_holder_itself_may_begin_again_and_shuts_its_former_worker_out(bench: Bench) -> None:
    """A worker that broke inside a living process is replaced; the two cannot both write."""
    first = fence(await bench.claimed())
    again = await bench.turns.take_over("t1", "A")
    assert again.attempt == 2
    with pytest.raises(FenceLost):
        await bench.turns.step(first, [STEP])
    assert len(await bench.turns.step(fence(again), [STEP])) == 1


async def test_orphans_are_those_of_the_asked_accounts_oldest_first(bench: Bench) -> None:
    """A gateway looks after what came in through its accounts."""
    for n in (1, 2, 3):
        row = await bench.arrives(f"m:{n}")
        claim = await bench.turns.claim(request([row], f"t{n}", session_key=f"k{n}"), never)
        assert claim.status == "claimed"
    bench.kill("A")
    assert [turn["id"] for turn in await bench.turns.orphaned(TELEGRAM)] == ["t1", "t2", "t3"]
    assert [turn["id"] for turn in await bench.turns.orphaned(TELEGRAM, limit=2)] == ["t1", "t2"]
    assert await bench.turns.orphaned([("discord", "main")]) == []
    assert [turn["id"] for turn in await bench.turns.orphaned_in("session-t2")] == ["t2"]
    assert await bench.turns.orphaned_in("no such session") == []


async def test_taking_over_needs_a_registered_process(bench: Bench) -> None:
    """Otherwise the turn would be orphaned again at once."""
    await bench.claimed()
    bench.kill("A")
    with pytest.raises(InvalidArgument):
        await bench.turns.take_over("t1", "stranger")


async def test_a_turn_taken_over_is_finished_with_its_own_rows(bench: Bench) -> None:
    """The second attempt ends the turn as the first would have."""
    bench.process("B")
    held = fence(await bench.claimed())
    await bench.turns.step(held, [STEP])
    bench.kill("A")
    taken = await bench.turns.take_over("t1", "B")
    await bench.turns.finish(fence(taken), ANSWER, [NewOutbox(HOME, "answer", "answer")])
    assert [row["content"] for row in bench.rows("SELECT content FROM messages ORDER BY id")] == [
        "hello",
        "thinking",
        "answer",
    ]
    assert await bench.inbox.counts() == {"new": 0, "taken": 0, "set_aside": 0}
    assert bench.value("SELECT COUNT(*) FROM outbox") == 1


async def test_a_turn_whose_session_another_tool_deleted_ends_and_its_input_is_new_again(bench: Bench) -> None:
    """The message is not lost with the session: the next claim makes a fresh one of it."""
    bench.process("B")
    await bench.claimed()
    bench.kill("A")
    bench.connection.execute("PRAGMA foreign_keys = OFF")
    bench.apply(lambda tx: tx.run("DELETE FROM messages"))
    bench.apply(lambda tx: tx.run("DELETE FROM sessions"))
    bench.connection.execute("PRAGMA foreign_keys = ON")

    assert (await bench.turns.take_over("t1", "B")).status == "gone"

    assert await bench.turns.orphaned(TELEGRAM) == []
    ((row, _),) = await bench.inbox.heads(TELEGRAM, "B", limit=5, busy_lanes=[])
    assert (row["state"], row["turn_id"], row["payload"]) == ("new", None, {"text": "hello"})
