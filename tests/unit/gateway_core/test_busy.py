"""What becomes of messages that come while the agent works, by each setting, also over restarts and processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from config import Settings
from gateway import attention, bursts, steps, work
from gateway.agents.base import AgentContext, AgentEvent, Final, TextDelta, ToolCalls, ToolResult
from gateway.attention import WAITING
from session_store import Claim, InboxRow, SessionDB
from tests.conftest import Elsewhere
from tests.unit.gateway_core.fakes import FakeAgent
from tests.unit.gateway_core.hall import Hall, failing, settings

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
LEFT = "I have left this for your newer message."

queues = pytest.mark.parametrize("chosen", [settings()])
interrupts = pytest.mark.parametrize("chosen", [settings(busy="interrupt")])
steers = pytest.mark.parametrize("chosen", [settings(busy="steer")])
shared = pytest.mark.parametrize("chosen", [settings(busy="interrupt", group_sessions_per_user=False)])


class Gated:
    """An agent that says "thinking", then waits for leave; it takes in what is said meanwhile, if it is asked to."""

    def __init__(self, agent: FakeAgent, *, deaf: bool = False) -> None:
        self.begun = asyncio.Semaphore(0)
        self.go_on = asyncio.Event()
        self.taken: list[str] = []
        self._deaf = deaf
        agent.play = self._play

    async def _play(self, context: AgentContext) -> AsyncIterator[AgentEvent]:
        yield ToolCalls([CALL])
        yield ToolResult("c1", "look", "seen")
        yield TextDelta("thinking")
        self.begun.release()
        while not self.go_on.is_set():
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                if not self._deaf:
                    raise
        if context.steering is not None:
            self.taken = list(await context.steering.take())
        yield Final(" + ".join([f"re: {context.text}", *self.taken]))

    async def begins(self) -> None:
        """Until one more turn has begun."""
        async with asyncio.timeout(20):
            await self.begun.acquire()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks are close together."""
    monkeypatch.setattr(attention, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(attention, "REST_SECONDS", 0.0)


@pytest.fixture
def steerable(agent: FakeAgent) -> FakeAgent:
    """The agent can take in what is said while it works."""
    agent.steerable = True  # type: ignore[attr-defined]
    return agent


async def states(elsewhere: Elsewhere) -> list[tuple[str, str | None]]:
    """How the turns ended, in order."""
    return [(row["state"], row["reason"]) for row in elsewhere("SELECT state, reason FROM turns ORDER BY started_at")]


# --- queue -----------------------------------------------------------------------------------------------------------


async def test_who_waits_for_long_is_told_once_and_truly(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """One word for a whole row of messages, in order with the answers; each is answered by itself."""
    monkeypatch.setattr(attention, "TELL_SECONDS", 0.0)
    gated = Gated(hall.agent)
    async with hall.running():
        await hall.say("one")
        await gated.begins()
        await hall.say("two", at=time.time() - 1)
        await hall.say("three", at=time.time() - 1)
        assert await hall.sent(1) == [WAITING]
        gated.go_on.set()
        assert (await hall.sent(4))[1:] == ["re: one", "re: two", "re: three"]
    assert hall.adapter.texts.count(WAITING) == 1


async def test_who_waits_a_moment_is_not_told(hall: Hall) -> None:
    """A few seconds are nothing to talk about, whatever the clock of the platform says."""
    gated = Gated(hall.agent)
    async with hall.running():
        await hall.say("one")
        await gated.begins()
        await hall.say("two", at=time.time() - 3600)
        for _ in range(5):
            await hall.attention.look()
        gated.go_on.set()
        assert await hall.sent(2) == ["re: one", "re: two"]


async def test_in_a_room_the_word_answers_the_message_that_waits(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody sees whom it is for."""
    monkeypatch.setattr(attention, "TELL_SECONDS", 0.0)
    gated = Gated(hall.agent)
    async with hall.running():
        await hall.say("one", chat="-7", chat_type="group")
        await gated.begins()
        await hall.say("two", chat="-7", chat_type="group", number=77, at=time.time() - 1)
        await hall.sent(1)
        gated.go_on.set()
        await hall.sent(3)
    assert [(one.text, one.reply_to) for one in hall.adapter.sent[:1]] == [(WAITING, "77")]


async def test_a_store_that_fails_does_not_end_the_looking(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again."""
    monkeypatch.setattr(attention, "TELL_SECONDS", 0.0)
    gated = Gated(hall.agent)
    with failing(hall.db.busy, "behind", 2), failing(hall.db.busy, "tell", 1):
        async with hall.running():
            await hall.say("one")
            await gated.begins()
            await hall.say("two", at=time.time() - 1)
            assert await hall.sent(1) == [WAITING]
            gated.go_on.set()
            await hall.sent(3)


# --- interrupt -------------------------------------------------------------------------------------------------------


@interrupts
async def test_a_newer_message_ends_the_running_turn_and_is_worked_next(hall: Hall, elsewhere: Elsewhere) -> None:
    """What was said stays in the transcript; the person is told, and answered."""
    gated = Gated(hall.agent)
    async with hall.running(recovering=True):
        await hall.say("one")
        await gated.begins()
        await hall.say("two")
        assert await hall.sent(1) == [LEFT]
        await gated.begins()
        gated.go_on.set()
        assert await hall.sent(2) == [LEFT, "re: two"]
    said = [(role, content) for role, content in await hall.transcript() if role != "tool" and content]
    assert said == [("user", "one"), ("assistant", "thinking"), ("user", "two"), ("assistant", "re: two")]
    assert await states(elsewhere) == [("interrupted", "interrupted by a newer message"), ("done", None)]
    assert elsewhere("SELECT * FROM control WHERE done_at IS NULL") == []


@shared
async def test_somebody_else_interrupts_nobody(hall: Hall, elsewhere: Elsewhere) -> None:
    """In a shared room their message waits."""
    gated = Gated(hall.agent)
    room: dict[str, Any] = {"chat": "-7", "chat_type": "group"}
    async with hall.running():
        await hall.say("one", **room)
        await gated.begins()
        await hall.say("two", user="43", name="Bob", **room)
        for _ in range(5):
            await hall.attention.look()
        gated.go_on.set()
        assert await hall.sent(2) == ["re: one", "re: two"]
    assert [state for state, _ in await states(elsewhere)] == ["done", "done"]


@interrupts
async def test_an_interruption_outlives_the_process_that_was_to_obey(
    hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked for and not carried out, it ends the turn in the process that takes it over; nothing is lost."""
    monkeypatch.setattr("gateway.recovery.LOOK_SECONDS", 0.05)
    monkeypatch.setattr(hall.workshop.runner, "stop", lambda *_given, **_named: True)
    gated = Gated(hall.agent)
    async with hall.running():
        await hall.say("one")
        await gated.begins()
        await hall.say("two")

        async def asked() -> bool:
            return bool(await hall.db.control.open_for(hall.holder))

        await hall.until(asked)

    async def second_is_asked() -> bool:
        return "two" in hall.agent.texts

    async with (
        Hall.open(hall.db, hall.agent, hall.workshop.settings) as following,
        following.running(recovering=True),
    ):
        await following.until(second_is_asked)
        gated.go_on.set()
        assert await following.sent(2) == [LEFT, "re: two"]
    assert [state for state, _ in await states(elsewhere)] == ["interrupted", "done"]
    assert [content for role, content in await following.transcript() if role == "user"] == ["one", "two"]


@interrupts
async def test_an_agent_that_does_not_stop_is_left_behind(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newer message does not wait for it."""
    monkeypatch.setattr(steps, "AGENT_STOP_SECONDS", 0.05)
    deaf = Gated(hall.agent, deaf=True)
    async with hall.running():
        await hall.say("one")
        await deaf.begins()
        following = Gated(hall.agent)
        following.go_on.set()
        await hall.say("two")
        assert await hall.sent(2) == [LEFT, "re: two"]
        deaf.go_on.set()
    assert "re: one" not in hall.adapter.texts


# --- steer -----------------------------------------------------------------------------------------------------------


@steers
async def test_the_running_turn_takes_in_what_is_said_meanwhile(
    steerable: FakeAgent, hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One turn, one answer, the transcript in order; nobody is told to wait."""
    monkeypatch.setattr(attention, "TELL_SECONDS", 0.0)
    gated = Gated(steerable)
    async with hall.running():
        await hall.say("one")
        await gated.begins()
        await hall.say("two", at=time.time() - 1)
        await hall.say("three", at=time.time() - 1)
        await hall.attention.look()
        gated.go_on.set()
        assert await hall.sent(1) == ["re: one + two + three"]
        await hall.quiet()
    roles = [(role, content) for role, content in await hall.transcript() if role != "tool" and content]
    assert roles == [
        ("user", "one"),
        ("user", "two"),
        ("user", "three"),
        ("assistant", "re: one + two + three"),
    ]
    assert await states(elsewhere) == [("done", None)]
    assert hall.adapter.texts == ["re: one + two + three"]


@steers
async def test_an_agent_that_cannot_take_it_in_answers_it_afterwards(hall: Hall) -> None:
    """It is the same as to queue."""
    gated = Gated(hall.agent)
    async with hall.running():
        await hall.say("one")
        await gated.begins()
        await hall.say("two")
        gated.go_on.set()
        assert await hall.sent(2) == ["re: one", "re: two"]
    assert hall.agent.asked[0].steering is None


@steers
async def test_what_was_taken_in_is_answered_after_a_restart(
    steerable: FakeAgent, hall: Hall, elsewhere: Elsewhere
) -> None:
    """Left between taking it in and the answer, the turn runs again with all that was said."""
    taken = asyncio.Event()

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        yield TextDelta("thinking")
        assert context.steering is not None
        while not await context.steering.take():  # noqa: ASYNC110 - it tells only when asked
            await asyncio.sleep(0.01)
        taken.set()
        await asyncio.Event().wait()

    steerable.play = play
    async with hall.running():
        await hall.say("one")
        await hall.until(lambda: begun(hall))
        await hall.say("two")
        async with asyncio.timeout(20):
            await taken.wait()
    assert {row["state"] for row in elsewhere("SELECT state FROM inbox")} == {"taken"}
    async with Hall.open(hall.db, hall.agent, hall.workshop.settings) as following:
        gated = Gated(steerable)
        gated.go_on.set()
        async with following.running(recovering=True):
            assert await following.sent(1) == ["re: one\n\ntwo"]
    contents = [content for role, content in await following.transcript() if role == "user"]
    assert contents == ["one", "two"]
    assert await states(elsewhere) == [("done", None)]


async def begun(hall: Hall) -> bool:
    """Whether the agent was asked."""
    return bool(hall.agent.asked)


@steers
async def test_a_turn_that_was_lost_takes_nothing_in(
    steerable: FakeAgent, hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that was left behind cannot take messages from the inbox."""
    monkeypatch.setattr(steps, "AGENT_STOP_SECONDS", 0.05)
    deaf = Gated(steerable, deaf=True)
    async with hall.running():
        await hall.say("one")
        await deaf.begins()
        await hall.say("/stop")
        assert await hall.sent(2) == ["Stopping the running turn.", "Stopped."]
        following = Gated(steerable)
        await hall.say("two")
        await following.begins()
        await hall.say("three")
        deaf.go_on.set()
        await asyncio.sleep(0)
        following.go_on.set()
        assert (await hall.sent(3))[2] == "re: two + three"
    assert deaf.taken == []


async def test_stop_right_after_a_message_ends_its_turn(
    hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn has not begun when it is told to stop; nobody is told that nothing runs and answered all the same."""
    gated, looked = Gated(hall.agent), asyncio.Event()
    claim, get = hall.db.turns.claim, hall.db.inbox.get

    async def late(*given: Any) -> Claim:
        await looked.wait()
        return await claim(*given)

    async def seen(inbox_id: int) -> InboxRow | None:
        row = await get(inbox_id)
        looked.set()
        return row

    monkeypatch.setattr(hall.db.turns, "claim", late)
    monkeypatch.setattr(hall.db.inbox, "get", seen)
    async with hall.running():
        await hall.say("one")
        await hall.say("/stop")
        assert sorted(await hall.sent(2)) == ["Stopped.", "Stopping the running turn."]
        gated.go_on.set()
        await hall.quiet()
    assert elsewhere("SELECT state, reason FROM turns") == [{"state": "interrupted", "reason": "stopped"}]


# --- bursts ----------------------------------------------------------------------------------------------------------

merges = pytest.mark.parametrize("chosen", [settings(merge_window=2)])


@merges
async def test_a_burst_of_texts_is_one_turn(hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the window of each other they are answered together; what comes later is not."""
    monkeypatch.setattr(hall.workshop.desk._bursts, "_began", 0.0)  # noqa: SLF001 - as if it had run for long
    at = time.time() - 10
    for number, text in enumerate(["one", "two", "three"]):
        await hall.say(text, at=at + 2 * number)
    await hall.say("four", at=at + 6.5)
    async with hall.running():
        assert await hall.sent(2) == ["re: one\n\ntwo\n\nthree", "re: four"]
    assert [row["state"] for row in elsewhere("SELECT state FROM inbox")] == ["done"] * 4
    assert len(await states(elsewhere)) == 2


@merges
async def test_the_rest_of_a_burst_is_waited_for_also_over_a_restart(
    hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended in the wait, the rows are still in the inbox, and the next process waits for the rest."""
    monkeypatch.setattr(bursts, "QUIET_AFTER_RESTART_SECONDS", 0.5)
    async with hall.running():
        await hall.say("one")
        await hall.until(lambda: waits(hall))
    assert [row["state"] for row in elsewhere("SELECT state FROM inbox")] == ["new"]
    assert hall.agent.asked == []
    async with Hall.open(hall.db, hall.agent, hall.workshop.settings) as following, following.running():
        await following.say("two")
        assert await following.sent(1) == ["re: one\n\ntwo"]


async def waits(hall: Hall) -> bool:
    """Whether a lane has begun with a row."""
    return bool(hall.lanes._active)  # noqa: SLF001 - nothing tells of it


@merges
@pytest.mark.parametrize(
    "other",
    [
        {"text": "/title x"},
        {"text": "two", "group_id": "g"},
        {"text": "two", "user": "43", "name": "Bob", "chat": "-7"},
        {"text": "two", "is_late": True},
    ],
)
async def test_what_is_something_else_ends_a_burst(db: SessionDB, hall: Hall, other: dict[str, Any]) -> None:
    """A command, an album, another place, a pause."""
    at = time.time() - 100
    how = {name: value for name, value in other.items() if name not in {"text", "is_late"}}
    await hall.say("one", at=at)
    await hall.say(other["text"], at=at + (50 if "is_late" in other else 1), **how)
    await hall.say("three", at=at + (52 if "is_late" in other else 2))
    (first, *_) = await db.inbox.pending([("telegram", "main")], hall.holder)
    rows = await db.inbox.following(first["id"], 21)
    found, _ = bursts.burst(rows, 2)
    expected = ["one", "three"] if "chat" in other else ["one"]
    assert [row["payload"]["text"] for row in found] == expected


# --- the end of what hangs -------------------------------------------------------------------------------------------


@queues
async def test_an_agent_of_which_nothing_is_heard_is_given_up(
    hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch, chosen: Settings
) -> None:
    """Long before the limit of the turn, with a word; one that goes on saying something is not."""
    del chosen
    monkeypatch.setattr(work, "SILENCE_LIMIT_SECONDS", 0.3)

    async def slowly(context: AgentContext) -> AsyncIterator[AgentEvent]:
        for number in range(8):
            await asyncio.sleep(0.05)
            yield TextDelta(str(number))
        if context.text == "hang":
            await asyncio.Event().wait()
        yield Final(f"re: {context.text}")

    hall.agent.play = slowly
    async with hall.running():
        await hall.say("slow")
        await hall.say("hang")
        first, second = await hall.sent(2)
    assert first == "re: slow"
    assert second.startswith("I have given this up: nothing came of it")
    assert await states(elsewhere) == [("done", None), ("given_up", "silence")]


async def test_stop_ends_a_hung_turn_that_another_process_runs(
    home: Path, hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever holds it leaves its agent behind; it is not run again, and its late answer goes nowhere."""
    monkeypatch.setattr(steps, "AGENT_STOP_SECONDS", 0.05)
    deaf = Gated(hall.agent, deaf=True)
    async with hall.running(recovering=True):
        await hall.say("one")
        await deaf.begins()
        async with SessionDB(home / "state.db") as other:
            session = await hall.session()
            assert await other.control.request_stop(session["id"], "owner")
        assert await hall.sent(1) == ["Stopped."]
        deaf.go_on.set()
        await hall.say("two")
        assert await hall.sent(2) == ["Stopped.", "re: two"]
    assert await states(elsewhere) == [("interrupted", "stopped"), ("done", None)]
