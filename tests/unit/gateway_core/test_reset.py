"""The reset policy on the whole path: from the platform's event to the new session and the word about it.

Times are told, not waited for: when a message was received, and (by another tool's hand) when a session was last
active.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator
from zoneinfo import ZoneInfo

import pytest

from config import Settings
from gateway.owner import OWNER
from gateway.places import place_ref, web_place
from session_store import NewInbox, SessionDB
from tests.conftest import Elsewhere
from tests.unit.gateway_core.fakes import FakeAgent
from tests.unit.gateway_core.hall import Hall, settings

NEW_YORK = ZoneInfo("America/New_York")


def at(text: str) -> float:
    """An instant by the wall clock of New York."""
    return dt.datetime.fromisoformat(text).replace(tzinfo=NEW_YORK).timestamp()


def active_at(elsewhere: Elsewhere, when: float) -> None:
    """The session's last activity was then."""
    elsewhere("UPDATE sessions SET last_active = ?, started_at = ? WHERE ended_at IS NULL", when, when - 60)


async def talk(hall: Hall, text: str, received: float) -> list[str]:
    """Say something that was received then; returns what came back."""
    before = len(hall.adapter.sent)
    await hall.say(text, at=received)
    await hall.quiet()
    return hall.adapter.texts[before:]


@pytest.fixture
def chosen(reset: dict[str, object]) -> Settings:
    """The policy of the test."""
    return settings(session_reset=reset)


@pytest.fixture
def reset() -> dict[str, object]:
    """Daily at four and after an idle hour, in New York, wherever the host is."""
    return {"mode": "both", "idle_minutes": 60, "at_hour": 4, "timezone": "America/New_York"}


@pytest.fixture
async def restarted(hall: Hall, agent: FakeAgent, db: SessionDB) -> AsyncIterator[Hall]:
    """The process after a restart."""
    async with Hall.open(db, agent, hall.workshop.settings) as opened:
        yield opened


async def test_a_night_with_a_restart_in_it_resets_once_for_the_day(
    hall: Hall, restarted: Hall, elsewhere: Elsewhere
) -> None:
    """Active at 03:30, restarted at 04:30 without traffic, a message at 09:00: a new session, because of the day."""
    async with hall.running():
        await talk(hall, "evening", at("2026-01-15T03:29:00"))
    old = await hall.session()
    active_at(elsewhere, at("2026-01-15T03:30:00"))
    async with restarted.running(recovering=True):
        word, answer = await talk(restarted, "morning", at("2026-01-15T09:00:00"))
        assert (word, answer) == (
            "A new session begins (a new day). The former one is kept; `/search` finds what was said.",
            "re: morning",
        )
        assert await talk(restarted, "more", at("2026-01-15T09:10:00")) == ["re: more"]
    new = await restarted.session()
    assert new["id"] != old["id"]
    ended = await restarted.db.get_session(old["id"])
    assert ended is not None
    assert ended["end_reason"] == "daily"
    assert new["message_count"] == 4
    assert len(elsewhere("SELECT id FROM sessions")) == 2


async def test_a_long_pause_resets_with_its_own_reason(hall: Hall, elsewhere: Elsewhere) -> None:
    """The rule that fell due first is the one that is told."""
    async with hall.running():
        await talk(hall, "noon", at("2026-01-15T12:00:00"))
        active_at(elsewhere, at("2026-01-15T12:00:00"))
        word, _ = await talk(hall, "later", at("2026-01-15T13:01:00"))
    assert "(a long pause)" in word
    (ended,) = elsewhere("SELECT end_reason FROM sessions WHERE ended_at IS NOT NULL")
    assert ended["end_reason"] == "idle"


async def test_before_either_rule_the_session_goes_on(hall: Hall, elsewhere: Elsewhere) -> None:
    """An hour is an hour, four is four."""
    async with hall.running():
        await talk(hall, "night", at("2026-01-15T03:00:00"))
        active_at(elsewhere, at("2026-01-15T03:00:00"))
        assert await talk(hall, "still night", at("2026-01-15T03:59:00")) == ["re: still night"]
    assert len(elsewhere("SELECT id FROM sessions")) == 1


async def test_what_was_received_before_the_boundary_is_not_reset_by_a_late_replay(
    hall: Hall, restarted: Hall, elsewhere: Elsewhere
) -> None:
    """The message came at 03:40 and was worked after a long outage: it belongs to the old day."""
    async with hall.running():
        await talk(hall, "evening", at("2026-01-15T03:29:00"))
    active_at(elsewhere, at("2026-01-15T03:30:00"))
    await restarted.say("late", at=at("2026-01-15T03:40:00"))
    async with restarted.running():
        await restarted.quiet()
    assert restarted.adapter.texts == ["re: late"]
    assert len(elsewhere("SELECT id FROM sessions")) == 1


