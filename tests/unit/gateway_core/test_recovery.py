"""What a dead process left is taken up again: once, in order, by one worker, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from gateway.agents.base import AgentContext, AgentEvent, Final, ToolCalls, ToolResult
from gateway.turns import MAX_ATTEMPTS
from session_store import SessionDB
from tests.conftest import Elsewhere
from tests.unit.gateway_core.fakes import FakeAgent
from tests.unit.gateway_core.hall import Hall, failing

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def die(elsewhere: Elsewhere, hall: Hall) -> None:
    """The hall's process is gone: the machine was started again."""
    elsewhere("UPDATE processes SET boot_id = 'another' WHERE token = ?", hall.holder)


async def claim_and_die(hall: Hall, elsewhere: Elsewhere, *texts: str) -> None:
    """The first message is claimed, then the process is gone; the others wait."""
    for text in texts:
        await hall.say(text)
    (row, *_) = await hall.db.inbox.pending([("telegram", "main")], hall.holder)
    request = await hall.workshop.router.request([row], hall.holder)
    claim = await hall.db.turns.claim(request, hall.workshop.router.judge)
    assert claim.status == "claimed"
    die(elsewhere, hall)


@pytest.fixture
async def following(hall: Hall, agent: FakeAgent, db: SessionDB) -> AsyncIterator[Hall]:
    """The next process on the same home."""
    async with Hall.open(db, agent, hall.workshop.settings) as opened:
        yield opened


@pytest.mark.parametrize("recovering", [True, False])
async def test_an_interrupted_turn_is_run_again_before_what_came_after_it(
    hall: Hall, following: Hall, elsewhere: Elsewhere, *, recovering: bool
) -> None:
    """Whether the recovery finds it or the lane of its conversation: answers come in the order of the questions."""
    await claim_and_die(hall, elsewhere, "first", "second")
    async with following.running(recovering=recovering):
        assert await following.sent(2) == ["re: first", "re: second"]
    assert following.agent.texts == ["first", "second"]
    assert await following.transcript() == [
        ("user", "first"),
        ("assistant", "re: first"),
        ("user", "second"),
        ("assistant", "re: second"),
    ]
    first, second = elsewhere("SELECT * FROM turns ORDER BY started_at")
    assert (first["attempt"], second["attempt"]) == (2, 1)


async def test_a_turn_of_a_living_process_is_left_alone(hall: Hall, following: Hall) -> None:
    """Nothing is taken over as long as its holder lives."""
    await hall.say("first")
    (row,) = await hall.db.inbox.pending([("telegram", "main")], hall.holder)
    request = await hall.workshop.router.request([row], hall.holder)
    await hall.db.turns.claim(request, hall.workshop.router.judge)
    async with anyio.create_task_group() as tasks:
        assert await following.recovery.look(tasks) == 0
    assert following.agent.asked == []


async def test_lane_and_recovery_never_both_run_a_turn(hall: Hall, following: Hall, elsewhere: Elsewhere) -> None:
    """Many at once find the same orphan; the agent is asked once."""
    await claim_and_die(hall, elsewhere, "first")
    (turn,) = elsewhere("SELECT id FROM turns")
    desk = following.workshop.desk
    results = await asyncio.gather(*(desk.recover(turn["id"]) for _ in range(8)))
    assert results.count(True) == 1
    assert following.agent.texts == ["first"]


