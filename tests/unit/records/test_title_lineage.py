"""Titles of stored sessions: unique per owner, counted on, found again."""

from __future__ import annotations

from typing import Any

import pytest

from session_store import InvalidArgument, NotFound, SessionDB, TitleTaken, Visibility


async def titled(db: SessionDB, **titles: str) -> None:
    """Make one session per title, in this order."""
    for session_id, title in titles.items():
        await db.create_session(session_id, "cli", title=title)


async def title_of(db: SessionDB, session_id: str) -> str | None:
    """Return the stored title."""
    row = await db.get_session(session_id)
    assert row is not None
    return row["title"]


async def test_a_title_is_set_changed_and_taken_away(db: SessionDB) -> None:
    """Cleaned when set; empty means none; an unknown session is False."""
    await db.create_session("s", "cli")
    assert await db.set_session_title("s", "  Исправить   сборку\u200b Docker ")
    assert await title_of(db, "s") == "Исправить сборку Docker"
    assert await db.set_session_title("s", "Исправить сборку Docker")
    assert await db.set_session_title("s", "Другое")
    assert await title_of(db, "s") == "Другое"
    for nothing in ("", None, " \u200b"):
        assert await db.set_session_title("s", nothing)
        assert await title_of(db, "s") is None
    assert not await db.set_session_title("nothing", "x")
    with pytest.raises(InvalidArgument, match="at most 100"):
        await db.set_session_title("s", "x" * 101)


@pytest.mark.parametrize("same", ["Café", "CAFÉ", "Cafe\u0301", " café "])
async def test_a_taken_title_is_refused_and_the_other_session_named(db: SessionDB, same: str) -> None:
    """Letter case, spelling form and spaces make no other title; nothing changes."""
    await titled(db, first="Café")
    await db.create_session("second", "cli", title="kept")
    with pytest.raises(TitleTaken, match="Session first already has the title"):
        await db.set_session_title("second", same)
    assert await title_of(db, "second") == "kept"
    assert await db.set_session_title("first", same), "its own title may stay, in another spelling"


async def test_each_owner_has_a_name_space_and_the_library_one_of_its_own(db: SessionDB) -> None:
    """Nobody learns of another person's titles by a refusal."""
    for number, owner in enumerate([None, "owner", "p1", "r1"]):
        await db.create_session(f"s{number}", "cli", owner=owner, title="Plan")
    for number, owner in enumerate([None, "owner", "p1", "r1"]):
        with pytest.raises(TitleTaken, match=f"Session s{number} "):
            await db.create_session("again", "cli", owner=owner, title="plan")


async def test_a_session_elsewhere_is_not_named_in_a_room(db: SessionDB) -> None:
    """A person's sessions share one name space, but a room does not learn the id of a private one."""
    await db.create_session("private", "telegram", owner="p1", title="Plan")
    await db.create_session("here", "telegram", owner="p1", room_id="r1", title="Lunch")
    for room, title, refusal in [
        ("r1", "plan", "^Another session of yours already has the title 'plan'"),
        ("r1", "lunch", "^Session here "),
        ("r2", "lunch", "^Another session of yours "),
        (None, "lunch", "^Session here "),
    ]:
        with pytest.raises(TitleTaken, match=refusal):
            await db.create_session("new", "telegram", owner="p1", room_id=room, title=title)


async def test_a_continuation_may_take_the_title_of_its_conversation(db: SessionDB) -> None:
    """From any earlier segment; a branch may not."""
    await titled(db, a="Work")
    await db.create_session("branch", "cli", parent_session_id="a", kind="branch")
    await db.end_session("a", "compression")
    await db.create_session("b", "cli", parent_session_id="a")
    await db.end_session("b", "compression")
    await db.create_session("c", "cli", parent_session_id="b")
    with pytest.raises(TitleTaken):
        await db.set_session_title("branch", "work")
    assert await db.set_session_title("c", "Work")
    assert [await title_of(db, session) for session in ("a", "b", "c")] == [None, None, "Work"]


