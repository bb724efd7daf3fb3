"""Every way a turn can end, and what is in the store then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from gateway import endings, steps, turns
from gateway.agents.base import AgentContext, AgentError, AgentEvent, Final, TextDelta, ToolCalls, ToolResult
from gateway.turns import MAX_ATTEMPTS
from gateway.work import Work
from session_store import Claim, FenceLost, InvalidArgument, StoreFull, Visibility
from tests.conftest import Elsewhere
from tests.unit.gateway_core.fakes import FakeAgent, event
from tests.unit.gateway_core.hall import Hall, failing

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


async def the_turn(elsewhere: Elsewhere) -> dict[str, Any]:
    """The only turn."""
    (turn,) = elsewhere("SELECT * FROM turns")
    return turn


class Paused:
    """An agent that says something, then waits until the test lets it go on."""

    def __init__(self, agent: FakeAgent, *, deaf: bool = False) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.ended = asyncio.Event()
        self._deaf = deaf
        agent.play = self._play

    async def _play(self, context: AgentContext) -> AsyncIterator[AgentEvent]:
        try:
            yield TextDelta("so far ")
            yield TextDelta("so good")
            self.begun.set()
            while not self.go_on.is_set():
                try:
                    await self.go_on.wait()
                except asyncio.CancelledError:
                    if not self._deaf:
                        raise
            yield TextDelta(" and more")
            yield Final(f"re: {context.text}")
        finally:
            self.ended.set()

    async def wait(self) -> None:
        """Until it has begun."""
        async with asyncio.timeout(20):
            await self.begun.wait()


async def test_an_answer_its_parts_and_its_row_are_settled_together(hall: Hall, elsewhere: Elsewhere) -> None:
    """The user's words before the answer, the answer in the outbox, the row done, the lease free."""
    async with hall.running(sending=False):
        await hall.say("hello", number=7)
        await hall.until(lambda: _done(hall))
    assert await hall.transcript() == [("user", "hello"), ("assistant", "re: hello")]
    (part,) = elsewhere("SELECT * FROM outbox")
    assert (part["body"], part["kind"], part["state"], part["reply_to"]) == ("re: hello", "answer", "waiting", None)
    (row,) = elsewhere("SELECT state, payload FROM inbox")
    assert (row["state"], row["payload"]) == ("done", None)
    (lease,) = elsewhere("SELECT holder FROM leases")
    assert lease["holder"] is None
    assert (await the_turn(elsewhere))["state"] == "done"


async def _done(hall: Hall) -> bool:
    counts = await hall.db.inbox.counts()
    return counts["new"] + counts["taken"] == 0


async def test_each_step_is_stored_before_the_next_is_asked_for(hall: Hall) -> None:
    """While the agent works, its calls and results are in the store already."""
    seen: list[list[str]] = []

    async def roles() -> list[str]:
        return [role for role, _ in await hall.transcript()]

    async def play(_context: AgentContext) -> AsyncIterator[AgentEvent]:
        seen.append(await roles())
        yield ToolCalls([CALL], "let me look")
        seen.append(await roles())
        yield ToolResult("c1", "look", "seen")
        seen.append(await roles())
        yield Final("found")

    hall.agent.play = play
    async with hall.running():
        await hall.say("hello")
        await hall.sent(1)
    assert seen == [["user"], ["user", "assistant"], ["user", "assistant", "tool"]]
    assert [role for role, _ in await hall.transcript()] == ["user", "assistant", "tool", "assistant"]


async def test_what_an_agent_cannot_do_is_told_in_its_words(hall: Hall, elsewhere: Elsewhere) -> None:
    """The sentence is stored and sent like an answer."""

    async def play(_context: AgentContext) -> AsyncIterator[AgentEvent]:
        yield TextDelta("hm")
        raise AgentError("The model is away. Try later.")

    hall.agent.play = play
    async with hall.running():
        await hall.say("hello")
        assert await hall.sent(1) == ["The model is away. Try later."]
    (last,) = elsewhere("SELECT finish_reason FROM messages WHERE role = 'assistant'")
    assert last["finish_reason"] == "error"


@pytest.mark.parametrize("error", [RuntimeError("secret inner words"), asyncio.CancelledError(), KeyError("x")])
async def test_what_an_agent_breaks_on_is_not_shown_and_the_next_turn_works(hall: Hall, error: BaseException) -> None:
    """Foreign exceptions, also a stray cancellation of its own, end that turn only."""

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        yield TextDelta("hm")
        if context.text == "bad":
            raise error
        yield Final("fine")

    hall.agent.play = play
    async with hall.running():
        await hall.say("bad")
        await hall.say("good")
        first, second = await hall.sent(2)
    assert first.startswith("Something went wrong")
    assert "secret" not in first
    assert second == "fine"


