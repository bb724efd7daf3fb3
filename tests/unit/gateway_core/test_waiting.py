"""A conversation that another process or turn holds: waiting for it is cheap, keeps the order and loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway import signs
from gateway.agents.base import AgentContext, AgentEvent, Final
from gateway.attachments import Collector
from gateway.desk import Desk
from session_store import Claim, NewInbox, NewMessage, PlaceRef, SessionDB
from tests.conftest import Elsewhere
from tests.unit.gateway_core.fakes import FakeAgent
from tests.unit.gateway_core.hall import Hall, failing

TERMINAL = PlaceRef("cli", "main", "dm", "terminal")


@pytest.fixture
async def terminal(hall: Hall, agent: FakeAgent, db: SessionDB) -> AsyncIterator[Hall]:
    """Another living process on the same home."""
    async with Hall.open(db, agent, hall.workshop.settings) as opened:
        yield opened


async def held(hall: Hall, by: Hall) -> Claim:
    """A first message is answered here, then the other process works in the same conversation."""
    async with hall.running():
        await hall.say("first")
        await hall.sent(1)
    session = await hall.session()
    accepted = await by.db.inbox.accept(
        NewInbox(
            TERMINAL, "m:1", "message", "t", 1.0, {"text": "typed"}, {}, session_id=session["id"], holder=by.holder
        )
    )
    row = await by.db.inbox.get(accepted.inbox_id)
    assert row is not None
    claim = await by.db.turns.claim(await by.workshop.router.request([row], by.holder), by.workshop.router.judge)
    assert claim.status == "claimed"
    return claim


async def fresh(hall: Hall, agent: FakeAgent) -> Any:
    """The gateway once more: its lanes were closed."""
    return Hall.open(hall.db, agent, hall.workshop.settings)


async def test_the_row_waits_and_is_worked_when_the_conversation_is_free(
    hall: Hall, terminal: Hall, agent: FakeAgent
) -> None:
    """One claim finds it held; from then on it is only looked at, however much is committed meanwhile."""
    claim = await held(hall, terminal)
    assert claim.fence is not None
    async with await fresh(hall, agent) as again:
        claims: list[str] = []
        real = hall.db.turns.claim

        async def counted(request: Any, judge: Any) -> Claim:
            result = await real(request, judge)
            claims.append(result.status)
            return result

        hall.db.turns.claim = counted  # type: ignore[method-assign]
        async with again.running():
            await again.say("second")
            await again.say("third")
            await again.until(lambda: _is(claims, 1))
            for _ in range(30):
                await terminal.db.processes.beat(terminal.holder)
                await asyncio.sleep(0.005)
            assert claims == ["busy"]
            assert (await hall.db.inbox.counts())["new"] == 2
            await terminal.db.turns.finish(claim.fence, NewMessage("assistant", "typed answer"))
            assert await again.sent(2) == ["re: second", "re: third"]
        hall.db.turns.claim = real  # type: ignore[method-assign]
    contents = [content for _, content in await hall.transcript()]
    assert contents == ["first", "re: first", "typed", "typed answer", "second", "re: second", "third", "re: third"]


async def _is(claims: list[str], count: int) -> bool:
    return len(claims) >= count


async def test_other_conversations_go_on_meanwhile(hall: Hall, terminal: Hall, agent: FakeAgent) -> None:
    """Only the held one waits."""
    await held(hall, terminal)
    async with await fresh(hall, agent) as again, again.running():
        await again.say("waits")
        await again.say("hello", chat="43", user="43")
        assert await again.sent(1) == ["re: hello"]
        assert (await hall.db.inbox.counts())["new"] == 1


async def test_a_holder_that_dies_has_its_turn_run_first(
    hall: Hall, terminal: Hall, agent: FakeAgent, elsewhere: Elsewhere
) -> None:
    """What was typed there is answered before what came later here."""
    await held(hall, terminal)
    async with await fresh(hall, agent) as again, again.running():
        await again.say("second")
        await again.until(lambda: _waits(hall))
        elsewhere("UPDATE processes SET boot_id = 'another' WHERE token = ?", terminal.holder)
        assert await again.sent(1) == ["re: second"]
    contents = [content for _, content in await hall.transcript()]
    assert contents == ["first", "re: first", "typed", "re: typed", "second", "re: second"]


async def _waits(hall: Hall) -> bool:
    return (await hall.db.inbox.counts())["new"] == 1


async def test_a_turn_of_our_own_that_could_not_be_left_is_let_go_of_by_who_waits_for_it(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the recovery, as in a terminal: the next message lets go of it, has it run, and is answered."""
    monkeypatch.setattr("gateway.endings.END_PAUSES", ())
    monkeypatch.setattr("gateway.lanes.RETRY_SECONDS", 0.01)
    with failing(hall.db.turns, "finish", 1), failing(hall.db.turns, "abandon", 4):
        async with hall.running():
            await hall.say("first")
            await hall.say("second")
            assert await hall.sent(2) == ["re: first", "re: second"]


async def test_commands_that_may_overtake_are_answered_while_a_turn_runs(hall: Hall) -> None:
    """/status does not wait behind the answer."""
    go_on = asyncio.Event()
    begun = asyncio.Event()

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        begun.set()
        await go_on.wait()
        yield Final(f"re: {context.text}")

    hall.agent.play = play
    async with hall.running():
        await hall.say("long")
        async with asyncio.timeout(20):
            await begun.wait()
        await hall.say("/status")
        (status,) = await hall.sent(1)
        assert "A turn is running" in status
        go_on.set()
        await hall.sent(2)


async def test_typing_is_shown_where_the_answer_will_go_if_it_takes_a_moment(
    db: SessionDB, agent: FakeAgent, hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that is there at once needs no sign; a slow one shows it until it is there."""
    monkeypatch.setattr(signs, "TYPING_AFTER", 0.0)
    monkeypatch.setattr(signs, "TYPING_SECONDS", 0.01)
    shown = asyncio.Event()

    async def typing(place: Any) -> None:
        await hall.adapter.typing(place)
        if len(hall.adapter.typed) >= 2:
            shown.set()

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        await shown.wait()
        yield Final(f"re: {context.text}")

    agent.play = play
    workshop = hall.workshop
    slow = Desk(
        db,
        workshop.router,
        workshop.runner,
        workshop.commands,
        hall.holder,
        counter=workshop.counter,
        compressor=workshop.compressor,
        collector=Collector(db, {}, workshop.settings),
        titler=workshop.titler,
        streaming=workshop.streaming,
        typing=typing,
    )
    await hall.say("hello", chat="-5", chat_type="group", thread="17")
    (row,) = await db.inbox.pending([("telegram", "main")], hall.holder)
    async with asyncio.timeout(20):
        assert await slow.handle(row)
    assert {(place.chat, place.thread) for place in hall.adapter.typed} == {("-5", "17")}
    count = len(hall.adapter.typed)
    await asyncio.sleep(0.05)
    assert len(hall.adapter.typed) == count
