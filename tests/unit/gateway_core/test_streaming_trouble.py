"""Answers that are shown while they are made, when something goes wrong: still one message, and whole in the end."""

from __future__ import annotations

import time

import pytest

from adapters.base import Gone, Receipt, Refused, RetryLater, UnknownOutcome
from config import Settings
from gateway import delivery
from tests.conftest import Elsewhere
from tests.unit.gateway_core.fakes import EditingAdapter, FakeAdapter, FakeAgent
from tests.unit.gateway_core.hall import Hall, settings
from tests.unit.gateway_core.shown import MORE, Script, adapter, at_once, counted, ended, hall, is_so, script, stands

__all__ = ["adapter", "at_once", "hall", "script"]

SHOWN = "SELECT state, platform_message_id, body FROM outbox WHERE op_id LIKE 'shown:%'"


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
        await hall.until(lambda: ended(hall))
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
        await hall.until(counted(hall, "waiting", 1))
    (row,) = elsewhere("SELECT next_at, error FROM outbox WHERE state = 'waiting'")
    assert row["error"] == "cut"
    assert row["next_at"] > time.time() + 3000


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
        await terminal.until(counted(terminal, "waiting", 1))
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
            await hall.until(counted(hall, "unknown", 1))
            script.end("Once, whole.")
            await stands(hall, adapter, "Once, whole.")
        assert [row["state"] for row in elsewhere(SHOWN)] == ["unknown"]


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