async def test_the_next_title_of_a_lineage(db: SessionDB) -> None:
    """The bare title counts as one; a given number is stripped; no lineage yet means the bare title."""
    assert await db.get_next_title_in_lineage("Fix") == "Fix"
    assert await db.get_next_title_in_lineage("Fix #7") == "Fix"
    await titled(db, a="Fix")
    assert await db.get_next_title_in_lineage("Fix") == "Fix #2"
    await titled(db, b="fix #2", c="Fix #10", d="Fix #notes", e="Fix it #50", f="Fix # 60", g="Fix #2 #90")
    assert await db.get_next_title_in_lineage("FIX") == "FIX #11"
    assert await db.get_next_title_in_lineage("Fix #2") == "Fix #11"
    assert await db.get_next_title_in_lineage("Fix #2 #1") == "Fix #2 #91"
    assert await db.get_next_title_in_lineage("Fix", owner="p1") == "Fix"
    with pytest.raises(InvalidArgument, match="at least one visible"):
        await db.get_next_title_in_lineage(" \u200b ")


async def test_wildcards_are_plain_characters(db: SessionDB) -> None:
    """`_` and `%` stand for themselves when counting and finding."""
    await titled(db, a="a_b", b="axb", c="axb #2", d="100%", e="100 percent #2")
    assert await db.get_next_title_in_lineage("a_b") == "a_b #2"
    assert await db.get_next_title_in_lineage("100%") == "100% #2"
    assert await db.resolve_session_by_title("a_b") == "a"
    assert await db.resolve_session_by_title("100%") == "d"
    assert await db.resolve_session_by_title("a%b") is None


async def test_numbering_goes_on_at_the_limit_of_length(db: SessionDB) -> None:
    """The base is cut, and the result is free again and again."""
    long = "x" * 100
    await titled(db, a=long)
    second = await db.get_next_title_in_lineage(long)
    assert second == "x" * 97 + " #2"
    await titled(db, b=second)
    third = await db.get_next_title_in_lineage(long)
    assert third == "x" * 97 + " #3"
    await titled(db, c=third)
    assert await db.get_next_title_in_lineage(second) == "x" * 97 + " #4"


async def test_a_title_finds_the_latest_of_its_lineage(db: SessionDB) -> None:
    """The highest number, by number and not by letters or clocks; other endings are other titles."""
    await titled(db, a="proj", b="proj #9", c="proj #10", d="proj #notes", e="proj #2")
    assert await db.resolve_session_by_title("proj") == "c"
    assert await db.resolve_session_by_title(" PROJ ") == "c"
    assert await db.resolve_session_by_title("proj #9") == "b"
    assert await db.resolve_session_by_title("proj #notes") == "d"
    for nothing in ("pro", "proj #3", "", "x" * 200):
        assert await db.resolve_session_by_title(nothing) is None


async def test_a_title_leads_to_the_live_tip(db: SessionDB) -> None:
    """A continuation without a title is what one wants to go on with."""
    await titled(db, a="Work")
    await db.end_session("a", "compression")
    await db.create_session("b", "cli", parent_session_id="a")
    assert await db.resolve_session_by_title("work") == "b"


async def test_titles_of_other_tools_are_found_and_respected(db: SessionDB, elsewhere: Any) -> None:
    """Their rows have no key: the text as it is written counts."""
    insert = "INSERT INTO sessions (id, source, started_at, title) VALUES (?, 'cli', 1, ?)"
    elsewhere(insert, "x", "Docker")
    elsewhere(insert, "y", "Docker #4")
    assert await db.resolve_session_by_title("Docker") == "y"
    assert await db.resolve_session_by_title("Docker #4") == "y"
    assert await db.get_next_title_in_lineage("Docker") == "Docker #5"
    await db.create_session("s", "cli")
    with pytest.raises(TitleTaken, match="Session x"):
        await db.set_session_title("s", "Docker")


async def test_only_visible_sessions_are_found_by_title(db: SessionDB) -> None:
    """A higher number of somebody else does not hide mine, and rows without an owner are nobody's."""
    await db.create_session("mine", "cli", owner="p1", title="Plan")
    await db.create_session("theirs", "cli", owner="p2", title="Plan #5")
    await db.create_session("nobody's", "cli", title="Plan #9")
    me = Visibility(frozenset({"p1"}))
    assert await db.resolve_session_by_title("plan", visible_to=me) == "mine"
    assert await db.resolve_session_by_title("Plan #5", visible_to=me) is None
    assert await db.resolve_session_by_title("plan") == "nobody's"
    assert await db.resolve_session_by_title("plan", visible_to=Visibility(frozenset())) is None


async def test_titling_a_session_that_is_not_there_is_an_error_inside_a_transaction(db: SessionDB) -> None:
    """A child asks for a title under a parent that is missing: the parent is what is named."""
    with pytest.raises(NotFound, match="no session 'gone'"):
        await db.create_session("s", "cli", parent_session_id="gone", title="x")
