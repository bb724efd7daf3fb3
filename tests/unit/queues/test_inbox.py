"""The inner edge: what was accepted is there once, is offered fairly, and is handled once."""

from __future__ import annotations

from typing import Any

import pytest

from session_store.errors import TitleTaken
from session_store.models import NewOutbox, PlaceRef, Retitle, StartSession
from tests.unit.queues.bench import GROUP, HOME, TELEGRAM, Bench, incoming

NOTICE = NewOutbox(HOME, "notice", "Done.")


async def test_a_repeated_delivery_is_the_same_row(bench: Bench) -> None:
    """Any number of deliveries of one event make one row and change nothing in it."""
    first = await bench.inbox.accept(incoming("m:42:1", "one"))
    again = await bench.inbox.accept(incoming("m:42:1", "changed"))
    assert (first.created, again.created) == (True, False)
    assert first.inbox_id == again.inbox_id
    (row,) = await bench.inbox.pending(TELEGRAM, "A")
    assert row["payload"] == {"text": "one"}


async def test_a_delivery_is_a_repetition_after_it_was_handled_too(bench: Bench) -> None:
    """The key stays when the payload goes."""
    row = await bench.arrives("m:42:1")
    await bench.inbox.complete(row)
    again = await bench.inbox.accept(incoming("m:42:1"))
    assert not again.created
    assert await bench.inbox.pending(TELEGRAM, "A") == []


async def test_the_same_key_of_two_accounts_is_two_events(bench: Bench) -> None:
    """Two bots in one chat see the same message ids; each has its own."""
    other = PlaceRef("telegram", "second", "dm", "42")
    await bench.arrives("m:42:1")
    assert (await bench.inbox.accept(incoming("m:42:1", place=other))).created


async def test_odd_text_comes_back_as_text(bench: Bench) -> None:
    """Lone surrogates, NUL and unpaired halves never stop a message from being accepted."""
    await bench.arrives("m:1", "ok \ud83d end\0", sender={"name": "x\udc00"})
    (row,) = await bench.inbox.pending(TELEGRAM, "A")
    assert row["payload"] == {"text": "ok \ufffd end\0"}
    assert row["sender"] == {"name": "x\ufffd"}


async def test_pending_rows_carry_their_place(bench: Bench) -> None:
    """A row can be worked without a further query."""
    await bench.arrives("m:1", place=GROUP)
    (row,) = await bench.inbox.pending(TELEGRAM, "A")
    assert (row["chat_type"], row["chat"], row["thread"], row["place_name"]) == ("group", "-7", "", "The group")


async def test_pending_is_in_order_of_arrival_whatever_the_clock_says(bench: Bench) -> None:
    """Rows are ordered by their ids; the time of receipt is for people."""
    ids = [await bench.arrives(f"m:{n}", received_at=1000.0 - n) for n in range(3)]
    assert [row["id"] for row in await bench.inbox.pending(TELEGRAM, "A")] == ids


async def test_rows_of_other_accounts_are_not_offered(bench: Bench) -> None:
    """Only the owner of an account works its rows."""
    await bench.arrives("m:1", place=PlaceRef("discord", "main", "dm", "9"))
    assert await bench.inbox.pending(TELEGRAM, "A") == []
    assert len(await bench.inbox.pending([*TELEGRAM, ("discord", "main")], "A")) == 1


async def test_a_row_of_one_process_is_offered_to_nobody_else(bench: Bench) -> None:
    """What a terminal accepted is its own."""
    row = await bench.arrives("m:1", holder="A")
    assert [one["id"] for one in await bench.inbox.pending(TELEGRAM, "A")] == [row]
    assert await bench.inbox.pending(TELEGRAM, "B") == []
    assert await bench.inbox.heads(TELEGRAM, "B") == []


async def test_a_flooded_lane_hides_no_other(bench: Bench) -> None:
    """However many rows one conversation has, the next one's are seen."""
    for n in range(30):
        await bench.arrives(f"m:{n}", lane="flooded")
    quiet = await bench.arrives("m:quiet", lane="quiet")
    offered = await bench.inbox.pending(TELEGRAM, "A", limit=10)
    assert len(offered) == 10
    assert quiet in [row["id"] for row in offered]
    assert [row["id"] for row in offered] == sorted(row["id"] for row in offered)


async def test_heads_are_the_first_rows_of_free_lanes(bench: Bench) -> None:
    """One row per lane, the oldest, and none of a lane that is being worked."""
    first = await bench.arrives("m:1", lane="one")
    await bench.arrives("m:2", lane="one")
    await bench.arrives("m:3", lane="busy")
    third = await bench.arrives("m:4", lane="three")
    heads = await bench.inbox.heads(TELEGRAM, "A", busy_lanes=["busy"])
    assert [(head.row["id"], head.more) for head in heads] == [(first, True), (third, False)]
    assert [head.row["id"] for head in await bench.inbox.heads(TELEGRAM, "A", 1)] == [first]


