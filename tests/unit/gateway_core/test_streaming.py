"""Answers that are shown while they are made: one message, whole in the end, whatever comes in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from adapters.base import Gone, Receipt, Refused, RetryLater, UnknownOutcome
from config import Settings
from gateway import delivery, streaming
from gateway.agents.base import AgentContext, AgentEvent, Final, TextDelta, ToolCalls, ToolResult
from session_store import NewOutbox, PlaceRef, SessionDB, SessionRow
from tests.conftest import Elsewhere
from tests.unit.gateway_core.fakes import PART, EditingAdapter, FakeAdapter, FakeAgent
from tests.unit.gateway_core.hall import Hall, settings

SHOWN = "SELECT state, platform_message_id, body FROM outbox WHERE op_id LIKE 'shown:%'"
MORE = " …"


class Script:
    """An agent's answer, piece by piece: `say` adds one, `end` ends it; `begun` is set when it is asked."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[AgentEvent] = asyncio.Queue()
        self.begun = asyncio.Event()

    def say(self, text: str) -> None:
        """A piece of text."""
        self._events.put_nowait(TextDelta(text))

    def use(self, text: str | None = None) -> None:
        """A tool call."""
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        self._events.put_nowait(ToolCalls([call], text))
        self._events.put_nowait(ToolResult("c1", "look", "{}"))

    def end(self, text: str) -> None:
        """The whole answer."""
        self._events.put_nowait(Final(text))

    async def play(self, _context: AgentContext) -> AsyncIterator[AgentEvent]:
        """What the agent does."""
        self.begun.set()
        while True:
            happened = await self._events.get()
            yield happened
            if isinstance(happened, Final):
                return


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes a while is shown without waiting for it."""
    monkeypatch.setattr(streaming, "START_SECONDS", 0.0)
    monkeypatch.setattr(streaming, "LOOK_SECONDS", 0.02)


@pytest.fixture
def script(agent: FakeAgent) -> Script:
    """What the hall's agent plays."""
    made = Script()
    agent.play = made.play
    return made


@pytest.fixture
def adapter() -> EditingAdapter:
    """The account."""
    return EditingAdapter()


@pytest.fixture
async def hall(db: SessionDB, agent: FakeAgent, chosen: Settings, adapter: EditingAdapter) -> AsyncIterator[Hall]:
    """A hall whose account can edit."""
    async with Hall.open(db, agent, chosen, adapter) as opened:
        yield opened


async def stands(hall: Hall, adapter: EditingAdapter, *texts: str) -> None:
    """Until the chat shows exactly this."""

    async def there() -> bool:
        return list(adapter.shown.values()) == list(texts)

    await hall.until(there)


def is_so(look: Callable[[], Any]) -> Callable[[], Awaitable[Any]]:
    """A look, to be awaited."""

    async def looked() -> Any:
        return look()

    return looked


async def test_an_answer_grows_in_one_message_and_is_whole_in_the_end(
    hall: Hall, script: Script, adapter: EditingAdapter, elsewhere: Elsewhere
) -> None:
    """Its receipt names the message that was there from the beginning; the beginning is in the store before it."""
    async with hall.running():
        await hall.say("tell me")
        script.say("Once upon")
        await stands(hall, adapter, f"Once upon{MORE}")
        script.say(" a time")
        await stands(hall, adapter, f"Once upon a time{MORE}")
        script.end(f"Once upon a time.{PART}The end.")
        await stands(hall, adapter, "Once upon a time.", "The end.")
        await hall.quiet()
    assert len(adapter.sent) == 2
    first, _ = adapter.shown
    rows = elsewhere("SELECT state, platform_message_id, finishes FROM outbox ORDER BY id")
    assert [row["state"] for row in rows] == ["sent"] * 3
    assert (rows[0]["platform_message_id"], rows[1]["platform_message_id"]) == (first, first)
    assert rows[1]["finishes"] is not None


