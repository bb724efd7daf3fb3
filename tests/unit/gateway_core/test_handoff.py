"""Handoffs and links in the core of a gateway: what is opened, what is said where, what goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from adapters.base import AdapterState, Gone, Place, Refused, RetryLater, UnknownOutcome
from gateway import handoff
from gateway.agents.base import AgentContext, AgentError, AgentEvent, Final, SummaryRequest, Written
from gateway.handoff_watch import call_off, watch
from gateway.handoff_words import outcome
from session_store import HandoffRow, Home, NewHandoff, PlaceRef
from tests.conftest import Elsewhere
from tests.unit.gateway_core.hall import Hall

FORUM = PlaceRef("telegram", "main", "group", "-100")
PRIVATE = PlaceRef("telegram", "main", "dm", "42")


async def begun(hall: Hall, session_id: str = "begun") -> str:
    """A conversation of the owner in the terminal."""
    await hall.db.create_session(session_id, "cli", owner="owner", title="The key")
    await hall.db.append_message(session_id, "user", "Where is the key?")
    await hall.db.append_message(session_id, "assistant", "Under the mat.")
    return session_id


async def asked(hall: Hall, target: PlaceRef = FORUM, **more: Any) -> str:
    """A request for that conversation; returns its name."""
    given: dict[str, Any] = {"op_id": "op", "kind": "handoff", "session_id": await begun(hall)}
    await hall.db.handoffs.request(NewHandoff(target=Home(target, "42"), person_id="owner", **given | more))
    return "op"


async def over(hall: Hall, op_id: str = "op") -> HandoffRow:
    """The request once it has ended."""

    async def ended() -> HandoffRow | None:
        row = await hall.db.handoffs.get(op_id)
        return row if row is not None and row["state"] not in {"requested", "claimed"} else None

    row = await hall.until(ended)
    assert row is not None
    return row


async def test_it_goes_on_in_a_fresh_thread_named_after_it(hall: Hall) -> None:
    """With the agent's summary; the next message continues it."""
    hall.adapter.threads.append("7")
    op_id = await asked(hall)
    async with hall.running(handing=True):
        assert (await over(hall, op_id))["state"] == "completed"
        (welcome,) = await hall.sent(1)
        await hall.say("And the spare one?", chat="-100", chat_type="group", thread="7", addressed=False)
        await hall.sent(2)
    assert hall.adapter.titles == ["The key"]
    assert hall.adapter.sent[0].place == Place("telegram", "main", "group", "-100", "7")
    assert "“The key” goes on here" in welcome
    assert "2 messages about anything" in welcome
    assert "It is this room's conversation now" in welcome
    assert [row["content"] for row in await hall.db.get_messages("begun")][3:] == [
        "And the spare one?",
        "re: And the spare one?",
    ]


async def test_an_agent_that_fails_keeps_nobody_waiting(hall: Hall) -> None:
    """The words of the conversation itself are the summary then."""

    async def broken(request: SummaryRequest) -> Written:
        raise AgentError(f"No network for {request.session_id}.")

    hall.agent.sum_up = broken
    await asked(hall)
    async with hall.running(handing=True):
        assert (await over(hall))["state"] == "completed"
        (welcome,) = await hall.sent(1)
    assert "Asked: Where is the key?" in welcome


async def test_the_summary_does_not_tell_of_former_moves(hall: Hall) -> None:
    """Where it went before is in its history of places; the answer before such a word stands for itself."""

    async def broken(request: SummaryRequest) -> Written:
        raise AgentError(f"No network for {request.session_id}.")

    hall.agent.sum_up = broken
    await asked(hall)
    await hall.db.append_message("begun", "assistant", "This conversation goes on in a chat.", finish_reason="handoff")
    async with hall.running(handing=True):
        assert (await over(hall))["state"] == "completed"
        (welcome,) = await hall.sent(1)
    assert "Answered:" in welcome
    assert "goes on in a chat" not in welcome


