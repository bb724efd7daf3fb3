"""Search through the whole store, with other processes at work on the same file."""

from __future__ import annotations

import asyncio
import json

import pytest

from session_store import QueryError, SessionDB, StoreError, Visibility
from tests.conftest import Elsewhere

ADD = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', ?, 1)"
HEALTH = "SELECT value FROM state_meta WHERE key = 'fts_health'"
TURNS = ["ok \ud83d end", "alpha\0omega", f"first{chr(0) * 10_000}last", "three", "four"]


async def usable_again(db: SessionDB, elsewhere: Elsewhere) -> None:
    """Wait until the store has mended its index."""
    async with asyncio.timeout(30):
        while (await asyncio.to_thread(elsewhere, HEALTH))[0]["value"] != "ok":
            await db.changes.wait(0.2)


async def ids(db: SessionDB, query: str, **options: object) -> list[int]:
    """What a search finds."""
    return [hit["id"] for hit in await db.search_messages(query, **options)]  # type: ignore[arg-type]


async def test_rows_of_another_process_are_found(db: SessionDB, elsewhere: Elsewhere) -> None:
    """Put in, changed, deleted and handed over by a tool that knows nothing of the index."""
    await db.create_session("s", "cli", owner="owner")
    ours = await db.append_message("s", "user", "部署脚本 of ours")
    await asyncio.to_thread(elsewhere, ADD, "部署脚本 of theirs")
    theirs = Visibility(frozenset({"p0000000000aa"}))
    assert await ids(db, "脚本") == [ours + 1, ours]
    await asyncio.to_thread(elsewhere, "UPDATE messages SET content = 'else' WHERE id = ?", ours)
    assert await ids(db, "脚本") == [ours + 1]
    await asyncio.to_thread(elsewhere, "UPDATE sessions SET owner = 'p0000000000aa' WHERE id = 's'")
    assert await ids(db, "脚本", visible_to=theirs) == [ours + 1]
    await asyncio.to_thread(elsewhere, "DELETE FROM messages WHERE id = ?", ours + 1)
    assert await ids(db, "脚本") == []
    assert await ids(db, "else", visible_to=theirs) == [ours]


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM messages_fts_data",
        "UPDATE messages_fts_data SET block = x'00' WHERE id > 10",
        "DROP TABLE messages_fts",
        "DROP TABLE messages_fts_config",
    ],
)
async def test_a_damaged_index_costs_no_message_and_is_mended(db: SessionDB, elsewhere: Elsewhere, damage: str) -> None:
    """Searching and storing go on, and soon the index is used again."""
    await db.create_session("s", "cli")
    for number in range(20):
        await db.append_message("s", "user", f"word {number}")
    await asyncio.to_thread(elsewhere, damage)
    assert len(await ids(db, "word", limit=100)) == 20
    await db.append_message("s", "user", "word later")
    assert len(await ids(db, "word", limit=100)) == 21
    await usable_again(db, elsewhere)
    assert len(await ids(db, "word", limit=100)) == 21
    assert not any(hit["approximate"] for hit in await db.search_messages("later"))
    assert await asyncio.to_thread(elsewhere, "INSERT INTO messages_fts(messages_fts) VALUES ('integrity-check')") == []


async def test_the_index_is_rebuilt_while_everybody_writes(db: SessionDB, elsewhere: Elsewhere) -> None:
    """Writers do not wait for it, and it misses nothing."""
    await db.create_session("s", "cli")
    await asyncio.gather(*(db.append_message("s", "user", f"word{number:03}") for number in range(600)))
    await asyncio.to_thread(elsewhere, "UPDATE state_meta SET value = 'broken: a test' WHERE key = 'fts_health'")
    for round_number in range(10):
        await asyncio.gather(*(db.append_message("s", "user", f"more{round_number}x{one}") for one in range(20)))
        await asyncio.to_thread(elsewhere, "DELETE FROM messages WHERE id = ?", round_number * 7 + 1)
    await usable_again(db, elsewhere)
    assert len(await ids(db, "word* OR more*", limit=1000)) == 790
    assert await ids(db, "word000 OR word007 OR word063") == []
    assert await asyncio.to_thread(elsewhere, "INSERT INTO messages_fts(messages_fts) VALUES ('integrity-check')") == []


async def test_odd_characters_survive_and_are_found_after_reopening(db: SessionDB, elsewhere: Elsewhere) -> None:
    """Lone surrogates and NULs: all turns are there, findable, exportable, and the index is clean."""
    await db.create_session("s", "cli")
    for text in TURNS:
        await db.append_message("s", "user", text)
    await db.close()
    await db.open()
    assert [row["content"] for row in await db.get_messages("s")] == ["ok \ufffd end", *TURNS[1:]]
    for word, place in [("end", 0), ("alpha", 1), ("omega", 1), ("first", 2), ("last", 2), ("three", 3), ("four", 4)]:
        assert await ids(db, word) == [place + 1]
    exported = await db.export_session("s")
    assert json.loads(json.dumps(exported)) == exported
    assert await asyncio.to_thread(elsewhere, "INSERT INTO messages_fts(messages_fts) VALUES ('integrity-check')") == []


@pytest.mark.parametrize("query", ["", "AND", "*", '"', "x" * 5000, "NOT x"])
async def test_odd_queries_get_a_clear_answer(db: SessionDB, query: str) -> None:
    """A sentence about the query, never an engine's error and never an empty list."""
    with pytest.raises(QueryError, match=r"^(There is nothing|The query)") as caught:
        await db.search_messages(query)
    assert isinstance(caught.value, StoreError)


async def test_multimodal_messages_and_calls_are_found_by_their_text(db: SessionDB) -> None:
    """As the store itself writes them."""
    await db.create_session("s", "cli")
    parts = [
        {"type": "text", "text": "看这张图"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
    ]
    shown = await db.append_message("s", "user", parts)
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "look_up", "arguments": json.dumps({"query": "部署脚本"})},
    }
    called = await db.append_message("s", "assistant", None, tool_calls=[call])
    assert await ids(db, "张图") == [shown]
    assert await ids(db, "署脚") == [called]
    assert await ids(db, "look_up") == [called]
