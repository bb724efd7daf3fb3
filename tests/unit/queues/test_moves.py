"""A chat lives on under another id: everything moves at once, whatever was told first, however often."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from session_store.models import MovedChat, NewMessage, NewOutbox, PlaceRef
from session_store.moves import Moves, move_chat
from tests.unit.queues.bench import TELEGRAM, Bench, fence, never, request

OLD, NEW = PlaceRef("telegram", "main", "group", "-5"), PlaceRef("telegram", "main", "group", "-100")
KEY, NEW_KEY = "agent:main:telegram:group:-5", "agent:main:telegram:group:-100"
MOVE = MovedChat("telegram", "main", "-5", "-100", KEY, NEW_KEY)


async def spoken(bench: Bench, number: int, place: PlaceRef = OLD, key: str = f"{KEY}:user=42") -> str:
    """A message that was answered there; its session."""
    row = await bench.arrives(f"m:{place.chat}:{number}", place=place, session_key=key, lane=key)
    room = await bench.places.room_of(place)
    bench.apply(lambda tx: tx.run("INSERT OR IGNORE INTO people VALUES ('owner', 'owner', NULL, 0)"))
    wanted = request(
        [row],
        f"t{place.chat}{number}",
        place=place,
        session_key=key,
        lane=key,
        room_id=room,
        owner=room,
        person_id="owner",
        platform_message_id=str(number),
    )
    claim = await bench.turns.claim(wanted, never)
    answer = [NewOutbox(place, "answer", f"answer {number}", reply_to=str(number))]
    await bench.turns.finish(fence(claim), NewMessage("assistant", "answer"), answer)
    assert claim.session_id is not None
    return claim.session_id


async def test_everything_moves_and_the_conversation_goes_on(bench: Bench) -> None:
    """Address, routes, keys, room, what waits in both queues; dedupe keys stay, replies answer no number of before."""
    session = await spoken(bench, 1)
    waiting = await bench.arrives("m:-5:2", place=OLD, session_key=f"{KEY}:user=42", lane=f"{KEY}:user=42")
    stop = await bench.arrives("m:-5:3", place=OLD, session_key=f"{KEY}:user=42", lane=f"{KEY}:user=42 now")
    other = await bench.arrives("m:-55:1", place=replace(OLD, chat="-55"), session_key=f"{KEY}5", lane=f"{KEY}5")
    room = await bench.places.room_of(OLD)

    assert await Moves(bench).move_chat(MOVE)

    row = await bench.inbox.get(waiting)
    assert row is not None
    assert (row["chat"], row["session_key"], row["lane"]) == ("-100", f"{NEW_KEY}:user=42", f"{NEW_KEY}:user=42")
    assert (row["dedupe_key"], row["payload"]["message_id"]) == ("m:-5:2", None)
    assert bench.value("SELECT lane FROM inbox WHERE id = ?", stop) == f"{NEW_KEY}:user=42 now"
    assert bench.value("SELECT lane FROM inbox WHERE id = ?", other) == f"{KEY}5"
    found = await bench.routes.session_for(f"{NEW_KEY}:user=42")
    assert found is not None
    assert (found["id"], found["session_key"]) == (session, f"{NEW_KEY}:user=42")
    assert await bench.routes.session_for(f"{KEY}:user=42") is None
    assert await bench.places.room_of(NEW) == room
    (owed,) = await bench.outbox.due(TELEGRAM)
    assert (owed["chat"], owed["reply_to"]) == ("-100", None)


async def test_told_again_or_from_the_other_side_nothing_changes(bench: Bench) -> None:
    """Idempotent, and false when there was nothing to move."""
    await spoken(bench, 1)
    assert await Moves(bench).move_chat(MOVE)
    before = bench.dump()
    assert not await Moves(bench).move_chat(MOVE)
    assert bench.dump() == before


async def test_of_an_unknown_chat_nothing_is_kept(bench: Bench) -> None:
    """Groups that never spoke to us leave no trace."""
    before = bench.dump()
    assert not await Moves(bench).move_chat(MOVE)
    assert bench.dump() == before


@pytest.mark.parametrize("order", list(itertools.permutations(["old", "new", "move"])))
async def test_in_any_order_of_messages_and_signals_it_comes_to_the_same(bench: Bench, order: tuple[str, ...]) -> None:
    """One address, one route to the older conversation, one room; both messages are answered."""
    await spoken(bench, 1)
    sessions = {}
    for number, step in enumerate(order, start=2):
        if step == "move":
            await Moves(bench).move_chat(MOVE)
        else:
            moved = await Moves(bench).moved_to("telegram", "main", "-5") is not None
            where, key = (OLD, KEY) if step == "old" and not moved else (NEW, NEW_KEY)
            sessions[step] = await spoken(bench, number, where, f"{key}:user=42")
    await Moves(bench).move_chat(MOVE)

    elder = bench.value("SELECT id FROM sessions ORDER BY rowid LIMIT 1")
    assert bench.rows("SELECT session_key, session_id FROM routes") == [
        {"session_key": f"{NEW_KEY}:user=42", "session_id": elder}
    ]
    assert [row["chat"] for row in bench.rows("SELECT chat FROM places")] == ["-100"]
    rooms = bench.rows("SELECT id, chat FROM rooms")
    assert [room["chat"] for room in rooms] == ["-100"]
    assert {row["owner"] for row in bench.rows("SELECT owner FROM sessions")} == {rooms[0]["id"]}
    assert bench.value("SELECT COUNT(*) FROM messages WHERE role = 'user'") == 3
    assert bench.rows("PRAGMA foreign_key_check") == []


async def test_what_still_names_the_old_chat_goes_to_the_new_one(bench: Bench) -> None:
    """A turn that ran meanwhile: its answer, and a claim of a row that was read before."""
    row = await bench.arrives("m:-5:1", place=OLD, session_key=KEY, lane=KEY)
    late = await bench.arrives("m:-5:2", place=OLD, session_key=KEY, lane=KEY)
    running = await bench.turns.claim(request([row], place=OLD, session_key=KEY, lane=KEY), never)
    await Moves(bench).move_chat(MOVE)
    answer = NewOutbox(OLD, "answer", "the answer", reply_to="1")
    await bench.turns.finish(fence(running), NewMessage("assistant", "the answer"), [answer])
    claim = await bench.turns.claim(request([late], "t2", place=OLD, session_key=KEY, lane=KEY), never)

    assert claim.session_id == running.session_id
    (owed,) = await bench.outbox.due(TELEGRAM)
    assert (owed["chat"], owed["reply_to"]) == ("-100", None)
    assert [place["chat"] for place in bench.rows("SELECT chat FROM places")] == ["-100"]
    assert bench.rows("SELECT session_key FROM routes") == [{"session_key": NEW_KEY}]


async def test_a_kill_inside_moves_nothing(bench: Bench) -> None:
    """All or nothing."""
    await spoken(bench, 1)
    before = bench.dump()

    def torn(tx: Any) -> None:
        move_chat(tx, MOVE)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.apply(torn)
    assert bench.dump() == before


async def test_a_dead_topic_is_unbound_and_nothing_else(bench: Bench) -> None:
    """Its session stays and can be found; the chat and other topics keep their routes."""
    topics = [replace(NEW, thread=thread) for thread in ("17", "18", "")]
    for number, topic in enumerate(topics):
        key = f"{NEW_KEY}:thread={topic.thread}" if topic.thread else NEW_KEY
        await spoken(bench, number, topic, key)
    assert await bench.routes.unbind(topics[0]) == 1
    assert await bench.routes.unbind(topics[0]) == 0
    assert {row["session_key"] for row in bench.rows("SELECT session_key FROM routes")} == {
        f"{NEW_KEY}:thread=18",
        NEW_KEY,
    }
    assert bench.value("SELECT COUNT(*) FROM sessions") == 3
