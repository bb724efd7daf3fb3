"""Finding a session by what a person typed."""

from __future__ import annotations

import pytest

from session_store import SessionDB


@pytest.fixture
async def sessions(db: SessionDB) -> SessionDB:
    """Sessions with ids as they are made, and two with a title."""
    await db.create_session("20260101_100000_aaaaaa", "cli", started_at=1, title="20260101")
    await db.create_session("20260101_110000_bbbbbb", "cli", started_at=3)
    await db.create_session("20260102_100000_cccccc", "cli", started_at=2, title="Deploy the parser")
    return db


@pytest.mark.parametrize(
    ("ref", "found"),
    [
        ("20260101_100000_aaaaaa", ["20260101_100000_aaaaaa"]),
        ("20260102", ["20260102_100000_cccccc"]),
        (" 20260102 ", ["20260102_100000_cccccc"]),
        ("20260101", ["20260101_100000_aaaaaa"]),
        ("20260101_", ["20260101_110000_bbbbbb", "20260101_100000_aaaaaa"]),
        ("deploy the", ["20260102_100000_cccccc"]),
        ("DEPLOY THE PARSER", ["20260102_100000_cccccc"]),
        ("Deploy", ["20260102_100000_cccccc"]),
        ("Deploy the par…", ["20260102_100000_cccccc"]),
        ("Deploy the par...", ["20260102_100000_cccccc"]),
        ("parser", []),
        ("…", []),
        ("20260101%", []),
        ("2026010_", []),
        ("0260101", []),
        ("", []),
        ("  ", []),
        ("\U0010ffff", []),
        ("nothing", []),
    ],
)
async def test_the_id_then_the_title_then_the_beginning_of_either(
    sessions: SessionDB, ref: str, found: list[str]
) -> None:
    """Several matches come last active first; wildcards are plain characters; dots of a cut title are no text."""
    assert await sessions.resolve_session(ref) == found


async def test_an_exact_id_wins_over_longer_ones(db: SessionDB) -> None:
    """Also over a title of the same text."""
    await db.create_session("abc", "cli")
    await db.create_session("abcd", "cli", title="abc")
    assert await db.resolve_session("abc") == ["abc"]
    assert set(await db.resolve_session("ab")) == {"abc", "abcd"}


async def test_segments_of_one_conversation_are_one_match(db: SessionDB) -> None:
    """Their common beginning is not ambiguous: it means the live tip."""
    await db.create_session("2026a", "cli")
    await db.end_session("2026a", "compression")
    await db.create_session("2026b", "cli", parent_session_id="2026a")
    assert await db.resolve_session("2026") == ["2026b"]
    assert await db.resolve_session("2026a") == ["2026a"]


async def test_at_most_ten_matches_are_returned(db: SessionDB) -> None:
    """Enough to say that it is ambiguous."""
    for number in range(15):
        await db.create_session(f"x{number:02}", "cli", started_at=number)
    assert await db.resolve_session("x") == [f"x{number:02}" for number in range(14, 4, -1)]
