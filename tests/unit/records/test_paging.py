"""Reading messages in pages."""

from __future__ import annotations

from typing import Any

import pytest

from session_store import SessionDB


@pytest.fixture
async def session(db: SessionDB) -> str:
    """A session with the messages 0 to 9."""
    await db.create_session("s", "cli")
    for number in range(10):
        await db.append_message("s", "user", str(number))
    return "s"


@pytest.mark.parametrize(
    ("limit", "offset", "contents"),
    [
        (None, 0, "0123456789"),
        (3, 0, "789"),
        (3, 3, "456"),
        (4, 8, "01"),
        (None, 7, "012"),
        (3, 10, ""),
        (0, 0, ""),
        (-1, 0, ""),
        (3, -5, "789"),
    ],
)
async def test_pages_count_from_the_newest_message_and_come_oldest_first(
    db: SessionDB, session: str, limit: int | None, offset: int, contents: str
) -> None:
    """Past the end there is nothing; without a limit everything."""
    rows = await db.get_messages(session, limit=limit, offset=offset)
    assert "".join(row["content"] for row in rows) == contents


async def test_what_came_after_a_known_message(db: SessionDB, session: str) -> None:
    """Oldest first, at most the limit, of this session only."""
    await db.create_session("other", "cli")
    await db.append_message("other", "user", "elsewhere")
    ids = [row["id"] for row in await db.get_messages(session)]
    assert [row["content"] for row in await db.get_messages_after(session, ids[6])] == ["7", "8", "9"]
    assert [row["content"] for row in await db.get_messages_after(session, ids[6], limit=2)] == ["7", "8"]
    assert await db.get_messages_after(session, ids[9]) == []


async def test_messages_taken_back_are_not_read(db: SessionDB, session: str, elsewhere: Any) -> None:
    """Neither in pages nor after a known one; the export keeps them, marked."""
    elsewhere("UPDATE messages SET rewound = 1 WHERE content IN ('8', '9')")
    assert [row["content"] for row in await db.get_messages(session, limit=2)] == ["6", "7"]
    assert [row["content"] for row in await db.get_messages_after(session, 0)] == list("01234567")
    exported = await db.export_session(session)
    assert exported is not None
    assert [row["rewound"] for row in exported["messages"]] == [0] * 8 + [1, 1]


async def test_an_unknown_session_has_no_messages(db: SessionDB) -> None:
    """Not an error."""
    assert await db.get_messages("nothing") == []
    assert await db.get_messages_after("nothing", 0) == []
