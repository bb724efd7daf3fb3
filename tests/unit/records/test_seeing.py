"""Who sees which sessions: judged inside every query that lists, finds or exports."""

from __future__ import annotations

import pytest

from session_store import SessionDB, Visibility

MINE = {"mine": ("p1", None), "mine in the room": ("p1", "r1"), "mine in another room": ("p1", "r2")}
ROOMS = {"the room's": ("r1", "r1"), "another room's": ("r2", "r2")}
OTHERS = {"theirs": ("p2", None), "theirs in the room": ("p2", "r1"), "nobody's": (None, None), "blank": ("", None)}


@pytest.fixture
async def sessions(db: SessionDB) -> SessionDB:
    """Sessions of two people, two rooms and nobody, all with the title Plan but the blank one."""
    for session_id, (owner, room) in {**MINE, **ROOMS, **OTHERS}.items():
        await db.create_session(session_id, "cli", owner=owner, room_id=room)
    return db


@pytest.mark.parametrize(
    ("asker", "seen"),
    [
        (None, {*MINE, *ROOMS, *OTHERS}),
        (Visibility(frozenset({"p1"})), {*MINE}),
        (Visibility(frozenset({"p1", "r1"})), {*MINE, "the room's"}),
        (Visibility(frozenset({"p1", "r1"}), within_room="r1"), {"mine in the room", "the room's"}),
        (Visibility(frozenset({"p1", "r1", "r2"}), within_room="r1"), {"mine in the room", "the room's"}),
        (Visibility(frozenset({"r1"}), within_room="r1"), {"the room's"}),
        (Visibility(frozenset()), set()),
        (Visibility(frozenset({""})), set()),
        (Visibility(frozenset({"p1' OR 1=1 --", '"]'})), set()),
    ],
)
async def test_each_query_shows_what_the_asker_may_see(
    sessions: SessionDB, asker: Visibility | None, seen: set[str]
) -> None:
    """The list, the export, the exact id, the prefix: one rule. Inside a room nothing from outside is seen."""
    db = sessions
    assert {row["id"] for row in await db.list_sessions(limit=100, visible_to=asker)} == seen
    assert {exported["id"] async for exported in db.iter_sessions(visible_to=asker)} == seen
    for session_id in {*MINE, *ROOMS, *OTHERS}:
        assert (await db.resolve_session(session_id, visible_to=asker) == [session_id]) == (session_id in seen)
    assert set(await db.resolve_session("m", visible_to=asker)) == seen & {*MINE}


async def test_the_filter_comes_before_the_limit(db: SessionDB) -> None:
    """Newer sessions of others do not empty my page."""
    await db.create_session("mine", "cli", owner="p1", started_at=1)
    for number in range(20):
        await db.create_session(f"theirs {number}", "cli", owner="p2", started_at=100 + number)
    rows = await db.list_sessions(limit=1, visible_to=Visibility(frozenset({"p1"})))
    assert [row["id"] for row in rows] == ["mine"]


async def test_a_segment_does_not_lead_to_a_tip_that_changed_hands(db: SessionDB) -> None:
    """What was mine may be found by its id; the part that is another's may not be reached through it."""
    await db.create_session("2026-root", "cli", owner="p1", title="Plan")
    await db.end_session("2026-root", "compression")
    await db.create_session("2026-tip", "cli", owner="p2", parent_session_id="2026-root")
    me = Visibility(frozenset({"p1"}))
    assert await db.resolve_session("2026", visible_to=me) == []
    assert await db.resolve_session("2026-root", visible_to=me) == ["2026-root"]
    assert await db.resolve_session_by_title("Plan", visible_to=me) == "2026-root"
    assert await db.resolve_session("2026") == ["2026-tip"]
