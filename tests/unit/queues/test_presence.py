"""From where an account catches up after an absence."""

from __future__ import annotations

import time

from session_store.models import PlaceRef
from session_store.presence import Presence
from tests.unit.queues.bench import Bench

ROOM = PlaceRef("discord", "main", "group", "500")
THREAD = PlaceRef("discord", "main", "thread", "501")
WORK = PlaceRef("discord", "work", "group", "500")
MAIN = ("discord", "main")


async def test_the_last_life_sign_of_each_account_is_kept(bench: Bench) -> None:
    """Accounts do not speak for each other."""
    presence = Presence(bench)
    assert await presence.last_seen(MAIN) is None
    await presence.seen([MAIN])
    first = await presence.last_seen(MAIN)
    assert first is not None
    assert abs(first - time.time()) < 60
    bench.wall = 100.0
    await presence.seen([("discord", "work")])
    assert await presence.last_seen(MAIN) == first
    await presence.seen([MAIN, ("discord", "work")])
    assert (await presence.last_seen(MAIN) or 0) > first + 50


async def test_the_newest_id_of_each_place_is_the_largest_number(bench: Bench) -> None:
    """Whatever came last, and however many digits it has; only messages count, also those long handled."""
    await bench.arrives("m:1000", place=ROOM)
    await bench.arrives("m:999", place=ROOM)
    done = await bench.arrives("m:10000", place=THREAD)
    await bench.inbox.complete(done)
    await bench.arrives("i:99999", place=THREAD)
    await bench.arrives("m:-7:3", place=THREAD)
    await bench.arrives("m:70000", place=WORK)
    presence = Presence(bench)
    assert dict(await presence.newest(MAIN)) == {ROOM: "1000", THREAD: "10000"}
    assert await presence.newest(("discord", "work")) == [(WORK, "70000")]
    assert await presence.newest(("telegram", "main")) == []


async def test_only_the_places_used_last_are_named(bench: Bench) -> None:
    """At most as many as asked for, most recently used first."""
    for number in range(4):
        await bench.arrives(f"m:{number + 1}", place=PlaceRef("discord", "main", "group", str(number)))
    await bench.arrives("m:9", place=PlaceRef("discord", "main", "group", "0"))
    found = await Presence(bench).newest(MAIN, limit=2)
    assert [(place.chat, number) for place, number in found] == [("0", "9"), ("3", "4")]


async def test_ids_with_a_fraction_are_compared_to_the_last_digit(bench: Bench) -> None:
    """Behind the chat in the key, and with more digits than a floating number keeps."""
    chat = PlaceRef("slack", "main", "dm", "T1/D12")
    for number in ("1790000001.000200", "1790000001.000199", "1790000000.999999"):
        await bench.arrives(f"m:T1/D12:{number}", place=chat)
    await bench.arrives("c:1790000009.5", place=chat)
    assert await Presence(bench).newest(("slack", "main")) == [(chat, "1790000001.000200")]