async def test_where_there_are_no_threads_it_goes_on_in_the_chat_and_says_so(hall: Hall) -> None:
    """A direct chat without topics."""
    hall.adapter.threads.append(Refused("The chat has no topics."))
    await asked(hall, PRIVATE)
    async with hall.running(handing=True):
        done = await over(hall)
        (welcome,) = await hall.sent(1)
    assert done["place"] == PRIVATE
    assert "No thread could be opened, so it goes on in the chat itself (The chat has no topics)." in welcome
    assert (await hall.session())["id"] == "begun"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Gone("The bot was removed from the group."), "The bot was removed from the group."),
        (UnknownOutcome("The connection broke."), "nobody knows whether the thread was opened"),
    ],
)
async def test_what_cannot_be_changes_nothing_and_is_told_where_it_was_asked(
    hall: Hall, error: Exception, words: str, elsewhere: Elsewhere
) -> None:
    """It never goes to another place than the one that was asked for."""
    hall.adapter.threads.extend([error] * handoff.OPENINGS)
    await asked(hall, asked_at=PRIVATE)
    async with hall.running(handing=True):
        done = await over(hall)
        (told,) = await hall.sent(1)
    assert done["state"] == "failed"
    assert words in (done["error"] or "")
    assert "came to nothing" in told
    assert hall.adapter.sent[0].place == Place("telegram", "main", "dm", "42")
    assert elsewhere("SELECT * FROM routes") == []
    assert len(await hall.db.get_messages("begun")) == 2


async def test_what_the_platform_asks_to_wait_for_is_waited_for(hall: Hall) -> None:
    """And a thread that may be there is tried again."""
    hall.adapter.threads.extend([RetryLater("Slowly.", 0.01), UnknownOutcome("Who knows."), "9"])
    await asked(hall)
    async with hall.running(handing=True):
        done = await over(hall)
    assert done["place"] is not None
    assert done["place"].thread == "9"


async def test_a_running_turn_is_waited_for_and_then_it_goes(hall: Hall) -> None:
    """The answer goes where it was asked; what is said there later begins anew."""
    gate = asyncio.Event()

    async def slow(context: AgentContext) -> AsyncIterator[AgentEvent]:
        await gate.wait()
        yield Final(f"re: {context.text}")

    hall.agent.play = slow
    sentences: list[str] = []
    async with hall.running(handing=True):
        await hall.say("Where is the key?")
        await hall.until(lambda: _asked(hall))
        session = await hall.session()
        new = NewHandoff("op", "handoff", session["id"], Home(FORUM, "42"), "owner")
        await hall.db.handoffs.request(new)
        waiting = asyncio.create_task(watch(hall.db, "op", sentences.append))

        async def told() -> bool:
            return any("running turn" in sentence for sentence in sentences)

        await hall.until(told)
        gate.set()
        done = await waiting
        await hall.sent(3)
    assert done is not None
    assert outcome(done).startswith("The conversation goes on in a thread of a group on Telegram")
    answer, farewell = [one.text for one in hall.adapter.sent if one.place.private]
    assert answer == "re: Where is the key?"
    assert "What is said here from now on begins a new session" in farewell


async def _asked(hall: Hall) -> bool:
    await asyncio.sleep(0)
    return bool(hall.agent.asked)


async def test_called_off_while_a_thread_is_opened_nothing_is_bound(hall: Hall, elsewhere: Elsewhere) -> None:
    """The thread stays empty."""
    hall.adapter.gate.clear()
    op_id = await asked(hall)
    async with hall.running(handing=True):
        await hall.until(lambda: _opening(hall))
        assert await call_off(hall.db, op_id)
        assert not await call_off(hall.db, op_id)
        hall.adapter.gate.set()
        done = await over(hall)
        await hall.quiet()
    assert done["state"] == "cancelled"
    assert outcome(done) == "The handoff was cancelled; the conversation is where it was."
    assert elsewhere("SELECT * FROM routes") == []
    assert hall.adapter.sent == []