async def test_a_command_is_completed_with_its_effects_and_replies_once(bench: Bench) -> None:
    """Effects, reply and the mark are one; done again they do nothing."""
    row = await bench.arrives("c:1", kind="command")
    start = StartSession("key", HOME, "telegram", "owner", "fresh", title="Plans")
    assert await bench.inbox.complete(row, outbox=[NOTICE], effects=[start, Retitle("fresh", "Plan B")]) == [
        "fresh",
        "Plan B",
    ]
    assert await bench.inbox.complete(row, outbox=[NOTICE], effects=[start]) == []
    assert bench.value("SELECT COUNT(*) FROM outbox WHERE inbox_id = ?", row) == 1
    assert bench.value("SELECT COUNT(*) FROM sessions") == 1
    got = await bench.inbox.get(row)
    assert got is not None
    assert (got["state"], got["payload"]) == ("done", {})


async def test_an_impossible_effect_undoes_the_whole_completion(bench: Bench) -> None:
    """A taken title leaves the command new, so that the person can be told and it can be completed otherwise."""
    row = await bench.arrives("c:1", kind="command")
    one = StartSession("key", HOME, "telegram", "owner", "one", title="Plans")
    two = StartSession("other", HOME, "telegram", "owner", "two", title="plans")
    await bench.effects.apply([one])
    before = bench.dump()
    with pytest.raises(TitleTaken):
        await bench.inbox.complete(row, outbox=[NOTICE], effects=[two])
    assert bench.dump() == before
    assert await bench.inbox.complete(row, outbox=[NOTICE]) == []
    assert bench.value("SELECT body FROM outbox") == "Done."


async def test_what_cannot_be_handled_is_set_aside_where_it_is_seen(bench: Bench) -> None:
    """A poison row is out of the queue, with its reason and its payload, and the person is told once."""
    row = await bench.arrives("m:1", "poison")
    assert await bench.inbox.set_aside(row, "It broke.", [NOTICE])
    assert not await bench.inbox.set_aside(row, "It broke again.", [NOTICE])
    assert await bench.inbox.pending(TELEGRAM, "A") == []
    (seen,) = await bench.inbox.set_aside_rows()
    assert (seen["id"], seen["error"], seen["payload"]) == (row, "It broke.", {"text": "poison"})
    assert bench.value("SELECT COUNT(*) FROM outbox") == 1


async def test_counts_tell_what_is_open(bench: Bench) -> None:
    """Rows waiting, in work and set aside are counted; handled ones are not."""
    assert await bench.inbox.counts() == {"new": 0, "taken": 0, "set_aside": 0}
    await bench.claimed("m:1")
    await bench.arrives("m:2")
    await bench.inbox.set_aside(await bench.arrives("m:3"), "x")
    await bench.inbox.complete(await bench.arrives("m:4"))
    assert await bench.inbox.counts() == {"new": 1, "taken": 1, "set_aside": 1}


async def test_rows_of_a_dead_terminal_are_adopted_with_their_conversation(bench: Bench) -> None:
    """Who opens the session next works what was typed there and not begun; a living terminal keeps its rows."""
    bench.process("B")
    chosen: dict[str, Any] = {"session_key": None, "session_id": "s1", "lane": "session:s1"}
    left = await bench.arrives("m:1", holder="A", **chosen)
    await bench.arrives("m:2", holder="A", **chosen | {"session_id": "s2"})
    assert await bench.inbox.adopt("s1", "B") == []
    bench.kill("A")
    adopted = await bench.inbox.adopt("s1", "B")
    assert [(row["id"], row["holder"]) for row in adopted] == [(left, "B")]
    assert [row["id"] for row in await bench.inbox.pending(TELEGRAM, "B")] == [left]


async def test_rows_of_a_compressed_conversation_are_adopted_by_any_of_its_sessions(bench: Bench) -> None:
    """The row names the session it was typed in; the conversation may have moved on since."""
    bench.process("B")
    bench.apply(
        lambda tx: tx.run("INSERT INTO sessions (id, source, started_at, root_id) VALUES ('s1', 'cli', 1, 's1')")
    )
    bench.apply(
        lambda tx: tx.run("INSERT INTO sessions (id, source, started_at, root_id) VALUES ('s2', 'cli', 2, 's1')")
    )
    left = await bench.arrives("m:1", holder="A", session_key=None, session_id="s1", lane="session:s1")
    bench.kill("A")
    assert [row["id"] for row in await bench.inbox.adopt("s2", "B")] == [left]


async def test_handled_rows_are_forgotten_after_their_time_and_open_ones_never(bench: Bench) -> None:
    """Keys stay as long as asked; what is not handled stays for ever."""
    bench.wall = -3600.0
    await bench.inbox.complete(await bench.arrives("m:1"))
    open_row = await bench.arrives("m:2")
    bench.wall = 0.0
    assert await bench.inbox.forget(older_than=7200.0) == 0
    assert await bench.inbox.forget(older_than=1800.0) == 1
    assert [row["id"] for row in bench.rows("SELECT id FROM inbox")] == [open_row]
