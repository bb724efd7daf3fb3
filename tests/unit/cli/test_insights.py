"""`threadline insights`: what a person and what a program reads."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator

import pytest

from gateway.rhythm import rhythm
from session_store import Moment, SessionDB, Usage
from tests.unit.cli.conftest import Fill, Threadline


@pytest.fixture(autouse=True)
def in_nepal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A zone that is no whole number of hours away."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


async def used(db: SessionDB) -> None:
    """Some use of late, and some long ago."""
    now = time.time()
    await db.create_session("a", "telegram", owner="owner", title="The key")
    for second in range(3):
        await db.append_message("a", "user", "x", timestamp=now - 10 + second)
    await db.append_message("a", "tool", "{}", tool_name="session_search", tool_call_id="c", timestamp=now)
    await db.usage.record("a", [Usage("r", "test-model", 1000, 100, reasoning_tokens=40)], "turn")
    await db.create_session("old", "cli", owner="owner", started_at=now - 90 * 86_400)
    await db.append_message("old", "user", "x", timestamp=now - 90 * 86_400)


def test_a_person_reads_how_it_was_used(threadline: Threadline, fill: Fill) -> None:
    """Each part under its heading; what is not there has none."""
    fill(used)
    lines = threadline("insights").stdout.splitlines()
    assert lines[:4] == [
        "The last 30 days",
        "  1 conversation, 4 messages (3 by people), 1 tool call",
        "  1 day with messages, 1 in a row at most, less than a minute of talk",
        "  1 call of a model: 1,000 tokens read, 100 written (40 of them reasoning)",
    ]
    assert "  test-model  1 call, 1,000 read, 100 written" in lines
    assert "  Telegram  1 conversation, 4 messages" in lines
    assert "  session_search  1 call (100%)" in lines
    assert [line for line in lines if line and not line.startswith(" ")] == [
        *("The last 30 days", "Models", "Entrances", "Tools", "Busy hours", "Weekdays", "Longest"),
    ]
    assert lines[-1] == "  a  4 messages  The key"


def test_a_program_reads_the_same_as_json(threadline: Threadline, fill: Fill) -> None:
    """With messages by hour and weekday."""
    fill(used)
    told = json.loads(threadline("insights", "--json", "--days", "365").stdout)
    assert (told["conversations"], told["user_messages"], told["days"]) == (2, 4, 2)
    assert sum(told["hours"]) == sum(told["weekdays"]) == 4
    born = json.loads(threadline("insights", "--json", "--days", "365", "--source", "cli").stdout)
    assert born["conversations"] == 1


def test_nothing_said_is_said(threadline: Threadline, fill: Fill) -> None:
    """In an empty home, and where all is older."""
    assert threadline("insights", "--days", "1").stdout == "Nothing was said in the last 1 day.\n"
    fill(used)
    assert threadline("insights", "--source", "slack").stdout == "Nothing was said in the last 30 days.\n"
    assert threadline("insights", "--days", "0").exit_code == 2


def test_hours_and_days_are_those_of_this_machine() -> None:
    """A quarter of an hour has one hour in every zone; days in a row are counted by the calendar."""
    midnight = int(dt.datetime(2026, 3, 1, 0, 15, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=45))).timestamp())
    days = [0, 1, 2, 5, 6]
    told = rhythm([Moment(moment=midnight + day * 86_400, messages=day + 1) for day in days])
    assert told.hours[0] == sum(day + 1 for day in days)
    assert (told.days, told.streak) == (5, 3)
    assert told.weekdays == (2, 3, 0, 0, 6, 7, 1)
    assert rhythm([]).streak == 0


@pytest.mark.parametrize(
    ("minutes", "words"), [(0, "less than a minute"), (1, "1 minute"), (59, "59 minutes"), (150, "2.5 hours")]
)
def test_short_talks_are_told_in_minutes(threadline: Threadline, fill: Fill, minutes: int, words: str) -> None:
    """An hour with a dot only where there are several."""

    async def talked(db: SessionDB) -> None:
        begun = time.time() - 86_400
        await db.create_session("a", "cli", owner="owner", started_at=begun)
        for minute in range(minutes + 1):
            await db.append_message("a", "user", "x", timestamp=begun + 60 * minute)

    fill(talked)
    assert f", {words} of talk" in threadline("insights").stdout


@pytest.mark.parametrize("moment", [10**200, -(10**300), 10**12])
def test_a_time_that_no_calendar_knows_is_left_out(moment: int) -> None:
    """Another tool may have stored anything; the rest is told."""
    told = rhythm([Moment(moment=moment, messages=3), Moment(moment=86_400, messages=1)])
    assert (told.days, sum(told.hours), sum(told.weekdays)) == (1, 1, 1)