async def test_a_quick_answer_is_posted_at_once(
    hall: Hall, script: Script, adapter: EditingAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is shown of what is whole before the pause is over."""
    monkeypatch.setattr(streaming, "START_SECONDS", 3600.0)
    script.say("Yes")
    script.end("Yes.")
    async with hall.running():
        await hall.say("tell me")
        await stands(hall, adapter, "Yes.")
    assert (len(adapter.sent), adapter.edited) == (1, [])


async def test_a_notice_is_not_held_up_by_an_answer_that_grows(
    hall: Hall, script: Script, adapter: EditingAdapter
) -> None:
    """It goes out below the beginning, and the answer is still put in its own place."""
    async with hall.running():
        await hall.say("tell me")
        script.say("Once")
        await stands(hall, adapter, f"Once{MORE}")
        await hall.db.outbox.add([NewOutbox(PlaceRef("telegram", "main", "dm", "42"), "notice", "By the way")])
        await stands(hall, adapter, f"Once{MORE}", "By the way")
        script.end("Once, and that was it.")
        await stands(hall, adapter, "Once, and that was it.", "By the way")
    assert len(adapter.sent) == 2


async def test_nothing_is_shown_before_what_waits_for_the_place(
    hall: Hall, script: Script, adapter: EditingAdapter, elsewhere: Elsewhere
) -> None:
    """An answer that is whole meanwhile comes in its order, unshown."""
    adapter.outcomes.append(RetryLater("slow down", 3600.0))
    await hall.db.outbox.add([NewOutbox(PlaceRef("telegram", "main", "dm", "42"), "notice", "first")])
    async with hall.running():
        await hall.until(is_so(lambda: adapter.tried))
        await hall.say("tell me")
        await script.begun.wait()
        script.say("Once")
        script.end("Once.")

        async def answered() -> bool:
            return (await hall.db.outbox.counts()).get("waiting", 0) == 2

        await hall.until(answered)
    assert elsewhere(SHOWN) == []
    assert adapter.shown == {}


async def test_a_beginning_that_had_to_wait_is_dropped_for_the_whole_answer(
    hall: Hall, script: Script, adapter: EditingAdapter, elsewhere: Elsewhere
) -> None:
    """Nobody wants the beginning of what is there whole."""
    adapter.outcomes.append(RetryLater("slow down", 0.3))
    async with hall.running():
        await hall.say("tell me")
        script.say("Once")
        await hall.until(is_so(lambda: adapter.tried))
        script.end("Once, whole.")
        await stands(hall, adapter, "Once, whole.")
    assert elsewhere(SHOWN) == []


async def test_an_answer_that_ends_while_its_beginning_is_sent_takes_its_place(
    hall: Hall, script: Script, adapter: EditingAdapter
) -> None:
    """The end waits for the receipt, and nothing is posted twice."""
    adapter.gate.clear()
    async with hall.running():
        await hall.say("tell me")
        script.say("Once")
        await hall.until(is_so(lambda: adapter.sending))
        script.end("Once, whole.")
        await hall.until(lambda: _ended(hall))
        adapter.gate.set()
        await stands(hall, adapter, "Once, whole.")
    assert len(adapter.sent) == 1


async def _ended(hall: Hall) -> bool:
    return (await hall.db.inbox.counts())["taken"] == 0


async def test_the_last_edit_is_the_whole_answer_also_when_another_hangs(
    hall: Hall, script: Script, adapter: EditingAdapter
) -> None:
    """What is under way is waited for, so that it cannot overwrite what comes later."""
    async with hall.running():
        await hall.say("tell me")
        script.say("Once")
        await stands(hall, adapter, f"Once{MORE}")
        adapter.edit_gate.clear()
        script.say(" upon")
        await hall.until(is_so(lambda: adapter.editing == 1))
        script.end("Once upon a time.")
        await hall.until(lambda: _ended(hall))
        await hall.db.processes.beat(hall.holder)
        assert adapter.editing == 1
        adapter.edit_gate.set()
        await stands(hall, adapter, "Once upon a time.")
        await hall.quiet()
    assert adapter.edited[-1][1] == "Once upon a time."


@pytest.mark.parametrize("error", [Refused("gone"), Gone("gone")])
async def test_a_message_that_cannot_be_edited_is_followed_by_the_whole_answer(
    hall: Hall, script: Script, adapter: EditingAdapter, error: Exception
) -> None:
    """Somebody deleted it: the answer is a message of its own."""
    async with hall.running():
        await hall.say("tell me")
        script.say("Once")
        await stands(hall, adapter, f"Once{MORE}")
        adapter.edits.extend([error, error])
        adapter.shown.clear()
        script.end("Once, whole.")
        await stands(hall, adapter, "Once, whole.")
        await hall.quiet()
    assert len(adapter.sent) == 2


async def test_an_edit_of_unknown_outcome_is_made_again_and_is_no_second_message(
    hall: Hall, script: Script, adapter: EditingAdapter, elsewhere: Elsewhere
) -> None:
    """It does no harm, so it is not counted as a repeat."""
    async with hall.running():
        await hall.say("tell me")
        script.say("Once")
        await stands(hall, adapter, f"Once{MORE}")
        adapter.edits.extend([UnknownOutcome("cut"), RetryLater("slow down", 0.05)])
        script.end("Once, whole.")
        await stands(hall, adapter, "Once, whole.")
        await hall.quiet()
    assert len(adapter.sent) == 1
    assert {row["resends"] for row in elsewhere("SELECT resends FROM outbox")} == {0}


async def test_an_edit_that_fails_is_not_made_again_at_once(
    hall: Hall, script: Script, adapter: EditingAdapter, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken connection is not hammered."""
    monkeypatch.setattr(delivery, "EDIT_AGAIN_SECONDS", 3600.0)
    async with hall.running():
        await hall.say("tell me")
        script.say("Once")
        await stands(hall, adapter, f"Once{MORE}")
        adapter.edits.append(UnknownOutcome("cut"))
        script.end("Once, whole.")
        await hall.until(is_so(lambda: not adapter.edits))
        await hall.until(lambda: _waiting(hall))
    (row,) = elsewhere("SELECT next_at, error FROM outbox WHERE state = 'waiting'")
    assert row["error"] == "cut"
    assert row["next_at"] > time.time() + 3000


async def _waiting(hall: Hall) -> bool:
    return (await hall.db.outbox.counts()).get("waiting", 0) == 1


async def test_a_wait_that_the_platform_names_pauses_only_what_is_shown(
    hall: Hall, script: Script, adapter: EditingAdapter
) -> None:
    """The whole answer does not wait for it."""
    async with hall.running():
        await hall.say("tell me")
        script.say("Once")
        await stands(hall, adapter, f"Once{MORE}")
        adapter.edits.append(RetryLater("slow down", 3600.0))
        script.say(" upon")
        await hall.until(is_so(lambda: not adapter.edits))
        script.end("Once upon a time.")
        await stands(hall, adapter, "Once upon a time.")


async def test_who_stops_an_answer_finds_what_was_said_and_that_it_was_stopped(
    hall: Hall, script: Script, adapter: EditingAdapter
) -> None:
    """In the same message."""
    async with hall.running():
        await hall.say("tell me")
        script.say("```py\nx = 1")
        await stands(hall, adapter, f"```py\nx = 1\n```{MORE}")
        await hall.say("/stop")
        await hall.until(is_so(lambda: "Stopped." in "".join(adapter.shown.values())))
    assert "```py\nx = 1\n```\n\nStopped." in adapter.shown.values()


async def test_an_answer_that_was_not_shown_is_stopped_with_a_word(
    hall: Hall, script: Script, adapter: EditingAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then nothing is told of it."""
    monkeypatch.setattr(streaming, "START_SECONDS", 3600.0)
    async with hall.running():
        await hall.say("tell me")
        script.say("Once")
        await script.begun.wait()
        await hall.say("/stop")
        await hall.until(is_so(lambda: "Stopped." in adapter.shown.values()))


async def test_what_was_said_before_a_tool_stays_until_something_else_is_said(
    hall: Hall, script: Script, adapter: EditingAdapter
) -> None:
    """A message never becomes empty."""
    async with hall.running():
        await hall.say("tell me")
        script.say("Let me look.")
        await stands(hall, adapter, f"Let me look.{MORE}")
        script.use("Let me look.")
        script.say("Found it")
        await stands(hall, adapter, f"Found it{MORE}")
        script.end("Found it.")
        await stands(hall, adapter, "Found it.")
    assert all(text.strip(MORE) for _, text in adapter.edited)


async def test_a_turn_that_is_run_again_goes_on_in_its_message(
    hall: Hall, script: Script, adapter: EditingAdapter, agent: FakeAgent
) -> None:
    """Left in order or not, the next process edits what is there."""
    async with hall.running():
        await hall.say("tell me")
        script.say("Once")
        await stands(hall, adapter, f"Once{MORE}")
    again = Script()
    agent.play = again.play
    opened = Hall.open(hall.db, agent, hall.workshop.settings, adapter)
    async with opened as other, other.running(recovering=True):
        again.say("Twice")
        await stands(other, adapter, f"Twice{MORE}")
        again.end("Twice upon a time.")
        await stands(other, adapter, "Twice upon a time.")
    assert len(adapter.sent) == 1


async def test_a_turn_that_another_process_finishes_ends_in_the_message_that_is_there(
    hall: Hall, script: Script, adapter: EditingAdapter, agent: FakeAgent, elsewhere: Elsewhere
) -> None:
    """That one owns no account and shows nothing; whoever does puts the answer in its place."""
    async with hall.running():
        await hall.say("tell me")
        script.say("Once")
        await stands(hall, adapter, f"Once{MORE}")
    other = Script()
    agent.play = other.play
    opened = Hall.open(hall.db, agent, hall.workshop.settings, FakeAdapter())
    async with opened as terminal, terminal.running(recovering=True, sending=False):
        other.say("Twice")
        other.end("Twice upon a time.")
        await terminal.until(lambda: _waiting(terminal))
    assert terminal.adapter.tried == []
    owner = Hall.open(hall.db, agent, hall.workshop.settings, adapter)
    async with owner as gateway, gateway.running():
        await stands(gateway, adapter, "Twice upon a time.")
        await gateway.quiet()
    assert len(adapter.sent) == 1
    assert [row["state"] for row in elsewhere("SELECT state FROM outbox")] == ["sent", "sent"]


async def test_a_beginning_of_unknown_outcome_is_settled_by_the_rule(
    hall: Hall, script: Script, adapter: EditingAdapter, elsewhere: Elsewhere
) -> None:
    """Sent again once, and that message becomes the answer."""
    adapter.outcomes.append(UnknownOutcome("cut"))
    async with hall.running():
        await hall.say("tell me")
        script.say("Once")
        await stands(hall, adapter, f"Once{MORE}")
        script.end("Once, whole.")
        await stands(hall, adapter, "Once, whole.")
    assert [sent.text for sent in adapter.tried] == [f"Once{MORE}", f"Once{MORE}"]
    assert elsewhere("SELECT SUM(resends) AS n FROM outbox") == [{"n": 1}]


class TestHeld:
    """Where unknown outcomes are left as they are."""

    @pytest.fixture
    def chosen(self) -> Settings:
        """The rule."""
        return settings(delivery={"unknown": "hold"})

    async def test_the_answer_comes_all_the_same(
        self, hall: Hall, script: Script, adapter: EditingAdapter, elsewhere: Elsewhere
    ) -> None:
        """Only the beginning is in doubt."""
        adapter.outcomes.append(UnknownOutcome("cut"))
        async with hall.running():
            await hall.say("tell me")
            script.say("Once")
            await hall.until(lambda: _unknown(hall))
            script.end("Once, whole.")
            await stands(hall, adapter, "Once, whole.")
        assert [row["state"] for row in elsewhere(SHOWN)] == ["unknown"]


async def _unknown(hall: Hall) -> bool:
    return (await hall.db.outbox.counts()).get("unknown", 0) == 1


async def test_a_beginning_that_landed_outside_its_topic_is_not_edited_while_it_grows(
    hall: Hall, script: Script, adapter: EditingAdapter
) -> None:
    """The topic is gone: the note says so, and the answer follows."""
    adapter.outcomes.append(Receipt("900", "The topic is gone.", thread_gone=True))
    async with hall.running():
        await hall.say("tell me", chat="-5", chat_type="group", thread="17")
        script.say("Once")
        await hall.until(is_so(lambda: "The topic is gone." in adapter.texts))
        script.say(" upon")
        script.end("Once upon a time.")
        await hall.until(is_so(lambda: "Once upon a time." in adapter.shown.values()))
    assert [text for _, text in adapter.edited] == ["Once upon a time."]


class TestReset:
    """Where a pause ends a session."""

    @pytest.fixture
    def chosen(self, monkeypatch: pytest.MonkeyPatch) -> Settings:
        """Every session is over."""

        def over(_router: Any, _session: SessionRow, _received_at: float) -> str:
            return "idle"

        monkeypatch.setattr("gateway.router.Router.judge", over)
        return settings()

    async def test_the_word_about_it_comes_first_and_once(
        self, hall: Hall, script: Script, adapter: EditingAdapter
    ) -> None:
        """Before the beginning of the answer."""
        async with hall.running():
            script.end("Yes.")
            await hall.say("one")
            await stands(hall, adapter, "Yes.")
            await hall.say("two")
            script.say("Once")
            await hall.until(is_so(lambda: f"Once{MORE}" in adapter.shown.values()))
            script.end("Once, whole.")
            await hall.until(is_so(lambda: "Once, whole." in adapter.shown.values()))
            await hall.quiet()
        first, reset, answer = adapter.shown.values()
        assert (first, answer) == ("Yes.", "Once, whole.")
        assert reset.startswith("A new session begins (a long pause).")


async def test_what_is_shown_of_a_long_answer_is_its_first_part(
    hall: Hall, script: Script, adapter: EditingAdapter
) -> None:
    """The rest comes with the whole."""
    async with hall.running():
        await hall.say("tell me")
        script.say(f"one{PART}two")
        await stands(hall, adapter, "one")
        script.end(f"one{PART}two{PART}three")
        await stands(hall, adapter, "one", "two", "three")
