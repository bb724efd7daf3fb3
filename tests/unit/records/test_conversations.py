"""Conversations: chains of sessions joined by compression, whoever made the rows."""

from __future__ import annotations

from typing import Any

from session_store import SessionDB


async def chain(db: SessionDB, *ids: str, **columns: Any) -> None:
    """Make a conversation of these segments, each but the last ended by compression."""
    parent = None
    for session_id in ids:
        if parent is not None:
            await db.end_session(parent, "compression")
        await db.create_session(session_id, "cli", parent_session_id=parent, **columns)
        parent = session_id


async def test_any_id_names_the_whole_conversation(db: SessionDB) -> None:
    """Root first; a session that was never compressed is alone; an unknown one is nothing."""
    await chain(db, "a", "b", "c")
    await db.create_session("single", "cli")
    for held in ("a", "b", "c"):
        assert await db.conversation_of(held) == ["a", "b", "c"]
    assert await db.conversation_of("single") == ["single"]
    assert await db.conversation_of("unknown") == []


async def test_an_append_by_any_id_reaches_the_live_tip(db: SessionDB) -> None:
    """Who still holds the old id writes into the session that goes on."""
    await chain(db, "a", "b", "c")
    message = await db.append_message("a", "user", "still here")
    assert [row["id"] for row in await db.get_messages("c")] == [message]
    assert await db.get_messages("a") == []
    assert {row["id"]: row["message_count"] for row in await db.export_all()} == {"a": 0, "b": 0, "c": 1}


async def test_a_compressed_session_without_a_continuation_is_its_own_tip(db: SessionDB) -> None:
    """A chain that breaks off there takes messages there."""
    await db.create_session("a", "cli")
    await db.end_session("a", "compression")
    await db.append_message("a", "user", "x")
    assert len(await db.get_messages("a")) == 1


async def test_only_compression_joins_and_only_live_children(db: SessionDB) -> None:
    """Branches, tool runs and scheduled runs of a compressed session, and children of an open one, stand alone."""
    await db.create_session("a", "cli")
    await db.create_session("branch", "cli", parent_session_id="a", kind="branch")
    await db.end_session("a", "compression")
    await db.create_session("run", "tool", parent_session_id="a")
    await db.create_session("timed", "cli", parent_session_id="a", kind="scheduled")
    assert await db.conversation_of("a") == ["a"]
    await db.create_session("next", "cli", parent_session_id="a")
    await db.create_session("child of a live one", "cli", parent_session_id="next")
    assert await db.conversation_of("a") == ["a", "next"]
    for alone in ("branch", "run", "timed", "child of a live one"):
        assert await db.conversation_of(alone) == [alone]


async def test_a_child_made_before_its_parent_was_ended_joins_it(db: SessionDB) -> None:
    """The order of the two calls plays no part, also for what the child had become meanwhile."""
    await db.create_session("a", "cli")
    await db.create_session("b", "cli", parent_session_id="a")
    await db.end_session("b", "compression")
    await db.create_session("c", "cli", parent_session_id="b")
    await db.end_session("a", "compression")
    assert await db.conversation_of("c") == ["a", "b", "c"]
    assert {row["root_id"] for row in await db.export_all()} == {"a"}


async def test_opening_a_compressed_session_opens_its_tip(db: SessionDB) -> None:
    """The chain is never forked by it."""
    await chain(db, "a", "b")
    await db.end_session("b", "user_exit")
    assert await db.reopen_session("a")
    ends = {row["id"]: row["end_reason"] for row in await db.export_all()}
    assert ends == {"a": "compression", "b": None}


async def test_rows_of_other_tools_are_joined_by_their_edges(db: SessionDB, elsewhere: Any) -> None:
    """No root, no activity, no kind: the chain is the same, and a session of ours can continue it."""
    insert = """INSERT INTO sessions (id, source, started_at, ended_at, end_reason, parent_session_id)
        VALUES (?, 'cli', ?, ?, ?, ?)"""
    elsewhere(insert, "a", 100, 200, "compression", None)
    elsewhere(insert, "b", 200, 300, "compression", "a")
    await db.create_session("c", "cli", parent_session_id="b")
    assert await db.conversation_of("c") == ["a", "b", "c"]
    row = await db.get_session("c")
    assert row is not None
    assert row["root_id"] == "a"
    await db.append_message("a", "user", "x")
    assert len(await db.get_messages("c")) == 1


async def test_a_parent_ended_by_another_tool_still_leads_to_its_child(db: SessionDB, elsewhere: Any) -> None:
    """The child stored itself as its root; the edge counts."""
    await chain(db, "b", "c")
    await db.create_session("a", "cli")
    elsewhere("UPDATE sessions SET parent_session_id = 'a' WHERE id = 'b'")
    elsewhere("UPDATE sessions SET ended_at = 1, end_reason = 'compression' WHERE id = 'a'")
    assert sorted(await db.conversation_of("c")) == ["a", "b", "c"]
    assert sorted(await db.conversation_of("a")) == ["a", "b", "c"]


async def test_of_several_continuations_the_compressed_then_the_open_one_is_followed(
    db: SessionDB, elsewhere: Any
) -> None:
    """Times play no part before that: a stale sibling with a later clock loses."""
    await db.create_session("a", "cli", started_at=1)
    await db.end_session("a", "compression")
    await db.create_session("stale", "cli", parent_session_id="a", started_at=9_000)
    await db.end_session("stale", "user_exit")
    await db.create_session("open", "cli", parent_session_id="a", started_at=10)
    await db.append_message("a", "user", "to the open one")
    assert len(await db.get_messages("open")) == 1
    await db.create_session("went on", "cli", parent_session_id="a", started_at=5)
    elsewhere("UPDATE sessions SET ended_at = 6, end_reason = 'compression' WHERE id = 'went on'")
    await db.create_session("tip", "cli", parent_session_id="went on", started_at=7)
    await db.append_message("a", "user", "to the end of the longest line")
    assert len(await db.get_messages("tip")) == 1
    assert [row["id"] for row in await db.list_sessions()] == ["tip"]


async def test_a_ring_made_by_another_tool_ends(db: SessionDB, elsewhere: Any) -> None:
    """No call hangs, and a message is stored in one of its sessions."""
    await chain(db, "a", "b")
    elsewhere("UPDATE sessions SET parent_session_id = 'b' WHERE id = 'a'")
    elsewhere("UPDATE sessions SET ended_at = 1, end_reason = 'compression' WHERE id = 'b'")
    await db.append_message("a", "user", "x")
    assert sum(row["message_count"] for row in await db.export_all()) == 1
    assert sorted(await db.conversation_of("a")) == ["a", "b"]
    assert await db.list_sessions() == []
    assert await db.delete_session("a")
    assert await db.export_all() == []
