"""Bots are heard for a while only; events that nobody can read are kept, each once and not for ever."""

from __future__ import annotations

from dataclasses import replace

from session_store.models import BotCaps
from session_store.unreadable import KEPT, RAW_CHARACTERS, UnreadableEvents
from tests.unit.queues.bench import GROUP, Bench, incoming

CAPS = BotCaps(depth=2, spoken=4, seconds=3600.0)


async def says(bench: Bench, key: str, *, bot: bool) -> bool:
    """Whether a message is recorded."""
    row = incoming(key, "hello", GROUP)
    return (await bench.inbox.accept(replace(row, caps=CAPS) if bot else row)).created


async def test_bots_among_themselves_are_not_heard_for_long(bench: Bench) -> None:
    """A person sets the depth back, only time the rate; a repeated delivery is not counted."""
    assert [await says(bench, f"m:{n}", bot=True) for n in (1, 1, 2, 3)] == [True, False, True, False]
    assert await says(bench, "m:4", bot=False)
    assert [await says(bench, f"m:{n}", bot=True) for n in (5, 6, 7)] == [True, True, False]
    assert await says(bench, "m:8", bot=False)
    assert not await says(bench, "m:9", bot=True)
    bench.wall += 3601
    assert await says(bench, "m:10", bot=True)


async def test_a_clock_that_was_put_back_locks_no_bot_out(bench: Bench) -> None:
    """A period that would begin in the future is over."""
    bench.wall = 1e6
    for n in (1, 2, 3, 4):
        await says(bench, f"m:{n}", bot=True)
        await says(bench, f"p:{n}", bot=False)
    bench.wall = 0.0
    assert await says(bench, "m:9", bot=True)


async def test_an_unreadable_event_is_one_row_however_often_it_comes(bench: Bench) -> None:
    """With the beginning of its raw form, and a count."""
    events = UnreadableEvents(bench)
    for _ in range(3):
        await events.record("telegram", "main", "no number", "x" * 10_000)
    await events.record("slack", "main", "no number", "x" * 10_000)
    assert await events.count() == 2
    (first,) = [event for event in await events.newest() if event["platform"] == "telegram"]
    assert (first["times"], first["reason"], len(first["raw"])) == (3, "no number", RAW_CHARACTERS)


async def test_of_a_flood_only_the_newest_are_kept(bench: Bench) -> None:
    """What one account sends hides nothing of another's."""
    events = UnreadableEvents(bench)
    await events.record("slack", "main", "why", "alone")
    for number in range(KEPT + 5):
        await events.record("telegram", "main", "why", f"event {number}")
    assert await events.count() == KEPT + 1
    assert bench.value("SELECT COUNT(*) FROM unreadable WHERE raw = 'event 0'") == 0
