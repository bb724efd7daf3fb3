"""Messages that come while a turn runs: found, told, an interruption asked for, or taken into the turn."""

from __future__ import annotations

from typing import Any

import pytest

from session_store.busy import Busy
from session_store.changed import edited
from session_store.errors import FenceLost
from session_store.models import Fence, NewMessage, NewOutbox, PlaceRef
from tests.unit.queues.bench import GROUP, HOME, TELEGRAM, Bench, fence, incoming, never, request

NOTICE = NewOutbox(HOME, "notice", "Please wait.")
TOPIC = PlaceRef("telegram", "main", "group", "-7", "17")


@pytest.fixture
def busy(bench: Bench) -> Busy:
    """What is under test."""
    bench.process("A")
    return Busy(bench)


async def running(bench: Bench, **changes: Any) -> Fence:
    """A turn of Ada's that runs."""
    row = await bench.arrives("m:1", "first", person_id="ada")
    return fence(await bench.turns.claim(request([row], content="first", person_id="ada", **changes), never))


async def test_what_waits_behind_a_turn_is_found_by_its_conversation(bench: Bench, busy: Busy) -> None:
    """Also by another way into it; what waits for nobody, and commands, are not."""
    await running(bench)
    session = bench.value("SELECT id FROM sessions")
    mine = await bench.arrives("m:2", person_id="ada", payload={"text": "x", "message_id": "77"})
    other = await bench.arrives("m:3", person_id="bob")
    await bench.arrives("m:4", kind="command", person_id="ada")
    await bench.arrives("m:5", place=GROUP, person_id="ada")
    by_id = await bench.arrives("w:1", place=GROUP, session_id=session, session_key=None, lane=session, person_id="ada")
    found = await busy.behind(TELEGRAM)
    assert [(one.inbox_id, one.first, one.own, one.steers) for one in found] == [
        (mine, True, True, True),
        (other, False, False, False),
        (by_id, True, True, False),
    ]
    assert (found[0].turn_id, found[0].chat, found[0].message_id) == ("t1", "42", "77")
    assert await busy.behind([("discord", "main")]) == []


async def test_only_the_turns_own_person_interrupts_it(bench: Bench, busy: Busy) -> None:
    """Once, however often it is asked for; the request is closed with the turn."""
    held = await running(bench)
    mine = await bench.arrives("m:2", person_id="ada")
    other = await bench.arrives("m:3", person_id="bob")
    nobody = await bench.arrives("m:4")
    assert not await busy.interrupt(other, "t1")
    assert not await busy.interrupt(nobody, "t1")
    assert not await busy.interrupt(mine, "another turn")
    assert await bench.control.open_for("A") == []
    assert await busy.interrupt(mine, "t1")
    assert await busy.interrupt(mine, "t1")
    (asked,) = await bench.control.open_for("A")
    assert (asked["kind"], asked["turn_id"], asked["person_id"]) == ("cancel", "t1", "ada")
    await bench.turns.interrupt(held, "newer")
    assert await bench.control.open_for("A") == []
    assert not await busy.interrupt(mine, "t1")


async def test_who_waits_is_told_once(bench: Bench, busy: Busy) -> None:
    """One notice for all that wait in the line; later ones get another one, and only the first of a line is told."""
    held = await running(bench)
    first = await bench.arrives("m:2", person_id="ada")
    second = await bench.arrives("m:3", person_id="ada")
    assert not await busy.tell(second, "t1", NOTICE)
    assert await busy.tell(first, "t1", NOTICE)
    assert not await busy.tell(first, "t1", NOTICE)
    await bench.turns.finish(held, NewMessage("assistant", "done"))
    assert not await busy.tell(second, "t1", NOTICE)
    next_turn = fence(await bench.turns.claim(request([first], "t2", person_id="ada"), never))
    assert not await busy.tell(second, "t2", NOTICE)
    late = await bench.arrives("m:4", person_id="ada")
    await bench.turns.finish(next_turn, NewMessage("assistant", "done"))
    await bench.turns.claim(request([second], "t3", person_id="ada"), never)
    assert await busy.tell(late, "t3", NOTICE)
    rows = bench.rows("SELECT body, inbox_id, session_id FROM outbox ORDER BY id")
    assert [(row["body"], row["inbox_id"]) for row in rows] == [("Please wait.", first), ("Please wait.", late)]


