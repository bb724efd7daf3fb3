"""Deleting and clearing: whole conversations, nothing left behind, nothing else touched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from session_store import Claim, ClaimRequest, FenceLost, NewInbox, NewMessage, PlaceRef, SessionDB

WORDS = "the secret words"


async def conversation(db: SessionDB, *ids: str, source: str = "cli") -> None:
    """Make a compressed conversation that says the secret in every segment."""
    parent = None
    for session_id in ids:
        if parent is not None:
            await db.end_session(parent, "compression")
        await db.create_session(session_id, source, parent_session_id=parent)
        await db.append_message(session_id, "user", f"{WORDS} {session_id}")
        parent = session_id


PLACE = "INSERT INTO places (id, platform, account, chat_type, chat, created_at) VALUES (1, 't', 'm', 'dm', '1', 0)"
ROUTES = "INSERT INTO routes SELECT 'key of ' || key, key, 1, NULL, 0, 0, 0 FROM json_each(?)"
TURNS = """INSERT INTO turns (id, root_id, session_id, lane, state, holder, fence, started_at)
    SELECT 'turn of ' || key, value, key, 'l', 'running', 'h', 1, 0 FROM json_each(?)"""
LEASES = "INSERT OR IGNORE INTO leases (root_id, fence, beat, boot_id) SELECT value, 1, 0, 'b' FROM json_each(?)"
CONTROL = "INSERT INTO control (kind, root_id, created_at) SELECT 'stop', value, 0 FROM json_each(?)"
OUTBOX = """INSERT INTO outbox
    (platform, account, place_id, session_id, turn_id, kind, body, state, created_at, updated_at)
    SELECT 't', 'm', 1, CASE WHEN state.key > 0 THEN s.key END, CASE WHEN state.key = 0 THEN 'turn of ' || s.key END,
        'answer', ?, state.value, 0, 0
    FROM json_each(?) s, json_each('["waiting", "waiting", "sending", "sent", "unknown", "failed"]') state"""
INBOX = """INSERT INTO inbox
    (platform, account, dedupe_key, kind, place_id, session_id, lane, payload, received_at, state)
    SELECT 't', 'm', state.value || s.key, 'message', 1, s.key, 'l', ?, 0, state.value
    FROM json_each(?) s, json_each('["new", "taken"]') state"""

COUNTS = """SELECT
    (SELECT COUNT(*) FROM messages) AS messages, (SELECT COUNT(*) FROM routes) AS routes,
    (SELECT COUNT(*) FROM turns) AS turns, (SELECT COUNT(*) FROM leases) AS leases,
    (SELECT COUNT(*) FROM control) AS control, (SELECT COUNT(*) FROM outbox) AS outbox,
    (SELECT COUNT(*) FROM inbox) AS inbox"""


def fill_tables(elsewhere: Any, roots: dict[str, str]) -> None:
    """Put rows about each of the sessions (id -> root) into every table that can have some."""
    elsewhere(PLACE)
    for table in (ROUTES, TURNS, LEASES, CONTROL):
        elsewhere(table, json.dumps(roots))
    for table in (OUTBOX, INBOX):
        elsewhere(table, WORDS, json.dumps(roots))


def rows_with(elsewhere: Any, words: str) -> list[str]:
    """Return the tables in which some text holds these words."""
    columns = elsewhere(
        """SELECT m.name AS tab, c.name AS col FROM sqlite_master m JOIN pragma_table_info(m.name) c
        WHERE m.type = 'table' AND m.name NOT LIKE 'messages_fts%'"""
    )
    like = " UNION ALL ".join(
        f"""SELECT '{column["tab"]}' AS tab FROM "{column["tab"]}" WHERE "{column["col"]}" LIKE ?1"""  # noqa: S608
        for column in columns
    )
    return sorted({row["tab"] for row in elsewhere(like, f"%{words}%")})


@pytest.mark.parametrize("held", ["a", "b", "c"])
async def test_a_conversation_goes_as_a_whole_by_any_of_its_ids(db: SessionDB, elsewhere: Any, held: str) -> None:
    """All segments and everything about them; another conversation keeps all of its own."""
    await conversation(db, "a", "b", "c")
    await conversation(db, "kept")
    fill_tables(elsewhere, {"a": "a", "b": "a", "c": "a", "kept": "kept"})
    assert elsewhere(COUNTS)[0]["outbox"] == 24
    assert await db.delete_session(held)
    assert [row["id"] for row in await db.export_all()] == ["kept"]
    assert elsewhere(COUNTS) == [
        {"messages": 1, "routes": 1, "turns": 1, "leases": 1, "control": 1, "outbox": 6, "inbox": 8}
    ], "what the other conversation has, and settled input"
    settled = elsewhere("SELECT state, payload, session_id FROM inbox ORDER BY id")
    assert len(settled) == 8, "the keys stay, so that a repeated delivery is still known"
    for row in settled:
        assert (row["payload"], row["state"] == "done") == (
            (WORDS, False) if row["session_id"] == "kept" else (None, True)
        )
    assert elsewhere("PRAGMA foreign_key_check") == []
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]


async def test_no_text_is_left_in_any_row(db: SessionDB, elsewhere: Any) -> None:
    """Neither in queues nor in the search: the words are found nowhere."""
    await conversation(db, "a", "b")
    fill_tables(elsewhere, {"b": "a"})
    assert await db.search_messages("secret")
    assert rows_with(elsewhere, WORDS) == ["inbox", "messages", "outbox"]
    await db.delete_session("a")
    await db.create_session("other", "cli")
    assert rows_with(elsewhere, WORDS) == []
    assert await db.search_messages("secret") == []


async def test_what_came_out_of_it_lives_on_without_a_parent(db: SessionDB) -> None:
    """Branches, tool runs and scheduled ones are conversations of their own."""
    await conversation(db, "a", "b")
    for kind in ("branch", "tool", "scheduled"):
        await db.create_session(kind, "cli", parent_session_id="a", kind=kind)
        await db.append_message(kind, "user", "mine")
    assert await db.delete_session("b")
    left = await db.export_all()
    assert {(row["id"], row["parent_session_id"], row["message_count"]) for row in left} == {
        ("branch", None, 1),
        ("tool", None, 1),
        ("scheduled", None, 1),
    }
    assert not await db.delete_session("a")


async def test_deleting_a_branch_leaves_its_origin(db: SessionDB) -> None:
    """The conversation that it came from is another one."""
    await conversation(db, "a", "b")
    await db.create_session("branch", "cli", parent_session_id="a", kind="branch")
    assert await db.delete_session("branch")
    assert [row["id"] for row in await db.export_all()] == ["a", "b"]


async def test_rows_of_other_tools_are_deleted_with_their_conversation(db: SessionDB, elsewhere: Any) -> None:
    """Segments without a root are found by their edges."""
    insert = """INSERT INTO sessions (id, source, started_at, ended_at, end_reason, parent_session_id)
        VALUES (?, 'cli', 1, ?, ?, ?)"""
    elsewhere(insert, "a", 2, "compression", None)
    elsewhere(insert, "b", 2, "compression", "a")
    elsewhere(insert, "c", None, None, "b")
    elsewhere("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('b', 'user', 'x', 1)")
    assert await db.delete_session("b")
    left = await db.stats()
    assert (left["sessions"], left["messages"], left["by_source"]) == (0, 0, {})


async def test_clearing_removes_the_messages_and_keeps_the_sessions(db: SessionDB, elsewhere: Any) -> None:
    """Of the whole conversation, with what was still to be sent of it; counters start again, titles stay."""
    await conversation(db, "a", "b")
    await conversation(db, "kept")
    await db.append_message("b", "assistant", "x", tool_calls=[{"id": "1"}])
    await db.set_session_title("b", "Plan")
    fill_tables(elsewhere, {"b": "a"})
    assert await db.clear_messages("a") == 3
    rows = {row["id"]: (row["message_count"], row["tool_call_count"]) for row in await db.export_all()}
    assert rows == {"a": (0, 0), "b": (0, 0), "kept": (1, 0)}
    assert elsewhere("SELECT body FROM outbox") == []
    assert await db.get_messages("b") == []
    assert [hit["session_id"] for hit in await db.search_messages("secret")] == ["kept"]
    assert await db.resolve_session_by_title("plan") == "b"
    await db.append_message("a", "user", "again")
    assert len(await db.get_messages("b")) == 1


async def test_deleting_and_clearing_the_unknown_changes_nothing(db: SessionDB) -> None:
    """False and zero, no error."""
    assert not await db.delete_session("nothing")
    assert await db.clear_messages("nothing") == 0


async def test_a_running_turn_loses_its_conversation_and_the_next_message_starts_a_fresh_one(
    db: SessionDB, elsewhere: Any
) -> None:
    """Who works the turn is told at the next step; nothing of it is left; the place goes on as if new."""
    holder = await db.processes.register("gateway", [], {})
    place = PlaceRef("telegram", "main", "dm", "1")

    async def claim(number: int) -> Claim:
        message = NewInbox(place, f"m:{number}", "message", "key", 1.0, {"text": WORDS}, {}, session_key="key")
        accepted = await db.inbox.accept(message)
        request = ClaimRequest(
            [accepted.inbox_id],
            turn_id=f"turn {number}",
            holder=holder,
            lane="key",
            place=place,
            source="telegram",
            owner="owner",
            new_session_id=f"session {number}",
            content=WORDS,
            session_key="key",
        )
        return await db.turns.claim(request, lambda _session, _at: None)

    running = await claim(1)
    assert running.fence is not None
    assert await db.delete_session("session 1")
    with pytest.raises(FenceLost):
        await db.turns.step(running.fence, [NewMessage("assistant", WORDS, op_id="step")])
    with pytest.raises(FenceLost):
        await db.turns.finish(running.fence, NewMessage("assistant", WORDS, op_id="final"))
    assert rows_with(elsewhere, WORDS) == []
    fresh = await claim(2)
    assert (fresh.status, fresh.session_id, fresh.created) == ("claimed", "session 2", True)
