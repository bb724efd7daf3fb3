"""/resume as the store sees it: a place is led to another conversation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from session_store.errors import NotFound
from session_store.finding import last_used_at
from session_store.models import OfferSessions, PlaceRef, ResumeSession, Visibility
from session_store.people import ensure_allowed
from session_store.places import ensure_room
from session_store.sessions import end_session_row, insert_session
from session_store.taking_up import OFFER_SECONDS
from session_store.tx import Tx
from tests.unit.queues.bench import GROUP, HOME, Bench, request

KEY = "agent:main:telegram:dm:42"
OWNER_SEES = Visibility(frozenset({"owner"}))
BACK = ResumeSession("old", HOME, OWNER_SEES, KEY, "owner")


@pytest.fixture
async def led(bench: Bench) -> Bench:
    """A chat in its session `session-t1`, and an ended conversation `old` -> `tip` that was compressed."""
    await bench.claimed()
    bench.apply(lambda tx: tx.run("UPDATE turns SET state = 'done'"))

    def make(tx: Tx) -> None:
        insert_session(tx, "old", "cli", owner="owner", title="Plans")
        end_session_row(tx, "old", "compression")
        insert_session(tx, "tip", "cli", parent_session_id="old")
        insert_session(tx, "branch", "cli", parent_session_id="old", kind="branch")
        end_session_row(tx, "tip", "user_exit")

    bench.apply(make)
    return bench


def ended(bench: Bench) -> dict[str, str | None]:
    """Why each session has ended."""
    return {row["id"]: row["end_reason"] for row in bench.rows("SELECT id, end_reason FROM sessions")}


async def test_the_place_leads_to_the_live_tip_which_is_open_again(led: Bench) -> None:
    """Whichever segment was named; the session that was left has ended, and nothing else has changed."""
    assert await led.effects.apply([BACK]) == ["tip"]
    session = await led.routes.session_for(KEY)
    assert session is not None
    assert session["id"] == "tip"
    assert ended(led) == {"session-t1": "resumed_other", "old": "compression", "tip": None, "branch": None}


async def test_taken_up_twice_it_is_the_same(led: Bench) -> None:
    """An effect whose outcome is unknown may be submitted again: nothing ends that was taken up."""
    await led.effects.apply([BACK])
    before = ended(led), led.rows("SELECT session_key, session_id, place_id FROM routes")
    assert await led.effects.apply([BACK]) == ["tip"]
    assert (ended(led), led.rows("SELECT session_key, session_id, place_id FROM routes")) == before


async def test_what_other_places_lead_to_does_not_end(led: Bench) -> None:
    """Leaving a conversation here does not cut it off elsewhere."""
    led.apply(lambda tx: tx.run("INSERT INTO routes VALUES ('elsewhere', 'session-t1', 1, NULL, 0, 0, 0)"))
    await led.effects.apply([BACK])
    assert ended(led)["session-t1"] is None


async def test_where_there_is_no_route_the_named_session_is_left(led: Bench) -> None:
    """The terminal names the one it comes from; one that nobody has stored yet is no trouble."""
    led.apply(lambda tx: insert_session(tx, "here", "cli", owner="owner"))
    await led.effects.apply([replace(BACK, session_key=None, leaves="here")])
    assert ended(led)["here"] == "resumed_other"
    assert await led.effects.apply([replace(BACK, session_key=None, leaves="never stored")]) == ["tip"]


@pytest.mark.parametrize("sees", [Visibility(frozenset()), Visibility(frozenset({"p1"})), Visibility(frozenset({""}))])
async def test_what_the_asker_may_not_see_is_not_there(led: Bench, sees: Visibility) -> None:
    """It is looked at again in the transaction; the answer is that for a session that never was."""
    before = led.dump()
    with pytest.raises(NotFound) as foreign:
        await led.effects.apply([replace(BACK, visible_to=sees)])
    with pytest.raises(NotFound) as unknown:
        await led.effects.apply([replace(BACK, session_id="never")])
    assert str(foreign.value) == str(unknown.value)
    assert led.dump() == before


async def test_a_session_without_an_owner_is_nobodys(led: Bench) -> None:
    """Not even somebody whose visibility is blank gets it."""
    led.apply(lambda tx: insert_session(tx, "library", "cli"))
    with pytest.raises(NotFound):
        await led.effects.apply([replace(BACK, session_id="library", visible_to=Visibility(frozenset({"", "owner"})))])


async def test_given_to_a_room_all_segments_move_and_the_former_owner_still_sees_it(led: Bench) -> None:
    """The title stays where it is free; the former owner counts as one of the room."""
    room = led.apply(lambda tx: ensure_room(tx, GROUP))
    person = led.apply(lambda tx: ensure_allowed(tx, "telegram", "", "9", "Nine"))
    led.apply(lambda tx: tx.run("UPDATE sessions SET owner = ? WHERE id IN ('old', 'tip')", (person,)))
    sees = Visibility(frozenset({person}))
    await led.effects.apply([ResumeSession("old", GROUP, sees, "group", person, given_to=(room, room))])
    rows = led.rows("SELECT id, owner, room_id, title FROM sessions WHERE id IN ('old', 'tip') ORDER BY id")
    assert [(row["owner"], row["room_id"], row["title"]) for row in rows] == [(room, room, "Plans"), (room, room, None)]
    assert await led.places.rooms_of(person) == {room}


async def test_a_title_that_the_new_owner_has_gets_a_number(led: Bench) -> None:
    """Both conversations keep a name of their own."""
    room = led.apply(lambda tx: ensure_room(tx, GROUP))
    led.apply(lambda tx: insert_session(tx, "theirs", "telegram", owner=room, room_id=room, title="PLANS"))
    await led.effects.apply([replace(BACK, session_key="group", place=GROUP, given_to=(room, room))])
    titles = {row["id"]: row["title"] for row in led.rows("SELECT id, title FROM sessions WHERE title IS NOT NULL")}
    assert titles == {"theirs": "PLANS", "old": "Plans #2"}


async def test_a_conversation_that_was_taken_up_counts_as_active_from_then_on(led: Bench) -> None:
    """Else the next message would begin another one at once, for a long pause that is over."""
    await led.effects.apply([BACK])
    seen: list[float] = []
    led.apply(lambda tx: tx.run("UPDATE sessions SET last_active = 1 WHERE id = 'tip'"))
    row = await led.arrives("m:2")
    claim = await led.turns.claim(request([row], "t2"), lambda session, _at: seen.append(session["last_active"] or 0.0))
    assert claim.session_id == "tip"
    assert seen[0] > 1_000_000


async def test_a_number_means_what_the_last_list_showed(led: Bench) -> None:
    """Each asker has a list of their own; a new list takes the place of the old one."""
    await led.effects.apply([OfferSessions("a", ["one", "two"]), OfferSessions("b", ["three"])])
    await led.effects.apply([OfferSessions("b", ["four", "five"])])
    assert await led.effects.offered("a") == ["one", "two"]
    assert await led.effects.offered("b") == ["four", "five"]
    assert await led.effects.offered("c") == []


async def test_a_list_is_forgotten_after_a_day(led: Bench) -> None:
    """A number of the day before means nothing any more, and nothing is kept for ever."""
    led.wall = -OFFER_SECONDS - 60
    await led.effects.apply([OfferSessions("a", ["one"])])
    led.wall = 0.0
    assert await led.effects.offered("a") == []
    await led.effects.apply([OfferSessions("b", [])])
    assert led.value("SELECT COUNT(*) FROM offered") == 1


async def test_where_somebody_last_spoke_tells_turns_not_births(led: Bench) -> None:
    """A conversation that was begun elsewhere and went on here was last used here."""
    found = led.look(lambda rx: last_used_at(rx, HOME, Visibility(frozenset({"owner", "p1"}))))
    assert found is not None
    assert found["id"] == "session-t1"
    assert led.look(lambda rx: last_used_at(rx, HOME, Visibility(frozenset({"nobody"})))) is None
    assert led.look(lambda rx: last_used_at(rx, PlaceRef("cli", "main", "dm", "terminal"), OWNER_SEES)) is None
