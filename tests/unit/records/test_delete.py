"""Deleting and clearing: whole conversations, nothing left behind, nothing else touched."""

from __future__ import annotations

from typing import Any

import pytest

from session_store import SessionDB

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


def fill_tables(elsewhere: Any, session_id: str, root: str) -> None:
    """Put rows about the session into every table that can have some."""
    elsewhere(
        """INSERT OR IGNORE INTO places (id, platform, account, chat_type, chat, created_at)
        VALUES (1, 't', 'm', 'dm', '1', 0)"""
    )
    elsewhere("INSERT INTO routes VALUES (?, ?, 1, NULL, 0, 0)", f"key of {session_id}", session_id)
    elsewhere(
        """INSERT INTO turns (id, root_id, session_id, lane, state, holder, fence, started_at)
        VALUES (?, ?, ?, 'l', 'running', 'h', 1, 0)""",
        f"turn of {session_id}",
        root,
        session_id,
    )
    elsewhere("INSERT OR IGNORE INTO leases (root_id, fence, beat, boot_id) VALUES (?, 1, 0, 'b')", root)
    elsewhere("INSERT INTO control (kind, root_id, created_at) VALUES ('stop', ?, 0)", root)
    for state in ("waiting", "sending", "sent", "unknown", "failed"):
        elsewhere(
            """INSERT INTO outbox (platform, account, place_id, session_id, kind, body, state, created_at, updated_at)
            VALUES ('t', 'm', 1, ?, 'answer', ?, ?, 0, 0)""",
            session_id,
            WORDS,
            state,
        )
    elsewhere(
        """INSERT INTO outbox (platform, account, place_id, turn_id, kind, body, created_at, updated_at)
        VALUES ('t', 'm', 1, ?, 'notice', ?, 0, 0)""",
        f"turn of {session_id}",
        WORDS,
    )
    for state in ("new", "taken"):
        elsewhere(
            """INSERT INTO inbox
            (platform, account, dedupe_key, kind, place_id, session_id, lane, payload, received_at, state)
            VALUES ('t', 'm', ?, 'message', 1, ?, 'l', ?, 0, ?)""",
            f"{state} {session_id}",
            session_id,
            WORDS,
            state,
        )


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
    for session_id, root in {"a": "a", "b": "a", "c": "a", "kept": "kept"}.items():
        fill_tables(elsewhere, session_id, root)
    before = elsewhere("SELECT (SELECT COUNT(*) FROM outbox) AS outbox, (SELECT COUNT(*) FROM inbox) AS inbox")
    assert await db.delete_session(held)
    assert [row["id"] for row in await db.export_all()] == ["kept"]
    counts = "SELECT (SELECT COUNT(*) FROM {0}) AS n"
    left = {
        table: elsewhere(counts.format(table))[0]["n"]
        for table in ("messages", "routes", "turns", "leases", "control", "outbox")
    }
    assert left == {"messages": 1, "routes": 1, "turns": 1, "leases": 1, "control": 1, "outbox": 6}
    assert before[0]["outbox"] == 24
    settled = elsewhere("SELECT state, payload, session_id FROM inbox ORDER BY id")
    assert len(settled) == before[0]["inbox"], "keys stay, so that a repeated delivery is still known"
    for row in settled:
        assert (row["payload"], row["state"] == "done") == (
            (WORDS, False) if row["session_id"] == "kept" else (None, True)
        )
    assert elsewhere("PRAGMA foreign_key_check") == []
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]


async def test_no_text_is_left_in_any_row(db: SessionDB, elsewhere: Any) -> None:
    """Neither in queues nor in the search: the words are found nowhere."""
    await conversation(db, "a", "b")
    fill_tables(elsewhere, "b", "a")
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
    assert await db.stats() | {"size_bytes": 0} == {"sessions": 0, "messages": 0, "by_source": {}, "size_bytes": 0}


async def test_clearing_removes_the_messages_and_keeps_the_sessions(db: SessionDB, elsewhere: Any) -> None:
    """Of the whole conversation, with what was still to be sent of it; counters start again, titles stay."""
    await conversation(db, "a", "b")
    await conversation(db, "kept")
    await db.append_message("b", "assistant", "x", tool_calls=[{"id": "1"}])
    await db.set_session_title("b", "Plan")
    fill_tables(elsewhere, "b", "a")
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
