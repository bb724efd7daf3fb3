"""Export objects: complete, ordered, always writable as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from session_store import SessionDB

Elsewhere = Callable[..., list[dict[str, Any]]]


async def test_an_export_is_the_session_with_its_messages(db: SessionDB) -> None:
    """Every column of both; unknown sessions are None."""
    await db.create_session("s", "cli", model="m", title="T")
    first = await db.append_message("s", "user", [{"type": "text", "text": "x"}])
    await db.append_message("s", "assistant", "y", tool_calls=[{"id": "1"}])
    exported = await db.export_session("s")
    row = await db.get_session("s")
    assert exported is not None
    assert row is not None
    assert {key: value for key, value in exported.items() if key not in {"messages", "usage"}} == dict(row)
    assert exported["messages"] == await db.get_messages("s")
    assert exported["messages"][0]["id"] == first
    assert await db.export_session("nothing") is None


async def test_all_sessions_or_those_of_one_source(db: SessionDB) -> None:
    """In the order of their ids, each segment an object of its own; the iteration gives the same."""
    for session_id, source in {"b": "web", "a": "cli", "c": "cli"}.items():
        await db.create_session(session_id, source)
        await db.append_message(session_id, "user", session_id)
    everything = await db.export_all()
    assert [exported["id"] for exported in everything] == ["a", "b", "c"]
    assert [exported async for exported in db.iter_sessions()] == everything
    assert [exported["id"] for exported in await db.export_all(source="cli")] == ["a", "c"]
    assert await db.export_all("slack") == []


async def test_long_sessions_and_long_lists_are_read_to_the_end(db: SessionDB, elsewhere: Elsewhere) -> None:
    """More messages than a page and more sessions than a page, in order and without gaps."""
    await db.create_session("s", "cli")
    elsewhere(
        """WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1234)
        INSERT INTO messages (session_id, role, content, timestamp) SELECT 's', 'user', i, -i FROM n"""
    )
    elsewhere(
        """WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 449)
        INSERT INTO sessions (id, source, started_at) SELECT printf('t%04d', i), 'cli', 0 FROM n"""
    )
    exported = await db.export_session("s")
    assert exported is not None
    assert [message["content"] for message in exported["messages"]] == [str(number) for number in range(1235)]
    ids = [session["id"] async for session in db.iter_sessions()]
    assert ids == ["s", *(f"t{number:04}" for number in range(450))]


async def test_the_iteration_survives_a_delete_and_sees_later_sessions(db: SessionDB) -> None:
    """What is gone is left out, what is new and comes later is included."""
    for session_id in ("a", "b", "c"):
        await db.create_session(session_id, "cli")
    seen = []
    async for exported in db.iter_sessions():
        seen.append(exported["id"])
        await db.delete_session("b")
    assert seen == ["a", "c"]


async def test_whatever_is_stored_can_be_written_as_json(db: SessionDB, elsewhere: Elsewhere) -> None:
    """NUL, surrogates (also escaped in another tool's JSON), broken JSON, bytes and infinite numbers."""
    await db.create_session("s", "cli", system_prompt="\ud83d\x00")
    await db.append_message("s", "user", "ok \ud83d end")
    await db.append_message("s", "tool", "alpha\x00omega", tool_call_id="c")
    say = "INSERT INTO messages (session_id, role, timestamp, content, tool_calls, reasoning_details) VALUES "
    elsewhere(say + r"""('s', 'assistant', 9e999, 'a', '[{"id": "\ud83d"}]', '{"\udc00": 1e999}')""")
    elsewhere(say + "('s', 'assistant', 1, x'ff00', '[{\"cut', 'NaN')")
    elsewhere(say + "('s', 'assistant', 1, 'b', '{\"id\": 1}', '\"text\"')")
    exported = await db.export_session("s")
    text = json.dumps(exported, ensure_ascii=False, allow_nan=False)
    again = json.loads(text.encode("utf-8"))
    contents = [message["content"] for message in again["messages"]]
    assert contents == ["ok \ufffd end", "alpha\x00omega", "a", "\ufffd\x00", "b"]
    calls = [message["tool_calls"] for message in again["messages"]]
    assert calls == [None, None, [{"id": "\ufffd"}], ['[{"cut'], [{"id": 1}]]
    assert [message["reasoning_details"] for message in again["messages"][2:]] == [{"\ufffd": None}, None, "text"]
    assert len(await db.get_messages_as_conversation("s")) > 0
