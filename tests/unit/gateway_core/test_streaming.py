"""Answers that are shown while they are made: one message, whole in the end, in the order of its place."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.base import RetryLater
from config import Settings
from gateway import streaming
from session_store import NewOutbox, PlaceRef, SessionRow
from tests.conftest import Elsewhere
from tests.unit.gateway_core.fakes import PART, EditingAdapter
from tests.unit.gateway_core.hall import Hall, failing, settings
from tests.unit.gateway_core.shown import MORE, Script, adapter, at_once, ended, hall, is_so, script, stands

__all__ = ["adapter", "at_once", "hall", "script"]

SHOWN = "SELECT state, platform_message_id, body FROM outbox WHERE op_id LIKE 'shown:%'"


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


async def test_nothing_is_shown_of_what_is_whole_and_only_waits_for_the_store(
    hall: Hall, script: Script, adapter: EditingAdapter, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that takes its time is not given more to do."""
    monkeypatch.setattr(streaming, "START_SECONDS", 0.1)
    script.say("Once")
    script.end("Once.")
    with failing(hall.db.turns, "finish", 1):
        async with hall.running():
            await hall.say("tell me")
            await stands(hall, adapter, "Once.")
    assert elsewhere(SHOWN) == []
    assert adapter.edited == []


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
        await hall.until(lambda: ended(hall))
        adapter.gate.set()
        await stands(hall, adapter, "Once, whole.")
    assert len(adapter.sent) == 1


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