async def test_while_the_platform_is_away_the_conversation_is_free(hall: Hall) -> None:
    """Who speaks in it is answered; the handoff goes on when the account is back."""
    op_id = await asked(hall)
    async with hall.running(handing=True):
        hall.adapter.state = AdapterState.RETRYING

        async def waits() -> bool:
            row = await hall.db.handoffs.get(op_id)
            return row is not None and row["stage"] == "waiting until Telegram can be reached"

        await hall.until(waits)
        assert not await hall.db.turns.is_held(None, "begun")
        hall.adapter.state = AdapterState.CONNECTED
        assert (await over(hall))["state"] == "completed"


async def _opening(hall: Hall) -> bool:
    await asyncio.sleep(0)
    return bool(hall.adapter.titles)


async def test_who_waits_sees_a_slow_gateway_through_to_the_end(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of the claim says nothing about the work that follows it."""
    monkeypatch.setattr("gateway.handoff_watch.CLAIM_SECONDS", 0.05)
    monkeypatch.setattr("gateway.handoff_watch.STILL_SECONDS", 0.05)
    monkeypatch.setattr("gateway.handoff_watch.LOOK_SECONDS", 0.02)
    hall.adapter.gate.clear()
    sentences: list[str] = []
    op_id = await asked(hall)
    async with hall.running(handing=True):
        await hall.until(lambda: _opening(hall))
        waiting = asyncio.create_task(watch(hall.db, op_id, sentences.append))

        async def patient() -> bool:
            return sum("Still at it" in sentence for sentence in sentences) >= 3

        await hall.until(patient)
        hall.adapter.gate.set()
        done = await waiting
    assert done is not None
    assert done["state"] == "completed"
    assert sentences[0] == "The gateway is at it: opening a thread."


async def test_nobody_there_is_said_at_once_and_ends_it_after_the_minute(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to do about it."""
    monkeypatch.setattr("gateway.handoff_watch.CLAIM_SECONDS", 0.05)
    monkeypatch.setattr("gateway.handoff_watch.LOOK_SECONDS", 0.02)
    await asked(hall, PlaceRef("slack", "main", "group", "T1/C1"))
    sentences: list[str] = []
    done = await watch(hall.db, "op", sentences.append)
    assert done is not None
    assert sentences[0].startswith("No running gateway serves Slack now")
    assert done["state"] == "expired"
    assert "`threadline gateway run`" in outcome(done)


async def test_a_session_deleted_meanwhile_ends_it(hall: Hall) -> None:
    """No thread is opened for nothing."""
    op_id = await asked(hall)
    row = await hall.db.handoffs.get(op_id)
    assert row is not None
    await hall.db.delete_session("begun")
    assert await hall.db.handoffs.get(op_id) is None
    async with hall.running(handing=True):
        await hall.quiet()
    assert hall.adapter.titles == []


async def test_linked_places_hear_of_each_other(hall: Hall) -> None:
    """Who said it and where is told; the answer goes to where it was asked, and to the other place as a copy."""
    hall.adapter.threads.extend(["7", "8"])
    await asked(hall, kind="link")
    async with hall.running(handing=True):
        await over(hall)
        await hall.db.handoffs.request(
            NewHandoff("two", "link", "begun", Home(PRIVATE, "42"), "owner", visible_to=None)
        )
        await over(hall, "two")
        await hall.sent(3)
        before = len(hall.adapter.sent)
        await hall.say("And the spare one?", thread="8")
        await hall.sent(before + 3)
        said = [(one.place.chat, one.text) for one in hall.adapter.sent[before:]]
    assert ("42", "re: And the spare one?") in said
    forum = [text for chat, text in said if chat == "-100"]
    assert forum == [
        "**Ann on Telegram:** And the spare one?",
        "**Answer to Ann on Telegram:**\n\nre: And the spare one?",
    ]