async def test_a_turn_that_runs_here_is_not_recovered_here(hall: Hall, elsewhere: Elsewhere) -> None:
    """Also when its lease looks old because the machine slept."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        begun.set()
        await go_on.wait()
        yield Final(f"re: {context.text}")

    hall.agent.play = play
    async with hall.running(recovering=True):
        await hall.say("first")
        async with asyncio.timeout(20):
            await begun.wait()
        elsewhere("UPDATE leases SET beat = beat - 1000")
        elsewhere("UPDATE processes SET beat = beat - 1000")
        await hall.say("second")
        (turn,) = elsewhere("SELECT id FROM turns")
        assert not await hall.workshop.desk.recover(turn["id"])
        go_on.set()
        assert await hall.sent(2) == ["re: first", "re: second"]
    assert hall.agent.texts == ["first", "second"]


async def test_two_processes_that_look_at_once_share_the_work(
    hall: Hall, following: Hall, agent: FakeAgent, elsewhere: Elsewhere
) -> None:
    """One wins the take-over; the person gets one answer."""
    await claim_and_die(hall, elsewhere, "first")
    async with Hall.open(hall.db, agent, hall.workshop.settings) as third:
        (turn,) = elsewhere("SELECT id FROM turns")
        results = await asyncio.gather(
            following.workshop.desk.recover(turn["id"]), third.workshop.desk.recover(turn["id"])
        )
        assert sorted(results) == [False, True]
    assert agent.texts == ["first"]
    assert [row["body"] for row in elsewhere("SELECT body FROM outbox")] == ["re: first"]


async def test_a_turn_interrupted_three_times_is_given_up_and_the_person_told(
    hall: Hall, agent: FakeAgent, elsewhere: Elsewhere
) -> None:
    """It is run again twice; then the next message is worked as ever."""
    await claim_and_die(hall, elsewhere, "deadly", "harmless")
    begun = asyncio.Event()

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        if context.text == "deadly":
            begun.set()
            await asyncio.Event().wait()
        yield Final(f"re: {context.text}")

    agent.play = play
    for _ in range(MAX_ATTEMPTS - 1):
        async with Hall.open(hall.db, agent, hall.workshop.settings) as doomed:
            begun.clear()
            with failing(hall.db.turns, "abandon", 1000):
                async with doomed.running(recovering=True):
                    async with asyncio.timeout(20):
                        await begun.wait()
                die(elsewhere, doomed)
    async with Hall.open(hall.db, agent, hall.workshop.settings) as last, last.running(recovering=True):
        sorry, answer = await last.sent(2)
    assert "interrupted 3 times" in sorry
    assert answer == "re: harmless"
    assert agent.texts.count("deadly") == MAX_ATTEMPTS - 1
    states = [row["state"] for row in elsewhere("SELECT state FROM turns ORDER BY started_at")]
    assert states == ["given_up", "done"]


async def test_open_calls_of_the_dead_attempt_read_as_interrupted_and_the_rows_stay(
    hall: Hall, following: Hall, elsewhere: Elsewhere
) -> None:
    """The agent sees that the effect is unknown; what is stored is what happened."""
    await claim_and_die(hall, elsewhere, "first")
    (turn,) = elsewhere("SELECT * FROM turns")
    elsewhere("UPDATE processes SET boot_id = (SELECT boot_id FROM leases LIMIT 1)")
    session_id = turn["session_id"]
    await hall.db.append_message(session_id, "assistant", None, tool_calls=[CALL])
    die(elsewhere, hall)
    seen: list[Any] = []

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        seen.extend(context.conversation)
        yield ToolCalls([CALL | {"id": "c2"}])
        yield ToolResult("c2", "look", "seen")
        yield Final("done")

    following.agent.play = play
    async with following.running(recovering=True):
        await following.sent(1)
    replayed = [message for message in seen if message["role"] == "tool"]
    assert len(replayed) == 1
    assert replayed[0]["tool_call_id"] == "c1"
    assert "interrupted" in replayed[0]["content"]
    assert [role for role, _ in await following.transcript()] == ["user", "assistant", "assistant", "tool", "assistant"]


async def test_a_recovered_turn_that_takes_long_holds_up_no_other(
    hall: Hall, following: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking goes on while it runs."""
    monkeypatch.setattr("gateway.recovery.LOOK_SECONDS", 0.05)
    go_on = asyncio.Event()

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        if context.text == "slow":
            await go_on.wait()
        yield Final(f"re: {context.text}")

    following.agent.play = play
    await claim_and_die(hall, elsewhere, "slow")
    async with following.running(recovering=True):
        await following.until(lambda: _asked(following, 1))
        async with Hall.open(hall.db, following.agent, hall.workshop.settings) as another:
            await another.say("quick", chat="43", user="43")
            (row,) = await another.db.inbox.pending([("telegram", "main")], another.holder)
            request = await another.workshop.router.request([row], another.holder)
            await another.db.turns.claim(request, another.workshop.router.judge)
            die(elsewhere, another)
            assert await following.sent(1) == ["re: quick"]
        go_on.set()
        assert await following.sent(2) == ["re: quick", "re: slow"]


async def _asked(hall: Hall, count: int) -> bool:
    return len(hall.agent.asked) >= count


async def test_a_turn_that_cannot_be_recovered_does_not_end_the_recovery(
    hall: Hall, following: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it raises, others are taken up, and it is tried again."""
    monkeypatch.setattr("gateway.recovery.LOOK_SECONDS", 0.05)
    await claim_and_die(hall, elsewhere, "first")
    with failing(hall.db.turns, "take_over", 2, lambda: RuntimeError("unforeseen")) as calls:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(following.recovery.run)
            await following.until(lambda: _asked(following, 1))
            following.recovery.close()
    assert len(calls) == 3


async def test_a_turn_whose_input_is_gone_is_given_up_without_an_answer(
    hall: Hall, following: Hall, elsewhere: Elsewhere
) -> None:
    """There is nothing to run it with; the conversation is free again."""
    await claim_and_die(hall, elsewhere, "first")
    elsewhere("UPDATE inbox SET turn_id = NULL")
    (turn,) = elsewhere("SELECT id FROM turns")
    assert not await following.workshop.desk.recover(turn["id"])
    (ended,) = elsewhere("SELECT state, reason FROM turns")
    assert (ended["state"], ended["reason"]) == ("given_up", "no input")
    await following.say("second")
    async with following.running():
        assert await following.sent(1) == ["re: second"]


async def test_after_close_nothing_is_recovered(hall: Hall, following: Hall, elsewhere: Elsewhere) -> None:
    """A drain takes up nothing that it could not finish."""
    await claim_and_die(hall, elsewhere, "first")
    following.workshop.desk.close()
    (turn,) = elsewhere("SELECT id FROM turns")
    assert not await following.workshop.desk.recover(turn["id"])
    (row,) = elsewhere("SELECT attempt FROM turns")
    assert row["attempt"] == 1


async def test_a_command_that_changes_the_session_waits_for_the_interrupted_turn(
    hall: Hall, following: Hall, elsewhere: Elsewhere
) -> None:
    """/new after a kill: first the answer that is owed, then the new session."""
    await claim_and_die(hall, elsewhere, "first", "/new chapter")
    async with following.running():
        first, second = await following.sent(2)
    assert first == "re: first"
    assert "chapter" in second
    (old,) = elsewhere("SELECT session_id FROM turns")
    assert (await following.session())["id"] != old["session_id"]
