"""The outer edge, order: a place's rows go out one after another, and no place waits for another one."""

from __future__ import annotations

import time

from session_store.models import NewOutbox, PlaceRef, RenderedPart
from tests.unit.queues.bench import GROUP, HOME, TELEGRAM, Bench

PARTS = [RenderedPart("one", '{"n": 1}'), RenderedPart("two", '{"n": 2}'), RenderedPart("three", '{"n": 3}')]


def say(body: str, place: PlaceRef = HOME, reply_to: str | None = None) -> NewOutbox:
    """Something to deliver."""
    return NewOutbox(place, "answer", body, reply_to)


async def bodies_due(bench: Bench) -> list[str]:
    """What may be sent now."""
    return [row["body"] for row in await bench.outbox.due(TELEGRAM)]


async def deliver(bench: Bench, outbox_id: int) -> None:
    """One row is sent."""
    assert await bench.outbox.begin(outbox_id, "A")
    await bench.outbox.sent(outbox_id, f"platform-{outbox_id}")


async def test_only_the_head_of_a_place_is_due(bench: Bench) -> None:
    """The second answer waits for the first one, also while that is being sent."""
    first, second = await bench.outbox.add([say("first"), say("second")])
    assert await bodies_due(bench) == ["first"]
    assert await bench.outbox.begin(first, "A")
    assert await bodies_due(bench) == []
    await bench.outbox.sent(first, "900")
    assert await bodies_due(bench) == ["second"]
    await deliver(bench, second)
    assert await bodies_due(bench) == []


async def test_places_do_not_wait_for_each_other(bench: Bench) -> None:
    """Each place has a line of its own; the oldest head comes first."""
    await bench.outbox.add([say("home 1"), say("group 1", GROUP), say("home 2")])
    assert await bodies_due(bench) == ["home 1", "group 1"]


async def test_topics_of_one_chat_are_places_of_their_own(bench: Bench) -> None:
    """A delayed row in one topic does not hold back the next topic."""
    topics = [PlaceRef("telegram", "main", "group", "-7", thread) for thread in ("17", "18")]
    held, _ = await bench.outbox.add([say("in 17", topics[0]), say("in 18", topics[1])])
    await bench.outbox.begin(held, "A")
    await bench.outbox.retry(held, 3600.0, "Too many requests.")
    assert await bodies_due(bench) == ["in 18"]


async def test_a_row_that_must_wait_blocks_its_own_place_only(bench: Bench) -> None:
    """Flood control in one chat is nobody else's business, and does not change the order there."""
    first, _, _ = await bench.outbox.add([say("home 1"), say("home 2"), say("group", GROUP)])
    await bench.outbox.begin(first, "A")
    await bench.outbox.retry(first, 3600.0, "Too many requests.")
    assert await bodies_due(bench) == ["group"]
    when = await bench.outbox.next_due([*TELEGRAM])
    assert when == 0.0  # the group's row may go at once


async def test_the_next_time_is_that_of_the_earliest_head(bench: Bench) -> None:
    """Delivery sleeps until then; rows behind a head do not count."""
    assert await bench.outbox.next_due(TELEGRAM) is None
    first, _ = await bench.outbox.add([say("home 1"), say("home 2")])
    await bench.outbox.begin(first, "A")
    await bench.outbox.retry(first, 100.0, "Too many requests.")
    when = await bench.outbox.next_due(TELEGRAM)
    assert when is not None
    assert 0 < when - time.time() <= 100.0


async def test_a_delay_ends(bench: Bench) -> None:
    """What was put off long enough ago is due, and still first in its line."""
    bench.wall = -100.0
    first, _ = await bench.outbox.add([say("home 1"), say("home 2")])
    await bench.outbox.begin(first, "A")
    await bench.outbox.retry(first, 60.0, "Too many requests.")
    bench.wall = 0.0
    assert await bodies_due(bench) == ["home 1"]


async def test_a_delay_set_by_a_clock_that_was_put_back_is_over(bench: Bench) -> None:
    """A wrong clock, since corrected, delays nothing for days."""
    bench.wall = 86_400.0
    (only,) = await bench.outbox.add([say("home 1")])
    await bench.outbox.begin(only, "A")
    await bench.outbox.retry(only, 60.0, "Too many requests.")
    bench.wall = 0.0
    assert await bodies_due(bench) == ["home 1"]


async def test_rows_of_other_accounts_are_not_due_here(bench: Bench) -> None:
    """Only the owner of an account sends through it; without an owner the rows wait."""
    await bench.outbox.add([say("for discord", PlaceRef("discord", "main", "dm", "9"))])
    assert await bodies_due(bench) == []
    assert len(await bench.outbox.due([*TELEGRAM, ("discord", "main")])) == 1
    assert await bench.outbox.due([]) == []


