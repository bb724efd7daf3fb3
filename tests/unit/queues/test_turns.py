"""Steps and ends of turns: under the fence, as a whole, and without harm when repeated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from session_store.errors import FenceLost, InvalidArgument
from session_store.models import Fence, NewMessage, NewOutbox, Usage
from session_store.sessions import end_session_row, insert_session
from tests.unit.queues.bench import GROUP, HOME, TELEGRAM, Bench, fence, never, request

ANSWER = NewMessage("assistant", "Here it is.", op_id="t1.final")
OUT = [NewOutbox(HOME, "answer", "Here it is.", reply_to="77"), NewOutbox(GROUP, "mirror", "Here it is.")]
CALL = NewMessage("assistant", None, tool_calls=[{"id": "c1"}], op_id="t1.1")
RESULT = NewMessage("tool", "found", tool_call_id="c1", tool_name="search", op_id="t1.2")

End = Callable[[Bench, Fence], Awaitable[int | None]]
ENDS: dict[str, End] = {
    "done": lambda bench, held: bench.turns.finish(held, ANSWER, OUT),
    "interrupted": lambda bench, held: bench.turns.interrupt(held, "stopped", OUT, ANSWER),
    "given_up": lambda bench, held: bench.turns.give_up(held, "too often", OUT, ANSWER),
}
each_end = pytest.mark.parametrize("state", ENDS)


async def test_steps_are_stored_when_they_happen_and_once(bench: Bench) -> None:
    """A repeated step returns the rows that are there."""
    held = fence(await bench.claimed())
    ids = await bench.turns.step(held, [CALL, RESULT])
    assert await bench.turns.step(held, [CALL, RESULT]) == ids
    stored = bench.rows("SELECT id, role, turn_id FROM messages WHERE role <> 'user' ORDER BY id")
    assert [(row["id"], row["role"]) for row in stored] == [(ids[0], "assistant"), (ids[1], "tool")]
    assert {row["turn_id"] for row in stored} == {"t1"}
    assert bench.rows("SELECT message_count, tool_call_count FROM sessions") == [
        {"message_count": 3, "tool_call_count": 1}
    ]


async def test_a_step_needs_names_for_its_messages(bench: Bench) -> None:
    """Without an op_id a repeated step could not be told from a second one."""
    held = fence(await bench.claimed())
    with pytest.raises(InvalidArgument):
        await bench.turns.step(held, [NewMessage("assistant", "x")])


@each_end
async def test_the_end_is_one_whole(bench: Bench, state: str) -> None:
    """Message, outgoing rows with their origin, turn, inbox and lease change together."""
    row = await bench.arrives("m:1")
    held = fence(await bench.turns.claim(request([row]), never))
    message_id = await ENDS[state](bench, held)
    out = bench.rows(
        "SELECT session_id, message_id, turn_id, inbox_id, body, reply_to, state, kind FROM outbox ORDER BY id"
    )
    assert [(one["kind"], one["reply_to"]) for one in out] == [("answer", "77"), ("mirror", None)]
    for one in out:
        assert (one["session_id"], one["message_id"], one["turn_id"]) == ("session-t1", message_id, "t1")
        assert (one["inbox_id"], one["state"]) == (row, "waiting")
    assert bench.value("SELECT state FROM turns") == state
    got = await bench.inbox.get(row)
    assert got is not None
    assert (got["state"], got["payload"]) == ("done", {})
    assert bench.rows("SELECT holder, turn_id, fence FROM leases") == [{"holder": None, "turn_id": None, "fence": 1}]


@each_end
async def test_a_repeated_end_changes_nothing(bench: Bench, state: str) -> None:
    """An end whose outcome was not heard can be asked for again: same message, no second answer."""
    held = fence(await bench.claimed())
    first = await ENDS[state](bench, held)
    before = bench.dump()
    assert await ENDS[state](bench, held) == first
    assert bench.dump() == before


@each_end
async def test_a_turn_ends_in_one_way_only(bench: Bench, state: str) -> None:
    """Whatever comes after the end has lost its fence and writes nothing."""
    held = fence(await bench.claimed())
    await ENDS[state](bench, held)
    before = bench.dump()
    for other in ENDS.keys() - {state}:
        with pytest.raises(FenceLost):
            await ENDS[other](bench, held)
    with pytest.raises(FenceLost):
        await bench.turns.step(held, [CALL])
    with pytest.raises(FenceLost):
        await bench.turns.abandon(held)
    assert bench.dump() == before


async def test_a_turn_may_end_without_a_word(bench: Bench) -> None:
    """A stopped turn that had said nothing leaves no message."""
    held = fence(await bench.claimed())
    assert await bench.turns.interrupt(held, "stopped") is None
    assert bench.value("SELECT COUNT(*) FROM messages WHERE role = 'assistant'") == 0
    assert bench.value("SELECT reason FROM turns") == "stopped"


async def test_the_final_message_is_known_even_without_a_name(bench: Bench) -> None:
    """A turn has one final message; its name is made from the turn."""
    held = fence(await bench.claimed())
    await bench.turns.finish(held, NewMessage("assistant", "hi"))
    assert bench.value("SELECT op_id FROM messages WHERE role = 'assistant'") == "t1.final"


async def test_after_the_end_the_next_message_has_its_turn(bench: Bench) -> None:
    """The lease is free again and its fence has grown."""
    first = fence(await bench.claimed())
    await bench.turns.finish(first, ANSWER)
    second = fence(await bench.claimed("m:2", "t2"))
    assert second.number > first.number


async def test_a_turn_goes_on_in_the_session_that_compression_made(bench: Bench) -> None:
    """The answer belongs to the live tip, also when the turn began before the split."""
    held = fence(await bench.claimed())
    bench.apply(lambda tx: end_session_row(tx, "session-t1", "compression"))
    bench.apply(lambda tx: insert_session(tx, "child", "telegram", parent_session_id="session-t1"))
    await bench.turns.step(held, [CALL])
    message_id = await bench.turns.finish(held, ANSWER, OUT)
    assert bench.value("SELECT session_id FROM messages WHERE id = ?", message_id) == "child"
    assert bench.rows("SELECT DISTINCT session_id FROM outbox") == [{"session_id": "child"}]


async def test_a_turn_left_in_order_is_no_attempt(bench: Bench) -> None:
    """At an orderly end the lease is free at once, the turn still runs and its input is still taken."""
    bench.process("B")
    held = fence(await bench.claimed())
    await bench.turns.abandon(held)
    assert [turn["id"] for turn in await bench.turns.orphaned(TELEGRAM)] == ["t1"]
    taken = await bench.turns.take_over("t1", "B")
    assert (taken.status, taken.attempt) == ("claimed", 1)
    with pytest.raises(FenceLost):
        await bench.turns.step(held, [CALL])


async def test_a_turn_left_in_order_holds_back_later_messages(bench: Bench) -> None:
    """Its question came first."""
    await bench.turns.abandon(fence(await bench.claimed()))
    claim = await bench.claimed("m:2", "t2")
    assert (claim.status, claim.orphan) == ("busy", "t1")


SPENT = [Usage("r1", "m", 10, 5)]
COUNTED = [{"api_call_count": 1, "input_tokens": 10}]


async def test_a_step_and_what_it_cost_are_one_whole(bench: Bench) -> None:
    """Repeated with the same message it costs nothing more; refused with the fence it costs nothing at all."""
    held = fence(await bench.claimed())
    await bench.turns.step(held, [CALL], usage=SPENT)
    await bench.turns.step(held, [CALL], usage=SPENT)
    assert bench.rows("SELECT api_call_count, input_tokens FROM sessions") == COUNTED
    assert bench.rows("SELECT request_id, turn_id, purpose FROM usage") == [
        {"request_id": "r1", "turn_id": "t1", "purpose": "turn"}
    ]
    lost = Fence(held.root_id, held.turn_id, held.holder, held.number + 1)
    with pytest.raises(FenceLost):
        await bench.turns.step(lost, [RESULT], usage=[Usage("r2", "m", 10, 5)])
    assert bench.rows("SELECT api_call_count, input_tokens FROM sessions") == COUNTED


@pytest.mark.parametrize("end", ["finish", "interrupt", "give_up", "abandon"])
async def test_however_a_turn_ends_what_it_cost_is_counted(bench: Bench, end: str) -> None:
    """Also when it is left to the next worker."""
    held = fence(await bench.claimed())
    match end:
        case "finish":
            await bench.turns.finish(held, ANSWER, usage=SPENT)
        case "interrupt":
            await bench.turns.interrupt(held, "stopped", usage=SPENT)
        case "give_up":
            await bench.turns.give_up(held, "timeout", usage=SPENT)
        case _:
            await bench.turns.abandon(held, usage=SPENT)
    assert bench.rows("SELECT api_call_count, input_tokens FROM sessions") == COUNTED


async def test_what_a_model_thought_is_stored_with_its_words(bench: Bench) -> None:
    """In the columns from which it is replayed."""
    held = fence(await bench.claimed())
    thought = NewMessage("assistant", "x", op_id="t1.1", reasoning_content="", reasoning_details=[{"text": "h\u00e4"}])
    await bench.turns.step(held, [thought])
    assert bench.rows("SELECT reasoning_content, reasoning_details FROM messages WHERE role = 'assistant'") == [
        {"reasoning_content": "", "reasoning_details": '[{"text": "h\u00e4"}]'}
    ]
