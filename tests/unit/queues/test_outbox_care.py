"""What a person sees of outgoing rows, and what they can do about them."""

from __future__ import annotations

import asyncio
import time

from session_store.models import NewOutbox, RenderedPart
from tests.unit.queues.bench import GROUP, HOME, TELEGRAM, Bench

ALL = ("waiting", "sending", "unknown", "failed", "sent", "dropped")
PARTS = [RenderedPart("one", "{}"), RenderedPart("two", "{}")]


async def one_of_each(bench: Bench) -> dict[str, int]:
    """A row in every state but dropped; returns their ids."""
    names = ["sent", "failed", "unknown", "sending", "waiting"]
    places = [HOME, HOME, HOME, HOME, GROUP]
    ids = await bench.outbox.add(
        [NewOutbox(place, "answer", name) for name, place in zip(names, places, strict=True)], session_id="s"
    )
    for outbox_id in ids[:4]:
        assert await bench.outbox.begin(outbox_id, "A")
    await bench.outbox.sent(ids[0], "900")
    await bench.outbox.fail(ids[1], "The chat is gone.")
    await bench.outbox.unknown(ids[2], "The connection broke.", resend=False)
    return dict(zip(names, ids, strict=True))


async def test_the_list_is_by_state_and_in_the_order_of_sending(bench: Bench) -> None:
    """A part that failed stands where it would go out."""
    ids = await one_of_each(bench)
    rows = await bench.outbox.listed(("waiting", "sending", "unknown", "failed"))
    assert [row["state"] for row in rows] == ["failed", "unknown", "sending", "waiting"]
    assert [row["id"] for row in await bench.outbox.listed(("failed",))] == [ids["failed"]]
    assert await bench.outbox.listed(("dropped",)) == []
    assert len(await bench.outbox.listed(ALL, limit=2)) == 2


async def test_trying_again_leads_from_failed_and_unknown_only(bench: Bench) -> None:
    """What is sent, being sent or waiting stays as it is, and the answer says so."""
    ids = await one_of_each(bench)
    before = await bench.outbox.try_again([*ids.values(), 999])
    assert before == {number: name for name, number in ids.items()} | {999: None}
    states = {row["id"]: row["state"] for row in await bench.outbox.listed(ALL)}
    assert states == {
        ids["sent"]: "sent",
        ids["failed"]: "waiting",
        ids["unknown"]: "waiting",
        ids["sending"]: "sending",
        ids["waiting"]: "waiting",
    }


async def test_a_part_tried_again_goes_out_before_what_came_later_with_fresh_patience(bench: Bench) -> None:
    """Its attempts and resends begin anew, its age stays true, and why it had failed is still told."""
    first, second = await bench.outbox.add([NewOutbox(HOME, "answer", "first"), NewOutbox(HOME, "answer", "second")])
    await bench.outbox.begin(first, "A")
    await bench.outbox.unknown(first, "The connection broke.", resend=True)
    await bench.outbox.begin(first, "A")
    await bench.outbox.unknown(first, "The connection broke again.", resend=True)
    assert [row["id"] for row in await bench.outbox.due(TELEGRAM)] == [second]
    bench.wall = 90_000.0
    await bench.outbox.try_again([first])
    bench.wall = 0.0
    (row,) = await bench.outbox.listed(("waiting",), limit=1)
    assert (row["id"], row["attempts"], row["resends"]) == (first, 0, 0)
    assert row["error"] == "The connection broke again."
    assert row["created_at"] < time.time() + 1
    assert row["again_at"] is not None
    assert row["again_at"] > time.time() + 80_000
    # Its turn has come, whatever the clock did.
    assert [each["id"] for each in await bench.outbox.due(TELEGRAM)] == [first]
    assert await bench.outbox.begin(first, "A")
    assert await bench.outbox.unknown(first, "Once more.", resend=True)


async def test_dropping_frees_the_line_and_cannot_touch_a_send_under_way(bench: Bench) -> None:
    """Whoever waits behind a dropped part is next; a second call finds it dropped."""
    ids = await one_of_each(bench)
    before = await bench.outbox.drop(list(ids.values()))
    assert before[ids["sending"]] == "sending"
    states = {row["id"]: row["state"] for row in await bench.outbox.listed(ALL)}
    assert [states[ids[name]] for name in ("sent", "sending", "failed", "unknown", "waiting")] == [
        "sent",
        "sending",
        "dropped",
        "dropped",
        "dropped",
    ]
    assert (await bench.outbox.drop([ids["failed"]])) == {ids["failed"]: "dropped"}
    assert (await bench.outbox.try_again([ids["failed"]])) == {ids["failed"]: "dropped"}
    held, behind = await bench.outbox.add([NewOutbox(GROUP, "answer", "held"), NewOutbox(GROUP, "answer", "behind")])
    await bench.outbox.begin(held, "A")
    await bench.outbox.retry(held, 3600.0, "Too many requests.")
    await bench.outbox.drop([held])
    assert [row["id"] for row in await bench.outbox.due(TELEGRAM)] == [behind]


async def test_a_send_and_a_drop_at_once_end_in_one_of_both(bench: Bench) -> None:
    """Begun first, it is sent; dropped first, nobody sends it."""
    (row,) = await bench.outbox.add([NewOutbox(HOME, "answer", "x")])
    begun, before = await asyncio.gather(bench.outbox.begin(row, "A"), bench.outbox.drop([row]))
    (now,) = await bench.outbox.listed(ALL)
    assert (begun, before[row], now["state"]) in {(True, "sending", "sending"), (False, "waiting", "dropped")}


async def test_parts_of_an_answer_are_tried_again_one_by_one(bench: Bench) -> None:
    """Only the part that failed is sent again."""
    (line,) = await bench.outbox.add([NewOutbox(HOME, "answer", "whole")])
    await bench.outbox.begin(line, "A", PARTS)
    await bench.outbox.fail(line, "refused")
    (second,) = await bench.outbox.due(TELEGRAM)
    await bench.outbox.begin(second["id"], "A")
    await bench.outbox.sent(second["id"], "901")
    await bench.outbox.try_again([line])
    assert [row["body"] for row in await bench.outbox.due(TELEGRAM)] == ["one"]


async def test_what_is_on_its_way_is_that_of_the_place_and_that_of_the_session(bench: Bench) -> None:
    """Another place's is not; what did not arrive is told for a while."""
    ids = await one_of_each(bench)
    (other,) = await bench.outbox.add([NewOutbox(GROUP, "notice", "of somebody else")], session_id="t")
    here = await bench.outbox.on_its_way(HOME, None)
    assert [row["id"] for row in here] == [ids["sending"]]
    both = await bench.outbox.on_its_way(HOME, "s")
    assert [row["id"] for row in both] == [ids["sending"], ids["waiting"]]
    assert other in [row["id"] for row in await bench.outbox.on_its_way(GROUP, None)]
    lost = await bench.outbox.not_arrived(HOME, None, time.time() - 60)
    assert [row["state"] for row in lost] == ["failed", "unknown"]
    assert await bench.outbox.not_arrived(GROUP, None, time.time() - 60) == []
    assert await bench.outbox.not_arrived(HOME, "s", time.time() + 60) == []