async def test_parts_take_the_place_of_the_whole_in_the_line(bench: Bench) -> None:
    """Parts go out in order, before what was queued after the whole; the first keeps its id."""
    first, _ = await bench.outbox.add([say("whole"), say("next")])
    assert await bench.outbox.begin(first, "A", PARTS)
    await bench.outbox.sent(first, "900")
    await bench.outbox.add([say("last")])
    sent = ["one"]
    while due := await bench.outbox.due(TELEGRAM):
        (row,) = due
        sent.append(row["body"])
        await deliver(bench, row["id"])
    assert sent == ["one", "two", "three", "next", "last"]
    head = bench.rows("SELECT id, part, parts, line FROM outbox WHERE body = 'one'")
    assert head == [{"id": first, "part": 1, "parts": 3, "line": first}]


async def test_parts_know_what_the_whole_came_from(bench: Bench) -> None:
    """Receipts can be traced from any part; only the first part answers a message."""
    row = await bench.arrives("m:1")
    (first,) = await bench.outbox.add([say("whole", reply_to="77")], inbox_id=row, session_id="s1")
    await bench.outbox.begin(first, "A", PARTS)
    parts = bench.rows("SELECT inbox_id, session_id, kind, reply_to, part, parts, rendered FROM outbox ORDER BY part")
    assert [part["reply_to"] for part in parts] == ["77", None, None]
    assert {(part["inbox_id"], part["session_id"], part["kind"], part["parts"]) for part in parts} == {
        (row, "s1", "answer", 3)
    }
    assert [part["rendered"] for part in parts] == [part.rendered for part in PARTS]


async def test_splitting_again_changes_nothing(bench: Bench) -> None:
    """Neither a repeated split of one that is tried again nor one of a row that is on its way."""
    (first,) = await bench.outbox.add([say("whole")])
    await bench.outbox.begin(first, "A", PARTS)
    before = bench.dump()
    assert not await bench.outbox.begin(first, "A", PARTS[:1])
    assert bench.dump() == before
    await bench.outbox.retry(first, 0.0, "slow down")
    assert await bench.outbox.begin(first, "A", PARTS[:1])
    assert [row["body"] for row in bench.rows("SELECT body FROM outbox ORDER BY part")] == ["one", "two", "three"]


async def test_nothing_to_send_is_dropped_with_a_reason(bench: Bench) -> None:
    """An answer that formats to nothing is not begun and does not block its place."""
    first, _ = await bench.outbox.add([say("\u200b"), say("next")])
    assert not await bench.outbox.begin(first, "A", [])
    assert await bodies_due(bench) == ["next"]
    (row,) = bench.rows("SELECT state, error FROM outbox WHERE id = ?", first)
    assert row["state"] == "dropped"
    assert "nothing to send" in row["error"]


async def test_named_rows_are_queued_once(bench: Bench) -> None:
    """With a name of the caller's a repeated request adds nothing, even after the rows were sent."""
    ids = await bench.outbox.add([say("a"), say("b")], op_id="start-up")
    await deliver(bench, ids[0])
    assert await bench.outbox.add([say("a"), say("b")], op_id="start-up") == ids
    assert bench.value("SELECT COUNT(*) FROM outbox") == 2


async def test_only_as_many_as_asked_are_due_oldest_first(bench: Bench) -> None:
    """No place is served again before an older one was."""
    places = [PlaceRef("telegram", "main", "dm", str(n)) for n in range(5)]
    await bench.outbox.add([say(f"to {place.chat}", place) for place in reversed(places)])
    assert [row["body"] for row in await bench.outbox.due(TELEGRAM, limit=2)] == ["to 4", "to 3"]


async def test_places_that_had_their_turn_come_after_the_others(bench: Bench) -> None:
    """However old what they still owe is."""
    places = [PlaceRef("telegram", "main", "dm", str(n)) for n in range(4)]
    await bench.outbox.add([say(f"to {place.chat}", place) for place in places])
    first, second = await bench.outbox.due(TELEGRAM, limit=2)
    due = await bench.outbox.due(TELEGRAM, limit=3, last=[first["place_id"], second["place_id"]])
    assert [row["body"] for row in due] == ["to 2", "to 3", "to 0"]


async def test_a_flooded_account_hides_no_other(bench: Bench) -> None:
    """As many as asked are due of each account, however much older what another one owes is."""
    flood = [PlaceRef("telegram", "main", "dm", str(n)) for n in range(5)]
    await bench.outbox.add([say(f"to {place.chat}", place) for place in flood])
    await bench.outbox.add([say("late", PlaceRef("slack", "main", "dm", "T1/D1"))])
    due = await bench.outbox.due([*TELEGRAM, ("slack", "main")], limit=2)
    assert [row["body"] for row in due] == ["to 0", "to 1", "late"]