async def test_an_agent_without_an_answer_is_told(hall: Hall) -> None:
    """A turn never ends in silence."""

    async def play(_context: AgentContext) -> AsyncIterator[AgentEvent]:
        yield TextDelta("hm")

    hall.agent.play = play
    async with hall.running():
        await hall.say("hello")
        assert await hall.sent(1) == ["The agent gave no answer. Please try again."]


async def test_a_stopped_turn_keeps_what_was_said_and_is_not_resumed(hall: Hall, elsewhere: Elsewhere) -> None:
    """/stop ends it for good; the person is told, the next message is answered."""
    paused = Paused(hall.agent)
    async with hall.running(recovering=True):
        await hall.say("long story")
        await paused.wait()
        await hall.say("/stop")
        assert await hall.sent(2) == ["Stopping the running turn.", "Stopped."]
        paused.go_on.set()
        await hall.say("next")
        assert (await hall.sent(3))[2] == "re: next"
    assert await hall.transcript() == [
        ("user", "long story"),
        ("assistant", "so far so good"),
        ("user", "next"),
        ("assistant", "re: next"),
    ]
    first, second = elsewhere("SELECT * FROM turns ORDER BY started_at")
    assert (first["state"], first["reason"], second["state"]) == ("interrupted", "stopped", "done")
    assert elsewhere("SELECT * FROM control WHERE done_at IS NULL") == []


async def test_a_stop_asked_for_in_another_process_is_obeyed(hall: Hall) -> None:
    """The request is a row in the store; who holds the turn reads it."""
    paused = Paused(hall.agent)
    async with hall.running():
        await hall.say("long story")
        await paused.wait()
        session = await hall.session()
        assert await hall.db.control.request_stop(session["id"], "owner")
        assert await hall.sent(1) == ["Stopped."]


