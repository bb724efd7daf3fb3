"""The outer edge, outcomes: what is recorded of each send, and what a crash between send and receipt leaves."""

from __future__ import annotations

import pytest

from session_store.models import NewOutbox
from tests.unit.queues.bench import HOME, TELEGRAM, Bench

FIRST = NewOutbox(HOME, "answer", "first")
SECOND = NewOutbox(HOME, "answer", "second")


async def sending(bench: Bench, holder: str = "A") -> int:
    """A row whose send is under way, with another one behind it."""
    first, _ = await bench.outbox.add([FIRST, SECOND])
    assert await bench.outbox.begin(first, holder)
    return first


def state(bench: Bench, outbox_id: int) -> str:
    """The state of a row."""
    return str(bench.value("SELECT state FROM outbox WHERE id = ?", outbox_id))


async def due(bench: Bench) -> list[str]:
    """What may be sent now."""
    return [row["body"] for row in await bench.outbox.due(TELEGRAM)]


async def test_a_send_begins_once(bench: Bench) -> None:
    """Whoever comes second does not send."""
    row = await sending(bench)
    assert not await bench.outbox.begin(row, "A")
    assert not await bench.outbox.begin(row, "B")
    await bench.outbox.sent(row, "900")
    assert not await bench.outbox.begin(row, "A")
    assert bench.value("SELECT attempts FROM outbox WHERE id = ?", row) == 1


async def test_a_receipt_is_kept(bench: Bench) -> None:
    """The platform's message id is stored with the row; a repeated receipt changes nothing."""
    row = await sending(bench)
    await bench.outbox.sent(row, "900")
    before = bench.dump()
    await bench.outbox.sent(row, "901")
    await bench.outbox.retry(row, 1.0, "late")
    await bench.outbox.fail(row, "late")
    assert await bench.outbox.unknown(row, "late", resend=True) is False
    assert bench.dump() == before
    assert bench.value("SELECT platform_message_id FROM outbox WHERE id = ?", row) == "900"


async def test_a_failed_row_blocks_nothing(bench: Bench) -> None:
    """What the platform refused is recorded with its reason; the next answer goes out."""
    row = await sending(bench)
    await bench.outbox.fail(row, "The chat was deleted.")
    assert bench.rows("SELECT state, error FROM outbox WHERE id = ?", row) == [
        {"state": "failed", "error": "The chat was deleted."}
    ]
    assert await due(bench) == ["second"]


async def test_an_unknown_outcome_is_sent_again_once(bench: Bench) -> None:
    """The second unknown outcome is left as it is and blocks nothing."""
    row = await sending(bench)
    assert await bench.outbox.unknown(row, "Timed out.", resend=True)
    assert await due(bench) == ["first"]
    assert await bench.outbox.begin(row, "A")
    assert not await bench.outbox.unknown(row, "Timed out.", resend=True)
    assert (state(bench, row), await due(bench)) == ("unknown", ["second"])
    assert bench.value("SELECT resends FROM outbox WHERE id = ?", row) == 1


async def test_an_unknown_outcome_can_be_held(bench: Bench) -> None:
    """Where doubles are worse than gaps nothing is sent again."""
    row = await sending(bench)
    assert not await bench.outbox.unknown(row, "Timed out.", resend=False)
    assert (state(bench, row), await due(bench)) == ("unknown", ["second"])


@pytest.mark.parametrize("resend", [True, False])
async def test_a_receipt_that_comes_late_settles_the_row(bench: Bench, resend: bool) -> None:  # noqa: FBT001 - parameter
    """The answer did arrive: it is not sent again."""
    row = await sending(bench)
    await bench.outbox.unknown(row, "Timed out.", resend=resend)
    await bench.outbox.sent(row, "900")
    assert (state(bench, row), await due(bench)) == ("sent", ["second"])


async def test_sends_of_dead_processes_are_settled_by_the_rule(bench: Bench) -> None:
    """Killed between send and receipt: sent again and counted; after five deaths left as unknown."""
    row = await sending(bench)
    assert await bench.outbox.recover(TELEGRAM, resend=True) == 0
    bench.kill("A")
    assert await bench.outbox.recover([("discord", "main")], resend=True) == 0
    for death in range(1, 6):
        assert await bench.outbox.recover(TELEGRAM, resend=True) == 1
        assert (state(bench, row), await due(bench)) == ("waiting", ["first"])
        assert bench.value("SELECT resends FROM outbox WHERE id = ?", row) == death
        process = bench.process(f"B{death}")
        assert await bench.outbox.begin(row, process)
        bench.kill(process)
    assert await bench.outbox.recover(TELEGRAM, resend=True) == 1
    assert (state(bench, row), await due(bench)) == ("unknown", ["second"])


async def test_a_delivery_that_starts_again_settles_its_own_sends(bench: Bench) -> None:
    """A living process whose sender was restarted knows that none of its sends is under way."""
    row = await sending(bench)
    assert await bench.outbox.recover(TELEGRAM, resend=False, own="A") == 1
    assert state(bench, row) == "unknown"


async def test_counts_tell_what_became_of_all_rows(bench: Bench) -> None:
    """Waiting, failed and unknown rows are visible."""
    assert await bench.outbox.counts() == {}
    ids = await bench.outbox.add([FIRST] * 6, session_id="s1")
    for outbox_id in ids[:4]:
        await bench.outbox.begin(outbox_id, "A")
    await bench.outbox.sent(ids[0], "900")
    await bench.outbox.fail(ids[1], "x")
    await bench.outbox.unknown(ids[2], "x", resend=False)
    assert await bench.outbox.counts() == {"sent": 1, "failed": 1, "unknown": 1, "sending": 1, "waiting": 2}


async def test_settled_rows_are_swept_after_their_time_and_open_ones_never(bench: Bench) -> None:
    """What still waits is not lost, however old."""
    bench.wall = -3600.0
    first = await sending(bench)
    await bench.outbox.sent(first, "900")
    bench.wall = 0.0
    assert await bench.outbox.sweep(older_than=7200.0) == 0
    assert await bench.outbox.sweep(older_than=1800.0) == 1
    assert await due(bench) == ["second"]