async def test_lines_are_told_apart(bench: Bench, busy: Busy) -> None:
    """A notice in one lane says nothing about a lane whose name begins alike."""
    await running(bench)
    session = bench.value("SELECT id FROM sessions")
    longer = await bench.arrives("m:2", person_id="ada", lane="agent:main:telegram:dm:42:user=1", session_id=session)
    shorter = await bench.arrives("m:3", person_id="ada")
    assert await busy.tell(longer, "t1", NOTICE)
    assert await busy.tell(shorter, "t1", NOTICE)


async def test_messages_become_part_of_the_running_turn(bench: Bench, busy: Busy) -> None:
    """In the transcript, in order, taken, once; done with the turn."""
    held = await running(bench)
    await bench.turns.step(held, [NewMessage("assistant", None, tool_calls=[{"id": "c"}], op_id="t1.1")])
    rows = [await bench.arrives(f"m:{number}", f"more {number}", person_id="ada") for number in (2, 3)]
    taken = await busy.steer(held)
    assert [(one.inbox_id, one.text) for one in taken] == [(rows[0], "more 2"), (rows[1], "more 3")]
    assert await busy.steer(held) == []
    stored = bench.rows("SELECT role, content, inbox_id, turn_id, person_id FROM messages ORDER BY id")
    assert [row["content"] for row in stored] == ["first", None, "more 2", "more 3"]
    assert [(row["inbox_id"], row["turn_id"], row["person_id"]) for row in stored[2:]] == [
        (number, "t1", "ada") for number in rows
    ]
    assert [row["id"] for row in await bench.inbox.of_turn("t1")] == [rows[0] - 1, *rows]
    assert bench.value("SELECT message_count FROM sessions") == 4
    await bench.turns.finish(held, NewMessage("assistant", "done"))
    assert {row["state"] for row in bench.rows("SELECT state FROM inbox")} == {"done"}


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "command"},
        {"person_id": "bob"},
        {"person_id": None},
        {"place": TOPIC, "lane": "agent:main:telegram:dm:42"},
        {"payload": {"text": "x", "group_id": "g"}},
        {"payload": {"text": "x", "attachments": [{"name": "a"}]}},
        {"holder": "B"},
    ],
)
async def test_nothing_overtakes_what_cannot_be_taken(bench: Bench, busy: Busy, changes: dict[str, Any]) -> None:
    """What stands in the line before it is worked first; only rows of another process are no part of the line."""
    held = await running(bench)
    await bench.inbox.accept(incoming("m:2", **{"person_id": "ada"} | changes))
    await bench.arrives("m:3", "later", person_id="ada")
    assert [one.text for one in await busy.steer(held)] == (["later"] if "holder" in changes else [])


async def test_a_lost_turn_takes_nothing(bench: Bench, busy: Busy) -> None:
    """The messages stay in the inbox."""
    held = await running(bench)
    await bench.arrives("m:2", person_id="ada")
    before = bench.dump()
    with pytest.raises(FenceLost):
        await busy.steer(Fence(held.root_id, held.turn_id, held.holder, held.number - 1))
    assert bench.dump() == before


async def test_what_was_taken_is_worked_again_with_the_turn_after_a_kill(bench: Bench, busy: Busy) -> None:
    """Whoever takes the turn over finds all of its input, and each message once."""
    held = await running(bench)
    await bench.arrives("m:2", "more", person_id="ada")
    await busy.steer(held)
    bench.kill("A")
    bench.process("B")
    claim = await bench.turns.take_over("t1", "B")
    assert claim.status == "claimed"
    assert [row["payload"]["text"] for row in await bench.inbox.of_turn("t1")] == ["first", "more"]
    assert {row["holder"] for row in bench.rows("SELECT holder FROM inbox")} == {"B"}
    await bench.arrives("m:3", "still more", person_id="ada")
    assert [one.text for one in await busy.steer(fence(claim))] == ["still more"]
    contents = [row["content"] for row in bench.rows("SELECT content FROM messages ORDER BY id")]
    assert contents == ["first", "more", "still more"]


async def test_an_edit_of_a_message_that_was_taken_in_changes_that_message(bench: Bench, busy: Busy) -> None:
    """Not the first one of the turn; and whoever asks finds it under its own row."""
    held = await running(bench)
    row = await bench.arrives("m:2", "more", person_id="ada")
    await busy.steer(held)
    event = incoming("e:2:1", kind="edit", person_id="ada")
    change = bench.apply(lambda tx: edited(tx, event, "m:2", "better", []))
    assert (change.status, change.latest) == ("recorded", True)
    contents = [each["content"] for each in bench.rows("SELECT content FROM messages ORDER BY id")]
    assert contents == ["first", "better"]
    message = await bench.turns.message_of(row)
    assert message is not None
    assert message["content"] == "better"
