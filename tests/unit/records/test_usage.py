"""What models cost: one row per call, sums that are right whatever is told twice, reopened, compressed or deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_store import NotFound, SessionDB, Usage, UsageTotals
from session_store.usage import record_usage, totals
from tests.unit.queues.bench import Bench

CALLS = [
    Usage("r1", "m", 1000, 100, reasoning_tokens=40, provider="p", base_url="https://p.example/v1"),
    Usage("r2", "m", 1500, 200),
    Usage("r3", "m", 2500, 50, reasoning_tokens=10),
]
HELPER = Usage("r4", "small", 300, 20)
SUMS = {"calls": 4, "input_tokens": 5300, "output_tokens": 370, "reasoning_tokens": 50, "total_tokens": 5670}


def seen(sums: UsageTotals) -> dict[str, Any]:
    """The sums without the cache and the models."""
    return {name: value for name, value in sums.items() if name in SUMS}


async def told(db: SessionDB, session_id: str) -> None:
    """Three calls of a turn, the last one told twice, and one beside the turn."""
    await db.usage.record(session_id, CALLS, "turn")
    assert await db.usage.record(session_id, CALLS[2:], "turn") == 0
    await db.usage.record(session_id, [HELPER], "title")


async def test_calls_are_counted_once_and_with_those_beside_the_turn(db: SessionDB, home: Path) -> None:
    """In and out add up, reasoning stays inside out, and a reopened store says the same."""
    await db.create_session("a", "cli")
    await told(db, "a")
    sums = await db.usage.of_conversation("a")
    assert seen(sums) == SUMS
    assert [(row["model"], row["calls"], row["read_tokens"]) for row in sums["models"]] == [
        ("m", 3, 5000),
        ("small", 1, 300),
    ]
    async with SessionDB(home / "state.db") as other:
        assert seen(await other.usage.of_conversation("a")) == SUMS
        assert seen((await other.stats())["usage"]) == SUMS


async def test_the_sums_stand_in_the_documented_columns(db: SessionDB) -> None:
    """Where the documented queries look for them."""
    await db.create_session("a", "cli", model="configured")
    await told(db, "a")
    row = await db.get_session("a")
    assert row is not None
    assert (row["input_tokens"], row["output_tokens"], row["reasoning_tokens"]) == (5300, 370, 50)
    assert row["api_call_count"] == 4
    assert (row["model"], row["billing_provider"], row["billing_base_url"]) == ("m", "p", "https://p.example/v1")


async def test_a_later_model_or_one_beside_the_turn_does_not_rename_the_session(db: SessionDB) -> None:
    """The first call of a turn fixes what the session runs on."""
    await db.create_session("a", "cli", model="configured")
    await db.usage.record("a", [HELPER], "title")
    before = await db.get_session("a")
    assert before is not None
    assert before["model"] == "configured"
    await db.usage.record("a", [CALLS[0], Usage("r9", "another", 1, 1, provider="q")], "turn")
    row = await db.get_session("a")
    assert row is not None
    assert (row["model"], row["billing_provider"]) == ("m", "p")


async def test_the_sums_are_those_of_the_whole_conversation(db: SessionDB) -> None:
    """Compression changes nothing; what is told of the ended segment afterwards counts for the live one."""
    await db.create_session("a", "cli")
    await db.usage.record("a", CALLS[:2], "turn")
    await db.end_session("a", "compression")
    await db.create_session("b", "cli", parent_session_id="a")
    await db.usage.record("a", [CALLS[2], CALLS[2]], "turn")
    await db.usage.record("b", [HELPER], "summary")
    assert seen(await db.usage.of_conversation("a")) == SUMS
    assert seen(await db.usage.of_conversation("b")) == SUMS
    tip = await db.get_session("b")
    assert tip is not None
    assert tip["input_tokens"] == 2800


async def test_the_total_has_what_came_from_and_went_to_the_cache(db: SessionDB) -> None:
    """Both are beside the input, not in it."""
    await db.create_session("a", "cli")
    await db.usage.record("a", [Usage("r", "m", 10, 5, cache_read_tokens=100, cache_write_tokens=1)], "turn")
    assert (await db.usage.of_conversation("a"))["total_tokens"] == 116


async def test_nonsense_from_a_server_breaks_no_sum(db: SessionDB) -> None:
    """Counts below zero or beyond all measure are cut."""
    await db.create_session("a", "cli")
    await db.usage.record("a", [Usage(f"r{number}", "m", -5, 2**62) for number in range(3)], "turn")
    sums = await db.usage.of_conversation("a")
    assert (sums["input_tokens"], sums["output_tokens"]) == (0, 3 * 2**40)


async def test_an_unknown_session_has_no_costs(db: SessionDB) -> None:
    """Told, not kept somewhere."""
    with pytest.raises(NotFound):
        await db.usage.record("nobody", CALLS, "turn")
    with pytest.raises(NotFound):
        await db.usage.of_conversation("nobody")


async def test_the_export_has_every_call_and_deleting_takes_them(db: SessionDB) -> None:
    """In the order in which they were told."""
    await db.create_session("a", "cli")
    await told(db, "a")
    exported = await db.export_session("a")
    assert exported is not None
    assert [row["request_id"] for row in exported["usage"]] == ["r1", "r2", "r3", "r4"]
    assert [row["purpose"] for row in exported["usage"]] == ["turn", "turn", "turn", "title"]
    await db.delete_session("a")
    assert (await db.stats())["usage"]["models"] == []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 10_000), st.integers(0, 10_000)), max_size=30))
def test_whatever_is_told_twice_the_sums_are_those_of_the_rows(told_calls: list[tuple[int, int, int]]) -> None:
    """The first report of a request id counts, all others change nothing."""
    bench = Bench()
    try:
        bench.connection.execute("INSERT INTO sessions (id, source, started_at) VALUES ('a', 'cli', 0)")
        first: dict[int, tuple[int, int]] = {}
        for number, read, written in told_calls:
            first.setdefault(number, (read, written))
            call = Usage(f"r{number}", "m", read, written)
            bench.apply(lambda tx, call=call: record_usage(tx, "a", [call, call]))  # type: ignore[misc]
        sums = bench.look(lambda rx: totals(rx, ["a"]))
        assert sums["calls"] == len(first)
        assert sums["input_tokens"] == sum(read for read, _ in first.values())
        assert sums["output_tokens"] == sum(written for _, written in first.values())
    finally:
        bench.close()
