"""Places and rooms: one row per address, one room per chat."""

from __future__ import annotations

from dataclasses import replace

from session_store.places import ensure_room, place_id, touch_member
from tests.unit.queues.bench import GROUP, HOME, Bench

TOPIC = replace(GROUP, thread="17", name="A topic")


async def test_an_address_is_one_row_and_keeps_the_newest_name(bench: Bench) -> None:
    """Ids are opaque and case-sensitive; a missing name takes nothing away."""
    first = bench.apply(lambda tx: place_id(tx, GROUP))
    assert bench.apply(lambda tx: place_id(tx, replace(GROUP, name="Renamed"))) == first
    assert bench.apply(lambda tx: place_id(tx, replace(GROUP, name=None))) == first
    found = await bench.places.get(first)
    assert found is not None
    assert (found, found.name) == (GROUP, "Renamed")
    others = [
        replace(GROUP, chat="-8"),
        replace(GROUP, account="second"),
        replace(GROUP, platform="slack"),
        TOPIC,
        replace(GROUP, chat="c7"),
        replace(GROUP, chat="C7"),
    ]
    assert len({*bench.apply(lambda tx: [place_id(tx, place) for place in others]), first}) == 7


async def test_an_unknown_place_is_none(bench: Bench) -> None:
    """Rows of other tools may name places that are not there."""
    assert await bench.places.get(99) is None


async def test_all_threads_of_a_chat_are_one_room(bench: Bench) -> None:
    """The room is found again, and its name is the chat's."""
    room = await bench.places.room_of(TOPIC)
    assert bench.value("SELECT name FROM rooms") is None
    assert await bench.places.room_of(GROUP) == room
    assert bench.apply(lambda tx: ensure_room(tx, GROUP)) == room
    assert bench.value("SELECT name FROM rooms") == "The group"
    assert await bench.places.room_of(replace(GROUP, chat="-8")) != room
    assert await bench.places.room_of(replace(GROUP, account="second")) != room


async def test_a_persons_rooms_are_those_where_they_spoke(bench: Bench) -> None:
    """Speaking again changes nothing but the time."""
    await bench.people.sync_config({}, {"ada": {}})
    ada = str(bench.value("SELECT id FROM people WHERE name = 'ada'"))
    room = await bench.places.room_of(GROUP)
    assert await bench.places.rooms_of(ada) == frozenset()
    bench.wall = -60.0
    bench.apply(lambda tx: touch_member(tx, room, ada))
    bench.wall = 0.0
    bench.apply(lambda tx: touch_member(tx, room, ada))
    assert await bench.places.rooms_of(ada) == {room}
    (member,) = bench.rows("SELECT first_at, last_at FROM room_members")
    assert member["last_at"] - member["first_at"] >= 59.0


async def test_a_private_place_is_no_room_by_itself(bench: Bench) -> None:
    """Rooms exist only where somebody asked for one."""
    bench.apply(lambda tx: place_id(tx, HOME))
    assert bench.value("SELECT COUNT(*) FROM rooms") == 0