async def test_a_stop_that_comes_before_the_turn_runs_is_not_lost(
    hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between claim and work the request stays open and is obeyed as soon as there is something to stop."""
    Paused(hall.agent)
    claimed, go_on = asyncio.Event(), asyncio.Event()
    real = hall.workshop.runner.run

    async def late(work: Any) -> Any:
        claimed.set()
        await go_on.wait()
        return await real(work)

    monkeypatch.setattr(hall.workshop.runner, "run", late)
    async with hall.running():
        await hall.say("long story")
        async with asyncio.timeout(20):
            await claimed.wait()
        await hall.db.control.request_stop((await hall.session())["id"], "owner")
        go_on.set()
        assert await hall.sent(1) == ["Stopped."]
    assert elsewhere("SELECT * FROM control WHERE done_at IS NULL") == []


async def test_a_stop_for_an_earlier_turn_does_not_end_the_next(hall: Hall) -> None:
    """The request names its turn."""
    paused = Paused(hall.agent)
    async with hall.running():
        await hall.say("long story")
        await paused.wait()
        (root,) = [(await hall.session())["id"]]
        assert hall.workshop.runner.stop(root, "another turn") is False
        paused.go_on.set()
        assert await hall.sent(1) == ["re: long story"]


async def test_a_turn_that_takes_too_long_is_given_up_with_a_word(
    hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is the turn's, whatever its agent does."""
    monkeypatch.setattr(turns, "TURN_LIMIT_SECONDS", 0.05)
    Paused(hall.agent)
    async with hall.running():
        await hall.say("long story")
        (sorry,) = await hall.sent(1)
    assert "given this up" in sorry
    assert (await the_turn(elsewhere))["state"] == "given_up"
    assert (await hall.transcript())[-1] == ("assistant", sorry)


async def test_a_shutdown_leaves_the_turn_to_the_next_process(hall: Hall, elsewhere: Elsewhere) -> None:
    """It stays running in the store, its lease is free, and running it again is not a further attempt."""
    paused = Paused(hall.agent)
    async with hall.running():
        await hall.say("long story")
        await paused.wait()
    turn = await the_turn(elsewhere)
    assert (turn["state"], turn["reason"], turn["attempt"]) == ("running", "shutdown", 1)
    assert hall.adapter.sent == []
    async with Hall.open(hall.db, hall.agent, hall.workshop.settings) as following:
        paused.go_on.set()
        async with following.running(recovering=True):
            assert await following.sent(1) == ["re: long story"]
    assert (await the_turn(elsewhere))["attempt"] == 1
    assert await following.transcript() == [("user", "long story"), ("assistant", "re: long story")]


async def test_an_agent_that_will_not_stop_is_left_behind_and_cannot_write(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    """The turn is left in order all the same; what the agent does later goes nowhere."""
    monkeypatch.setattr(steps, "AGENT_STOP_SECONDS", 0.05)
    paused = Paused(hall.agent, deaf=True)
    async with hall.running():
        await hall.say("long story")
        await paused.wait()
    assert any(entry["event"] == "agent_does_not_stop" for entry in logged)
    paused.go_on.set()
    async with asyncio.timeout(20):
        await paused.ended.wait()
    assert await hall.transcript() == [("user", "long story")]
    assert hall.workshop.live.text((await hall.session())["id"]) is None


async def test_a_turn_taken_over_elsewhere_is_dropped_without_a_word(
    hall: Hall, elsewhere: Elsewhere, logged: list[Any]
) -> None:
    """Whoever slept through the lease writes nothing more; the other one's answer is the only one."""
    paused = Paused(hall.agent)
    async with hall.running():
        await hall.say("long story")
        await paused.wait()
        turn = await the_turn(elsewhere)
        elsewhere("UPDATE leases SET holder = 'other', fence = fence + 1")
        elsewhere("UPDATE turns SET holder = 'other', fence = fence + 1")
        paused.go_on.set()
        await hall.until(lambda: _logged(logged, "turn_lost"))
    assert hall.adapter.sent == []
    assert (await the_turn(elsewhere))["state"] == turn["state"] == "running"
    assert await hall.transcript() == [("user", "long story")]


async def _logged(entries: list[Any], name: str) -> bool:
    return any(entry["event"] == name for entry in entries)


async def test_the_heart_notices_a_lost_turn_before_its_next_step(
    hall: Hall, elsewhere: Elsewhere, logged: list[Any]
) -> None:
    """An agent that works for long without a step is stopped when its turn belongs to somebody else."""
    paused = Paused(hall.agent)
    async with hall.running():
        await hall.say("long story")
        await paused.wait()
        await hall.workshop.runner.drop_lost()
        await asyncio.sleep(0.02)
        assert not paused.ended.is_set()
        elsewhere("UPDATE leases SET holder = 'other', fence = fence + 1")
        elsewhere("UPDATE turns SET holder = 'other', fence = fence + 1")
        await hall.workshop.runner.drop_lost()
        async with asyncio.timeout(20):
            await paused.ended.wait()
        await hall.until(lambda: _logged(logged, "turn_lost"))
    assert hall.adapter.sent == []


async def test_an_answer_waits_for_the_disk_to_have_room(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, elsewhere: Elsewhere
) -> None:
    """It is not made twice: the end of the turn is tried again."""
    monkeypatch.setattr(endings, "END_PAUSES", (0.0, 0.0, 0.0))
    with failing(hall.db.turns, "finish", 3):
        async with hall.running():
            await hall.say("hello")
            assert await hall.sent(1) == ["re: hello"]
    assert hall.agent.texts == ["hello"]
    assert (await the_turn(elsewhere))["attempt"] == 1


@pytest.mark.parametrize("where", ["step", "finish"])
async def test_a_turn_whose_store_fails_for_long_is_run_again_without_a_restart(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, elsewhere: Elsewhere, where: str
) -> None:
    """Nothing is stuck: the turn is let go of as soon as that can be written, taken up again, and answered once."""
    monkeypatch.setattr(endings, "END_PAUSES", (0.0,))
    monkeypatch.setattr("gateway.recovery.LOOK_SECONDS", 0.05)
    monkeypatch.setattr("gateway.lanes.RETRY_SECONDS", 0.0)

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        yield ToolCalls([CALL])
        yield ToolResult("c1", "look", "seen")
        yield Final(f"re: {context.text}")

    hall.agent.play = play
    with failing(hall.db.turns, where, 2), failing(hall.db.turns, "abandon", 3):
        async with hall.running(recovering=True):
            await hall.say("first")
            await hall.say("second")
            assert await hall.sent(2) == ["re: first", "re: second"]
    first, second = elsewhere("SELECT * FROM turns ORDER BY started_at")
    assert (first["state"], first["attempt"] > 1, second["state"]) == ("done", True, "done")
    contents = [content for role, content in await hall.transcript() if role == "user"]
    assert contents == ["first", "second"]


async def test_a_turn_that_fails_for_ever_is_given_up_and_the_person_told(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, elsewhere: Elsewhere
) -> None:
    """A step that can never be stored does not run the agent again and again."""
    monkeypatch.setattr("gateway.recovery.LOOK_SECONDS", 0.05)

    async def play(_context: AgentContext) -> AsyncIterator[AgentEvent]:
        yield ToolCalls([CALL])
        yield Final("never")

    hall.agent.play = play
    with failing(hall.db.turns, "step", 1000):
        async with hall.running(recovering=True):
            await hall.say("hello")
            (sorry,) = await hall.sent(1)
    assert "interrupted 3 times" in sorry
    assert len(hall.agent.asked) == MAX_ATTEMPTS
    assert (await the_turn(elsewhere))["state"] == "given_up"


async def test_a_step_that_the_store_refuses_ends_the_turn_with_its_reason(hall: Hall) -> None:
    """What is wrong with an argument stays wrong; the agent is not asked again."""

    async def play(_context: AgentContext) -> AsyncIterator[AgentEvent]:
        yield ToolCalls([CALL])
        yield Final("never")

    hall.agent.play = play
    with failing(hall.db.turns, "step", 1, lambda: InvalidArgument("The value is too big to be stored.")):
        async with hall.running():
            await hall.say("hello")
            assert await hall.sent(1) == ["The value is too big to be stored."]
    assert len(hall.agent.asked) == 1


async def test_an_answer_that_the_store_refuses_is_replaced_by_a_sentence(hall: Hall) -> None:
    """Too big an answer is told of instead of being made again and again."""
    with failing(hall.db.turns, "finish", 1, lambda: InvalidArgument("The value is too big to be stored.")):
        async with hall.running():
            await hall.say("hello")
            (sorry,) = await hall.sent(1)
    assert sorry == "The answer could not be kept. The value is too big to be stored."


async def test_a_finish_of_unknown_outcome_is_not_a_second_answer(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error came after the commit: the repeated end finds it done."""
    monkeypatch.setattr(endings, "END_PAUSES", (0.0,))
    with failing(hall.db.turns, "finish", 1, after=True):
        async with hall.running():
            await hall.say("hello")
            await hall.quiet()
    assert hall.adapter.texts == ["re: hello"]
    assert await hall.transcript() == [("user", "hello"), ("assistant", "re: hello")]


async def test_a_cancelled_claim_leaves_no_turn_behind(hall: Hall, elsewhere: Elsewhere) -> None:
    """Whoever asked went away while the claim was made: the turn is left to the next one, not held by nobody."""
    await hall.say("hello")
    (row,) = await hall.db.inbox.pending([("telegram", "main")], hall.holder)
    claiming, go_on = asyncio.Event(), asyncio.Event()
    real = hall.db.turns.claim

    async def slow(request: Any, judge: Any) -> Any:
        claim = await real(request, judge)
        claiming.set()
        await go_on.wait()
        return claim

    hall.db.turns.claim = slow  # type: ignore[method-assign]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hall.workshop.desk.handle, row)
        await claiming.wait()
        tasks.cancel_scope.cancel()
        go_on.set()
    hall.db.turns.claim = real  # type: ignore[method-assign]
    turn = await the_turn(elsewhere)
    assert (turn["state"], turn["reason"]) == ("running", "shutdown")
    assert [orphan["id"] for orphan in await hall.db.turns.orphaned([("telegram", "main")])] == [turn["id"]]
    assert await hall.workshop.desk.recover(turn["id"])
    assert await hall.transcript() == [("user", "hello"), ("assistant", "re: hello")]


async def test_long_answers_are_shown_live_up_to_a_limit_and_stored_whole(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept for showing does not grow with what is said; the partial answer of a stopped turn is whole."""
    monkeypatch.setattr(steps, "MAX_TEXT", 10)
    shown: list[int] = []
    stuck = asyncio.Event()

    async def play(_context: AgentContext) -> AsyncIterator[AgentEvent]:
        for _ in range(50):
            yield TextDelta("12345")
            live = hall.workshop.live.text((await hall.session())["id"])
            shown.append(len(live.text) if live is not None else 0)
        stuck.set()
        await asyncio.Event().wait()
        yield Final("never")

    hall.agent.play = play
    async with hall.running():
        await hall.say("hello")
        async with asyncio.timeout(20):
            await stuck.wait()
        await hall.say("/stop")
        await hall.sent(2)
    assert max(shown) == 10
    assert (await hall.transcript())[-1] == ("assistant", "12345" * 50)


async def test_only_a_claimed_turn_can_be_run(hall: Hall) -> None:
    """A mistake of the caller is told at once."""
    with pytest.raises(ValueError, match="claimed"):
        await hall.workshop.runner.run(Work(Claim("busy"), event("x").place, "x", Visibility(frozenset())))


Errors = Callable[[], Exception]


@pytest.mark.parametrize("error", [StoreFull, FenceLost])
async def test_leaving_a_turn_never_raises(hall: Hall, error: Errors) -> None:
    """A shutdown on a full disk ends; the lease is let go of by the death of the process."""
    paused = Paused(hall.agent)
    with failing(hall.db.turns, "abandon", 1000, error):
        async with hall.running():
            await hall.say("long story")
            await paused.wait()
    assert await hall.transcript() == [("user", "long story")]
