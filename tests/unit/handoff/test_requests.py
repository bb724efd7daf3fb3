"""Requests of handoffs: what is refused, who gets one, how it ends."""

from __future__ import annotations

import asyncio

import pytest

from session_store import HandoffRefused, NotFound, Visibility
from tests.conftest import Elsewhere
from tests.unit.handoff.stage import DIRECT, GROUP, SESSION, SLACK, TELEGRAM, Stage

AGE = "UPDATE handoffs SET deadline = deadline - ? WHERE op_id = ?"


async def test_a_repeated_request_is_the_same_one(stage: Stage) -> None:
    """It is known by its name, also once it has ended."""
    first = await stage.ask()
    assert (await stage.ask())["id"] == first["id"]
    await stage.db.handoffs.end(first["id"], "cancelled", "it was called off.")
    assert (await stage.ask())["state"] == "cancelled"


async def test_of_two_requests_at_once_one_is_entered(stage: Stage) -> None:
    """From two terminals, say; the other one is told in a sentence."""
    outcomes = await asyncio.gather(stage.ask("one"), stage.ask("two", target=GROUP), return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, HandoffRefused)]
    assert len(refused) == 1
    assert "on its way" in str(refused[0])


async def test_a_session_in_which_nothing_was_said_stays(stage: Stage) -> None:
    """There is no line to move."""
    await stage.db.create_session("empty", "cli", owner="owner")
    with pytest.raises(HandoffRefused, match="Nothing was said"):
        await stage.ask(session_id="empty")


async def test_what_the_asker_cannot_see_is_not_found(stage: Stage) -> None:
    """The same sentence for a session that there is and one that there is not."""
    stranger = Visibility(owners=frozenset({"p0123456789ab"}))
    for session_id in (SESSION, "nothing"):
        with pytest.raises(NotFound, match="no session"):
            await stage.ask(session_id=session_id, visible_to=stranger)


async def test_where_it_is_already_it_is_not_brought(stage: Stage) -> None:
    """Neither to the chat whose thread it is in, nor again to a channel that it went to a thread of."""
    await stage.brought("one")
    with pytest.raises(HandoffRefused, match="there already"):
        await stage.ask("two")


async def test_one_gateway_gets_it_and_only_of_its_accounts(stage: Stage) -> None:
    """Two claim at once; who serves another platform does not see it."""
    row = await stage.ask()
    other = await stage.db.processes.register("gateway", ["telegram/main"])
    assert await stage.db.handoffs.claimable(SLACK, other) == []
    assert [one["id"] for one in await stage.db.handoffs.claimable(TELEGRAM, other)] == [row["id"]]
    got = await asyncio.gather(
        stage.db.handoffs.claim(row["id"], stage.gateway), stage.db.handoffs.claim(row["id"], other)
    )
    assert sum(one is not None for one in got) == 1


async def test_the_claim_of_a_dead_gateway_is_taken_over(stage: Stage) -> None:
    """With the place that was opened already, and counted as a further attempt."""
    row, _ = await stage.taken()
    await stage.db.handoffs.opened(row["id"], stage.gateway, DIRECT, "a word")
    other = await stage.db.processes.register("gateway", ["telegram/main"])
    assert await stage.db.handoffs.claimable(TELEGRAM, other) == []
    await stage.db.processes.remove(stage.gateway)
    again = await stage.db.handoffs.claim(row["id"], other)
    assert again is not None
    assert (again["place"], again["note"], again["attempts"]) == (DIRECT, "a word", 2)
    assert (await stage.db.handoffs.hold(row["id"], other)).fence is not None
    assert not await stage.db.handoffs.stage(row["id"], stage.gateway, "still here")


async def test_a_busy_conversation_is_claimed_and_held_when_its_turn_has_ended(stage: Stage) -> None:
    """It is queued, not refused."""
    await stage.brought("first")
    running = await stage.claimed(1, DIRECT, "And the spare one?")
    row = await stage.db.handoffs.claim((await stage.ask("second", target=GROUP))["id"], stage.gateway)
    assert row is not None
    held = await stage.db.handoffs.hold(row["id"], stage.gateway)
    assert (held.fence, held.orphan) == (None, None)
    await stage.answer(running, DIRECT, "And the spare one?")
    assert (await stage.db.handoffs.hold(row["id"], stage.gateway)).fence is not None


async def test_what_nobody_takes_in_a_minute_is_overdue_and_no_reason_to_refuse_another(
    stage: Stage, elsewhere: Elsewhere
) -> None:
    """It cannot be claimed any more either."""
    row = await stage.ask("old")
    assert await stage.db.handoffs.overdue() == []
    elsewhere(AGE, 61, "old")
    assert [one["id"] for one in await stage.db.handoffs.overdue()] == [row["id"]]
    assert await stage.db.handoffs.claim(row["id"], stage.gateway) is None
    await stage.ask("new")
    ended = await stage.db.handoffs.get("old")
    assert ended is not None
    assert ended["state"] == "expired"


async def test_what_was_claimed_does_not_expire_and_what_has_ended_stays_so(stage: Stage) -> None:
    """Each end is by compare-and-swap; the first one counts."""
    row, fence = await stage.taken()
    assert not await stage.db.handoffs.end(row["id"], "expired", "too late")
    assert await stage.db.handoffs.end(row["id"], "cancelled", "it was called off.")
    assert not await stage.db.handoffs.end(row["id"], "failed", "no", holder=stage.gateway)
    with pytest.raises(Exception, match="no longer holds"):
        await stage.db.bindings.bind(stage.binding(row, fence))
    assert await stage.db.routes.of_session(SESSION) == []
    assert [row["content"] for row in await stage.db.get_messages(SESSION)] == ["Where is the key?", "Under the mat."]


async def test_a_deleted_conversation_takes_its_handoffs_along(stage: Stage, elsewhere: Elsewhere) -> None:
    """Nothing is left that names it."""
    await stage.brought("one")
    assert await stage.db.delete_session(SESSION)
    for table in ("handoffs", "place_history", "routes"):
        assert elsewhere(f"SELECT * FROM {table}") == []  # noqa: S608 - a constant
