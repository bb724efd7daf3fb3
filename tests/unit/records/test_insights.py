"""How the store was used in a time: what counts, and for whom."""

from __future__ import annotations

from typing import Any

from session_store import SessionDB, Usage, Visibility

START = 1_764_417_600.0


async def said(db: SessionDB, session_id: str, *times: float, role: str = "user", **more: Any) -> None:
    """Messages at these seconds after the start."""
    for at in times:
        await db.append_message(session_id, role, "x", timestamp=START + at, **more)


async def test_everything_since_then_is_counted_once(db: SessionDB) -> None:
    """Segments of one conversation are one; pauses are cut; older messages are left out."""
    await db.create_session("a", "cli", started_at=START - 1000)
    await said(db, "a", -500, 0, 100)
    await said(db, "a", 110, role="tool", tool_name="session_search", tool_call_id="c")
    await db.end_session("a", "compression")
    await db.create_session("b", "cli", parent_session_id="a", title="The tip")
    await said(db, "b", 5000, 5010, 9000)
    await db.create_session("t", "telegram", started_at=START)
    await said(db, "t", 0)
    told = await db.usage.insights(START)
    assert (told["conversations"], told["messages"], told["user_messages"], told["tool_calls"]) == (2, 7, 6, 1)
    assert told["active_seconds"] == (100 + 10) + (10 + 300)
    assert told["sources"] == [
        {"source": "cli", "conversations": 1, "messages": 6},
        {"source": "telegram", "conversations": 1, "messages": 1},
    ]
    assert told["tools"] == [{"name": "session_search", "calls": 1}]
    assert [(quarter["moment"] - START, quarter["messages"]) for quarter in told["moments"]] == [
        (0, 3),
        (4500, 2),
        (9000, 1),
    ]
    assert told["notable"][0] == {"id": "a", "title": None, "messages": 3}
    assert told["notable"][1] == {"id": "b", "title": "The tip", "messages": 3}


async def test_what_models_cost_is_told_by_model(db: SessionDB) -> None:
    """Most tokens first; helper calls are among them."""
    await db.create_session("a", "cli")
    await db.usage.record("a", [Usage("r1", "small", 10, 5)], "title")
    await db.usage.record("a", [Usage("r2", "big", 100, 50, 40, 10, 20), Usage("r3", "big", 1, 1)], "turn")
    told = await db.usage.insights(0)
    assert (told["model_calls"], told["read_tokens"], told["output_tokens"]) == (3, 161, 56)
    assert (told["reasoning_tokens"], told["cache_read_tokens"]) == (20, 40)
    assert [(row["model"], row["calls"], row["read_tokens"]) for row in told["models"]] == [
        ("big", 2, 151),
        ("small", 1, 10),
    ]


async def test_only_what_is_asked_for_and_may_be_seen_is_counted(db: SessionDB) -> None:
    """By where it was born, and by whose it is."""
    await db.create_session("mine", "cli", owner="owner")
    await db.create_session("theirs", "telegram", owner="p0123456789ab")
    for session_id in ("mine", "theirs"):
        await db.append_message(session_id, "user", "x")
        await db.usage.record(session_id, [Usage(session_id, "m", 10, 5)], "turn")
    everything = await db.usage.insights(0)
    assert (everything["messages"], everything["model_calls"]) == (2, 2)
    born = await db.usage.insights(0, "telegram")
    assert [row["source"] for row in born["sources"]] == ["telegram"]
    seen = await db.usage.insights(0, visible_to=Visibility(frozenset({"owner"})))
    assert (seen["messages"], seen["model_calls"], seen["notable"][0]["id"]) == (1, 1, "mine")


async def test_an_empty_store_tells_nothing(db: SessionDB) -> None:
    """Zeros, not errors."""
    told = await db.usage.insights(0)
    assert (told["messages"], told["active_seconds"], told["notable"]) == (0, 0.0, [])