async def test_a_clock_that_stepped_back_resets_nothing(hall: Hall, elsewhere: Elsewhere) -> None:
    """A message from before the last activity goes on in the session."""
    async with hall.running():
        await talk(hall, "today", at("2026-01-15T12:00:00"))
        active_at(elsewhere, at("2026-01-15T12:00:00"))
        assert await talk(hall, "yesterday?", at("2026-01-13T12:00:00")) == ["re: yesterday?"]
    assert len(elsewhere("SELECT id FROM sessions")) == 1


async def test_a_recovered_turn_is_not_reset_again_and_tells_its_reset_once(
    hall: Hall, restarted: Hall, elsewhere: Elsewhere
) -> None:
    """The claim ended the old session; the process died; the next one answers in the new session, with the word."""
    async with hall.running():
        await talk(hall, "evening", at("2026-01-15T03:29:00"))
    active_at(elsewhere, at("2026-01-15T03:30:00"))
    await hall.say("morning", at=at("2026-01-15T09:00:00"))
    (row,) = await hall.db.inbox.pending([("telegram", "main")], hall.holder)
    claim = await hall.db.turns.claim(
        await hall.workshop.router.request([row], hall.holder), hall.workshop.router.judge
    )
    assert claim.reset_reason == "daily"
    elsewhere("UPDATE processes SET boot_id = 'another' WHERE token = ?", hall.holder)
    async with restarted.running(recovering=True):
        word, answer = await restarted.sent(2)
    assert "a new day" in word
    assert answer == "re: morning"
    assert len(elsewhere("SELECT id FROM sessions")) == 2


class TestSpringChange:
    """Daily at two, which the spring change skips."""

    @pytest.fixture
    def reset(self) -> dict[str, object]:
        """At 02:00 New York time."""
        return {"mode": "daily", "at_hour": 2, "timezone": "America/New_York"}

    async def test_the_boundary_is_the_first_instant_after_the_gap(self, hall: Hall, elsewhere: Elsewhere) -> None:
        """At 01:59 not yet, at 03:00 (the next minute) yes, and once."""
        async with hall.running():
            await talk(hall, "midnight", at("2026-03-08T00:30:00"))
            active_at(elsewhere, at("2026-03-08T00:30:00"))
            assert len(await talk(hall, "before", at("2026-03-08T01:59:00"))) == 1
            active_at(elsewhere, at("2026-03-08T01:59:00"))
            assert len(await talk(hall, "after", at("2026-03-08T03:00:00"))) == 2
            active_at(elsewhere, at("2026-03-08T03:00:00"))
            assert len(await talk(hall, "again", at("2026-03-08T04:00:00"))) == 1


class TestNone:
    """Nothing resets by itself."""

    @pytest.fixture
    def reset(self) -> dict[str, object]:
        """The default mode, with values for the others that would reset."""
        return {"mode": "none", "idle_minutes": 1, "at_hour": 4, "timezone": "America/New_York"}

    async def test_after_a_crash_and_a_day_it_is_the_same_session(
        self, hall: Hall, restarted: Hall, elsewhere: Elsewhere
    ) -> None:
        """The process died in a turn; 25 hours later the next message continues where everything was."""
        await hall.say("before", at=at("2026-01-15T12:00:00"))
        (row,) = await hall.db.inbox.pending([("telegram", "main")], hall.holder)
        await hall.db.turns.claim(await hall.workshop.router.request([row], hall.holder), hall.workshop.router.judge)
        elsewhere("UPDATE processes SET boot_id = 'another' WHERE token = ?", hall.holder)
        active_at(elsewhere, at("2026-01-15T12:00:00"))
        async with restarted.running(recovering=True):
            await restarted.sent(1)
            active_at(elsewhere, at("2026-01-15T12:00:00"))
            assert await talk(restarted, "after", at("2026-01-16T13:00:00")) == ["re: after"]
        (session,) = elsewhere("SELECT end_reason, message_count FROM sessions")
        assert (session["end_reason"], session["message_count"]) == (None, 4)


async def test_a_session_chosen_by_id_is_never_reset(hall: Hall, elsewhere: Elsewhere) -> None:
    """What is continued on the page on purpose goes on, however old it is."""
    async with hall.running():
        await talk(hall, "long ago", at("2026-01-15T12:00:00"))
    session = await hall.session()
    active_at(elsewhere, at("2025-01-15T12:00:00"))
    accepted = await hall.db.inbox.accept(
        NewInbox(
            place_ref(web_place(OWNER)),
            "m:1",
            "message",
            f"session:{session['id']}",
            at("2026-02-01T12:00:00"),
            {"text": "on the page"},
            {},
            session_id=session["id"],
            person_id=OWNER,
        )
    )
    row = await hall.db.inbox.get(accepted.inbox_id)
    assert row is not None
    async with Hall.open(hall.db, hall.agent, hall.workshop.settings) as again:
        assert await again.workshop.desk.handle(row)
    assert len(elsewhere("SELECT id FROM sessions")) == 1
    assert (await hall.session())["message_count"] == 4
