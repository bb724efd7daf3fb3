"""What a dead terminal left: found in whatever conversation, so that nothing that was typed waits unseen."""

from __future__ import annotations

from tests.unit.queues.bench import Bench

TELEGRAM = ("telegram", "main")


async def test_what_dead_processes_kept_for_themselves_is_found_newest_first(bench: Bench) -> None:
    """Rows of the living, rows that anybody may work, and rows that were worked are not among it."""
    bench.process("B")
    for key, holder in (("m:1", "A"), ("m:2", "A"), ("m:3", "B"), ("m:4", None)):
        await bench.arrives(key, holder=holder, session_key=None, session_id=f"s{key}", lane=key)
    worked = await bench.arrives("m:5", holder="A", session_key=None, session_id="s", lane="m:5")
    await bench.inbox.complete(worked)

    assert await bench.inbox.left_behind(TELEGRAM) == []

    bench.kill("A")

    assert [row["dedupe_key"] for row in await bench.inbox.left_behind(TELEGRAM)] == ["m:2", "m:1"]
    assert await bench.inbox.left_behind(("telegram", "other")) == []


async def test_what_was_adopted_is_left_no_longer(bench: Bench) -> None:
    """The row has a living process again."""
    bench.process("B")
    await bench.arrives("m:1", holder="A", session_key=None, session_id="s1", lane="session:s1")
    bench.kill("A")

    await bench.inbox.adopt("s1", "B")

    assert await bench.inbox.left_behind(TELEGRAM) == []
