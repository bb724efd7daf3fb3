"""Appending messages: what is stored, what is counted, what is repeated without harm."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from session_store import InvalidArgument, NotFound, SessionDB

CALLS: list[dict[str, Any]] = [
    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"文": "件"}'}},
    {"id": "c2"},
]


async def test_messages_come_back_as_given_in_order(db: SessionDB) -> None:
    """All documented columns, JSON columns decoded, ids rising."""
    await db.create_session("s", "cli")
    first = await db.append_message("s", "user", "Привет", platform_message_id="77", person_id="owner", place_id=3)
    second = await db.append_message(
        session_id="s",
        role="assistant",
        content="Вот ответ...",
        tool_calls=CALLS,
        token_count=150,
        finish_reason="stop",
        reasoning="Давайте подумаем",
        reasoning_content="",
        reasoning_details=[{"type": "x"}],
        codex_reasoning_items=[{"id": "r"}],
        codex_message_items={"phase": "final"},
        timestamp=12.5,
    )
    third = await db.append_message("s", "tool", "ok", tool_name="f", tool_call_id="c1")
    assert first < second < third
    one, two, three = await db.get_messages("s")
    assert (one["content"], one["platform_message_id"], one["person_id"], one["place_id"]) == (
        "Привет",
        "77",
        "owner",
        3,
    )
    assert (two["content"], two["tool_calls"], two["token_count"]) == ("Вот ответ...", CALLS, 150)
    assert (two["finish_reason"], two["reasoning"], two["reasoning_content"]) == ("stop", "Давайте подумаем", "")
    assert two["reasoning_details"] == [{"type": "x"}]
    assert (two["codex_reasoning_items"], two["codex_message_items"]) == ([{"id": "r"}], {"phase": "final"})
    assert two["timestamp"] == 12.5
    assert (three["tool_name"], three["tool_call_id"], three["tool_calls"]) == ("f", "c1", None)


async def test_json_is_stored_as_people_wrote_it(db: SessionDB, elsewhere: Any) -> None:
    """Other tools read documented JSON text, without ASCII escapes."""
    await db.create_session("s", "cli")
    await db.append_message("s", "assistant", "x", tool_calls=CALLS)
    ((stored),) = elsewhere("SELECT tool_calls FROM messages")
    assert json.loads(stored["tool_calls"]) == CALLS
    assert "文" in stored["tool_calls"]


async def test_counters_are_those_of_the_rows(db: SessionDB) -> None:
    """One per message; calls count on assistant messages only, results do not."""
    await db.create_session("s", "cli")
    await db.append_message("s", "user", "x", tool_calls=CALLS)
    await db.append_message("s", "assistant", "x", tool_calls=CALLS)
    await db.append_message("s", "tool", "x", tool_call_id="c1")
    await db.append_message("s", "assistant", "x", tool_calls=[])
    row = await db.get_session("s")
    assert row is not None
    assert (row["message_count"], row["tool_call_count"]) == (4, 2)


async def test_many_appends_at_once_are_all_counted(db: SessionDB) -> None:
    """Ids are distinct and the counter misses none."""
    await db.create_session("s", "cli")
    ids = await asyncio.gather(*(db.append_message("s", "user", str(number)) for number in range(200)))
    row = await db.get_session("s")
    assert row is not None
    assert len(set(ids)) == row["message_count"] == len(await db.get_messages("s")) == 200


async def test_an_unknown_session_is_an_error_and_nothing_is_stored(db: SessionDB) -> None:
    """The sentence names the id; the next append works."""
    with pytest.raises(NotFound, match="no session 'gone'"):
        await db.append_message("gone", "user", "x")
    await db.create_session("s", "cli")
    await db.append_message("s", "user", "x")
    assert (await db.stats())["messages"] == 1


async def test_the_same_operation_again_stores_nothing_twice(db: SessionDB) -> None:
    """The id of the first row comes back, also when the session was compressed meanwhile."""
    await db.create_session("s", "cli")
    first = await db.append_message("s", "assistant", "once", tool_calls=CALLS, op_id="op-1")
    assert await db.append_message("s", "assistant", "once", tool_calls=CALLS, op_id="op-1") == first
    await db.end_session("s", "compression")
    await db.create_session("s2", "cli", parent_session_id="s")
    assert await db.append_message("s", "assistant", "once", op_id="op-1") == first
    assert {row["id"]: row["message_count"] for row in await db.export_all()} == {"s": 1, "s2": 0}


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "  spaces \n kept\t",
        "NUL \x00 inside",
        '["looks", "like JSON"]',
        '\x1e["looks like ours"]',
        [{"type": "text", "text": "部分"}, {"type": "image_url", "image_url": {"url": "data:,"}}],
        [],
        {},
        {"nested": {"ключ": [1, 2.5, None, True]}},
    ],
)
async def test_content_comes_back_unchanged(db: SessionDB, content: Any) -> None:
    """Plain text byte for byte, structures by value."""
    await db.create_session("s", "cli")
    await db.append_message("s", "user", content)
    (row,) = await db.get_messages("s")
    assert row["content"] == content


async def test_lone_surrogates_never_stop_a_write(db: SessionDB) -> None:
    """In every text a caller can give; good characters stay, later writes work, pairs become their character."""
    lone = "ok \ud83d end"
    await db.create_session("s", "cli", system_prompt=lone)
    await db.append_message(
        "s",
        "assistant",
        lone,
        reasoning=lone,
        tool_name=lone,
        tool_calls=[{"id": lone}],
        reasoning_details={lone: lone},
    )
    await db.append_message("s", "user", "paired \ud83d\ude00 naïve")
    await db.set_session_title("s", lone)
    one, two = await db.get_messages("s")
    mended = "ok \ufffd end"
    assert (one["content"], one["reasoning"], one["tool_name"]) == (mended, mended, mended)
    assert (one["tool_calls"], one["reasoning_details"]) == ([{"id": mended}], {mended: mended})
    assert two["content"] == "paired 😀 naïve"
    row = await db.get_session("s")
    assert row is not None
    assert row["title"] == mended


async def test_the_time_may_be_given_and_nonsense_is_replaced_by_the_clock(db: SessionDB) -> None:
    """Seconds or a datetime; not a number and infinity are no times."""
    await db.create_session("s", "cli")
    await db.append_message("s", "user", "x", timestamp=1_000.25)
    await db.append_message("s", "user", "x", timestamp=datetime(2020, 1, 1, tzinfo=UTC))
    for nonsense in (float("nan"), float("inf"), None):
        await db.append_message("s", "user", "x", timestamp=nonsense)
    times = [row["timestamp"] for row in await db.get_messages("s")]
    assert times[:2] == [1_000.25, 1_577_836_800.0]
    assert all(time > 1_577_836_800.0 for time in times[2:])


async def test_activity_does_not_step_back_with_the_clock(db: SessionDB) -> None:
    """It is the newest message time, as the documented query computes it, also for imported old messages."""
    await db.create_session("s", "cli")
    for timestamp in (500.0, 900.0, 700.0):
        await db.append_message("s", "user", "x", timestamp=timestamp)
    row = await db.get_session("s")
    assert row is not None
    assert row["last_active"] == 900.0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"role": "robot"}, "role 'robot'"), ({"role": "user", "tool_calls": [{"x": object()}]}, "JSON")],
)
async def test_what_cannot_be_stored_is_refused_and_not_counted(
    db: SessionDB, arguments: dict[str, Any], says: str
) -> None:
    """The caller is told, the session is as before."""
    await db.create_session("s", "cli")
    with pytest.raises(InvalidArgument, match=says):
        await db.append_message("s", content="x", **arguments)
    row = await db.get_session("s")
    assert row is not None
    assert row["message_count"] == 0


async def test_numbers_that_json_does_not_know_become_null(db: SessionDB) -> None:
    """The rest of the structure is kept."""
    await db.create_session("s", "cli")
    await db.append_message("s", "assistant", "x", reasoning_details=[float("nan"), float("inf"), 1.5])
    (row,) = await db.get_messages("s")
    assert row["reasoning_details"] == [None, None, 1.5]


async def test_an_ended_session_still_takes_messages(db: SessionDB) -> None:
    """A late result is stored; the end stays."""
    await db.create_session("s", "cli")
    await db.end_session("s", "user_exit")
    await db.append_message("s", "user", "late")
    row = await db.get_session("s")
    assert row is not None
    assert (row["message_count"], row["end_reason"]) == (1, "user_exit")
