"""Lists: one row per conversation, newest activity first, filtered before limited."""

from __future__ import annotations

from typing import Any

import pytest

from session_store import SessionDB


async def spoken(db: SessionDB, session_id: str, at: float, source: str = "cli", **columns: Any) -> None:
    """Make a session in which something was said at this time."""
    await db.create_session(session_id, source, started_at=at - 1, **columns)
    await db.append_message(session_id, "user", f"hello from {session_id}", timestamp=at)


async def ids(db: SessionDB, **filters: Any) -> list[str]:
    """Return the ids of a list."""
    return [row["id"] for row in await db.list_sessions(**filters)]


async def test_the_newest_activity_is_first_and_pages_follow(db: SessionDB) -> None:
    """By the last message, not by the start; a session without messages counts by its start."""
    await spoken(db, "old", 100)
    await spoken(db, "new", 300)
    await db.create_session("empty", "cli", started_at=200)
    await db.append_message("old", "assistant", "again", timestamp=400)
    assert await ids(db) == ["old", "new", "empty"]
    assert await ids(db, limit=2) == ["old", "new"]
    assert await ids(db, limit=2, offset=2) == ["empty"]
    assert await ids(db, limit=0) == []
    assert await ids(db, limit=-1) == []
    assert await ids(db, offset=3) == []


async def test_a_row_says_what_a_person_needs(db: SessionDB) -> None:
    """Every field of the list row, from root and tip."""
    await spoken(db, "a", 100, model="m1", title="Work")
    await db.append_message("a", "assistant", "hi", timestamp=110)
    await db.end_session("a", "compression")
    await db.create_session("b", "cli", model="m2", parent_session_id="a", started_at=120)
    await db.append_message("b", "user", "later", timestamp=130)
    await db.set_session_title("b", "Work")
    assert await db.list_sessions() == [
        {
            "id": "b",
            "title": "Work",
            "source": "cli",
            "preview": "hello from a",
            "last_active": 130.0,
            "started_at": 99.0,
            "ended_at": None,
            "message_count": 3,
            "model": "m2",
            "person": None,
        }
    ]


@pytest.mark.parametrize(
    ("content", "preview"),
    [
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 60 + "..."),
        ("two\nlines\t and \r\n more", "two lines and more"),
        ("esc\x1b[31m \u202ered", "esc[31m red"),
        ("NUL\x00inside", "NULinside"),
        ("文" * 5_000, "文" * 60 + "..."),
        ([{"type": "text", "text": "parts"}, {"type": "text", "text": "x" * 9_000}], "parts " + "x" * 54 + "..."),
        ("", ""),
    ],
)
async def test_the_preview_is_the_first_user_message_on_one_line(db: SessionDB, content: Any, preview: str) -> None:
    """At most 60 characters and three dots; nothing that could disturb a terminal."""
    await db.create_session("s", "cli")
    await db.append_message("s", "system", "not me")
    await db.append_message("s", "user", None)
    await db.append_message("s", "user", content)
    await db.append_message("s", "user", "nor me")
    assert [row["preview"] for row in await db.list_sessions()] == [preview]


async def test_a_session_without_user_messages_has_an_empty_preview(db: SessionDB, elsewhere: Any) -> None:
    """Messages taken back are not shown either."""
    await db.create_session("s", "cli")
    await db.append_message("s", "assistant", "hi")
    await db.append_message("s", "user", "taken back")
    elsewhere("UPDATE messages SET rewound = 1 WHERE role = 'user'")
    assert [row["preview"] for row in await db.list_sessions()] == [""]


async def test_filters_come_before_the_limit(db: SessionDB) -> None:
    """A page of a rare source is full although newer rows of others are many."""
    await spoken(db, "slack", 1, source="slack")
    await spoken(db, "slack 2", 2, source="slack")
    for number in range(30):
        await spoken(db, f"cli {number}", 100 + number)
    assert await ids(db, source="slack", limit=2) == ["slack 2", "slack"]
    assert await ids(db, source="telegram") == []


