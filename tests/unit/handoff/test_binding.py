"""The transaction bind: everything that makes a conversation be in its new place, or nothing of it."""

from __future__ import annotations

import pytest

from session_store import FenceLost, PlaceRef, Visibility
from tests.unit.handoff.stage import DIRECT, GROUP, SESSION, THREAD, Stage

OWNER = Visibility(owners=frozenset({"owner"}))


async def test_the_session_goes_on_in_its_place_and_says_so(stage: Stage) -> None:
    """Route, transcript, confirmation and history; the source stays where it was born."""
    await stage.db.end_session(SESSION, "user_exit")
    await stage.brought("one")
    assert await stage.turn(1, DIRECT, "And the spare one?") == SESSION
    session = await stage.db.get_session(SESSION)
    assert session is not None
    assert (session["source"], session["session_key"], session["ended_at"]) == ("cli", "key of 42", None)
    assert [row["content"] for row in await stage.db.get_messages(SESSION)][2:] == [
        "Here it goes on.",
        "And the spare one?",
        "re: And the spare one?",
    ]
    assert await stage.outgoing(DIRECT) == [("handoff", "Here it goes on."), ("answer", "re: And the spare one?")]
    history = await stage.db.place_history.of_session(SESSION)
    assert [(step["how"], step["place"]) for step in history] == [("handoff", DIRECT)]
    done = await stage.db.handoffs.get("one")
    assert done is not None
    assert (done["state"], done["place"]) == ("completed", DIRECT)


async def test_bound_twice_it_is_bound_once(stage: Stage) -> None:
    """A commit whose outcome nobody learnt is submitted again."""
    row, fence = await stage.taken()
    binding = stage.binding(row, fence)
    first = await stage.db.bindings.bind(binding)
    assert await stage.db.bindings.bind(binding) == first
    assert await stage.outgoing(DIRECT) == [("handoff", "Here it goes on.")]


async def test_without_the_lease_nothing_is_bound(stage: Stage) -> None:
    """Somebody else took the conversation while this gateway slept."""
    row, fence = await stage.taken()
    held = await stage.db.handoffs.hold(row["id"], stage.gateway)
    assert held.fence is not None
    with pytest.raises(FenceLost):
        await stage.db.bindings.bind(stage.binding(row, fence))
    assert await stage.outgoing(DIRECT) == []
    await stage.db.bindings.bind(stage.binding(row, held.fence))


async def test_the_former_place_is_told_and_begins_anew(stage: Stage) -> None:
    """A conversation is in one place, unless it is linked."""
    await stage.brought("one")
    room = await stage.db.places.room_of(THREAD)
    await stage.brought("two", THREAD, room_id=room, owner=room, person_id=None)
    assert ("handoff", "Gone to a direct chat.") in await stage.outgoing(DIRECT)
    assert await stage.turn(1, DIRECT, "Hello?") == "fresh-1"
    history = await stage.db.place_history.of_session(SESSION)
    assert [(step["how"], step["place"]) for step in history] == [("handoff", DIRECT), ("handoff", THREAD)]


async def test_into_a_room_it_becomes_the_rooms_and_the_owner_keeps_access(stage: Stage) -> None:
    """Owner, room, index and titles follow; the room's own session of that title keeps it."""
    room = await stage.db.places.room_of(GROUP)
    await stage.db.create_session("other", "slack", owner=room, room_id=room, title="The key")
    await stage.brought("one", THREAD, room_id=room, owner=room, person_id=None)
    session = await stage.db.get_session(SESSION)
    assert session is not None
    assert (session["owner"], session["room_id"], session["title"]) == (room, room, "The key #2")
    assert room in await stage.db.places.rooms_of("owner")
    inside = Visibility(owners=frozenset({room}), within_room=room)
    assert {hit["session_id"] for hit in await stage.db.search_messages("mat", visible_to=inside)} == {SESSION}
    assert await stage.db.search_messages("mat", visible_to=OWNER) == []


async def test_what_belongs_to_a_room_stays_the_rooms_in_a_direct_chat(stage: Stage) -> None:
    """Its people must not lose it."""
    room = await stage.db.places.room_of(GROUP)
    await stage.brought("one", THREAD, room_id=room, owner=room, person_id=None)
    await stage.brought("two", DIRECT)
    session = await stage.db.get_session(SESSION)
    assert session is not None
    assert (session["owner"], session["room_id"]) == (room, room)


async def test_what_was_at_the_place_has_ended_unless_another_place_leads_to_it(stage: Stage) -> None:
    """A direct chat without topics had a session of its own."""
    assert await stage.turn(1, DIRECT, "Something else") == "fresh-1"
    await stage.brought("one")
    former = await stage.db.get_session("fresh-1")
    assert former is not None
    assert former["end_reason"] == "session_switch"


async def test_messages_wait_while_a_handoff_holds_the_conversation(stage: Stage) -> None:
    """They come after it, in the place where they were said."""
    await stage.brought("one")
    _, _ = await stage.taken("two", target=GROUP)
    assert await stage.db.turns.is_held("key of 42", None)


async def test_a_place_that_moved_to_another_id_keeps_all_of_it(stage: Stage) -> None:
    """Homes, history and handoffs name the new chat."""
    from session_store import Home, MovedChat  # noqa: PLC0415 - of this test only

    old, new = PlaceRef("telegram", "main", "group", "-5"), PlaceRef("telegram", "main", "group", "-100")
    await stage.db.home_places.set("owner", Home(old, "42"))
    await stage.brought("one", old)
    await stage.db.moves.move_chat(MovedChat("telegram", "main", "-5", "-100", "key of -5", "key of -100"))
    assert [home.place for home in await stage.db.home_places.of_person("owner", "telegram")] == [new]
    assert (await stage.db.place_history.of_session(SESSION))[-1]["place"] == new