async def test_only_what_people_hold_is_listed(db: SessionDB, elsewhere: Any) -> None:
    """Live sessions and branches; no tool runs, no scheduled ones, nothing archived."""
    await spoken(db, "live", 10)
    await spoken(db, "branch", 20, parent_session_id="live", kind="branch")
    await spoken(db, "tool", 30, parent_session_id="live", kind="tool")
    await spoken(db, "scheduled", 40, kind="scheduled")
    await spoken(db, "archived", 50)
    elsewhere("UPDATE sessions SET archived = 1 WHERE id = 'archived'")
    await db.end_session("live", "branched")
    assert await ids(db) == ["branch", "live"]


async def test_a_chain_is_one_row_at_the_place_of_its_tip(db: SessionDB) -> None:
    """Segments never fill a page; a chain whose continuation is missing is shown as it is."""
    await spoken(db, "a", 100)
    for number, (parent, child) in enumerate([("a", "b"), ("b", "c"), ("c", "d")]):
        await db.end_session(parent, "compression")
        await spoken(db, child, 200 + number, parent_session_id=parent)
    await spoken(db, "other", 150)
    await spoken(db, "broken", 50)
    await db.end_session("broken", "compression")
    assert await ids(db, limit=3) == ["d", "other", "broken"]
    (row, *_) = await db.list_sessions()
    assert (row["message_count"], row["started_at"], row["preview"]) == (4, 99.0, "hello from a")


async def test_a_title_is_searched_as_text(db: SessionDB) -> None:
    """Anywhere in it, letter case and spelling form aside, wildcards literal."""
    for number, title in enumerate(["Deploy scripts", "deployment 50%", "Straße", "nothing"]):
        await spoken(db, str(number), number, title=title)
    assert await ids(db, search="DEPLOY") == ["1", "0"]
    assert await ids(db, search="50%") == ["1"]
    assert await ids(db, search="_") == []
    assert await ids(db, search="STRASSE") == ["2"]
    assert await ids(db, search="deploy", limit=1, offset=1) == ["0"]


async def test_the_person_is_named(db: SessionDB, elsewhere: Any) -> None:
    """By name, else by display; a room by its name; an unknown owner by nothing."""
    person = "INSERT INTO people (id, name, display, created_at) VALUES (?, ?, ?, 0)"
    elsewhere("DELETE FROM people")
    elsewhere(person, "owner", "owner", "The Boss")
    elsewhere(person, "p1", None, "Ann")
    elsewhere(
        """INSERT INTO rooms (id, platform, account, chat, name, created_at)
        VALUES ('r1', 'slack', 'main', 'C', 'team', 0)"""
    )
    for number, owner in enumerate(["owner", "p1", "r1", "p2", None]):
        await spoken(db, str(number), number, owner=owner)
    assert [row["person"] for row in await db.list_sessions()] == [None, None, "team", "Ann", "owner"]


async def test_rows_of_other_tools_take_their_place(db: SessionDB, elsewhere: Any) -> None:
    """Without stored activity they are judged by their messages, else by their start."""
    insert = "INSERT INTO sessions (id, source, started_at, message_count) VALUES (?, 'cli', ?, ?)"
    say = "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, ?)"
    elsewhere(insert, "silent", 250, None)
    elsewhere(insert, "talked", 10, 2)
    elsewhere(say, "talked", "first words", 350)
    elsewhere(say, "talked", "stepped back", 340)
    await spoken(db, "ours", 300)
    await spoken(db, "ours, old", 20)
    rows = await db.list_sessions()
    assert [row["id"] for row in rows] == ["talked", "ours", "silent", "ours, old"]
    assert [row["last_active"] for row in rows] == [350.0, 300.0, 250.0, 20.0]
    assert (rows[0]["preview"], rows[0]["message_count"], rows[2]["message_count"]) == ("first words", 2, 0)
    assert await ids(db, limit=2, offset=1) == ["ours", "silent"]


async def test_a_clock_that_steps_back_does_not_hide_a_session(db: SessionDB) -> None:
    """A message with an earlier time leaves the activity where it was."""
    await spoken(db, "s", 100.40)
    await spoken(db, "other", 100.00)
    await db.append_message("s", "user", "next", timestamp=99.00)
    assert await ids(db) == ["s", "other"]
