"""The reset policy: idle and daily, in the configured zone, over daylight saving, and never by accident."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import UnknownTimezone
from gateway.reset import ResetMode, ResetPolicy

NEW_YORK = "America/New_York"
BERLIN = "Europe/Berlin"
HOUR = 3600.0


def at(zone: str, text: str, fold: int = 0) -> float:
    """Unix seconds of a wall time in a zone."""
    return dt.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


@pytest.fixture
def host_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A function that sets the machine's own zone; put back afterwards."""

    def choose(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield choose
    monkeypatch.undo()
    time.tzset()


def test_daily_in_the_configured_zone_beats_a_later_idle(host_zone: Callable[[str], None]) -> None:
    """Active 03:30 New York time, message 09:00 on a UTC host: 04:00 came before the idle hour was over."""
    host_zone("UTC")
    policy = ResetPolicy("both", idle_minutes=60, at_hour=4, timezone=NEW_YORK)
    active, message = at(NEW_YORK, "2026-06-10 03:30"), at(NEW_YORK, "2026-06-10 09:00")
    assert policy.judge(active, message) == "daily"


def test_idle_that_fell_due_before_the_daily_hour_is_the_reason() -> None:
    """Idle since the evening: the idle rule ended the session long before the morning did."""
    policy = ResetPolicy("both", idle_minutes=60, at_hour=4, timezone=NEW_YORK)
    assert policy.judge(at(NEW_YORK, "2026-06-09 20:00"), at(NEW_YORK, "2026-06-10 09:00")) == "idle"


def test_daily_boundary_is_the_configured_hour_exactly() -> None:
    """One second before the hour nothing happens; at the hour the new day has begun; activity at the hour is new."""
    policy = ResetPolicy("daily", idle_minutes=60, at_hour=4, timezone=BERLIN)
    active, boundary = at(BERLIN, "2026-01-15 03:00"), at(BERLIN, "2026-01-15 04:00")
    assert policy.judge(active, boundary - 1) is None
    assert policy.judge(active, boundary) == "daily"
    assert policy.judge(boundary, boundary + 23 * HOUR) is None
    assert policy.judge(boundary, boundary + 24 * HOUR) == "daily"


def test_daily_skipped_by_the_spring_change_comes_right_after_the_gap() -> None:
    """02:00 does not exist on the spring day in New York: the day begins when 03:00 is first shown, not at 01:00."""
    policy = ResetPolicy("daily", idle_minutes=60, at_hour=2, timezone=NEW_YORK)
    active = at(NEW_YORK, "2026-03-08 01:30")
    change = at(NEW_YORK, "2026-03-08 03:00")
    assert change - active == HOUR / 2
    assert policy.judge(active, change - 1) is None
    assert policy.judge(active, change) == "daily"
    assert policy.judge(change, at(NEW_YORK, "2026-03-09 01:59:59")) is None


def test_daily_inside_a_longer_gap_is_found_to_the_second() -> None:
    """Lord Howe's half-hour gap starts at 02:00: the boundary is 02:30, the first time shown after it."""
    zone = "Australia/Lord_Howe"
    policy = ResetPolicy("daily", idle_minutes=60, at_hour=2, timezone=zone)
    active, change = at(zone, "2026-10-04 01:59"), at(zone, "2026-10-04 02:30")
    assert change - active == 60
    assert policy.judge(active, change - 1) is None
    assert policy.judge(active, change) == "daily"


def test_daily_shown_twice_by_the_autumn_change_happens_once() -> None:
    """01:00 comes twice on the autumn day: the first one resets, the second one does not."""
    policy = ResetPolicy("daily", idle_minutes=60, at_hour=1, timezone=NEW_YORK)
    first, second = at(NEW_YORK, "2026-11-01 01:00"), at(NEW_YORK, "2026-11-01 01:00", fold=1)
    assert second - first == HOUR
    assert policy.judge(first - 60, first) == "daily"
    assert policy.judge(first + 60, second + 60) is None
    assert policy.judge(second - 60, second) is None


def test_idle_counts_real_time_over_a_change() -> None:
    """An idle hour is 3600 seconds also in the night of the change."""
    policy = ResetPolicy("idle", idle_minutes=60, at_hour=4, timezone=NEW_YORK)
    active = at(NEW_YORK, "2026-03-08 01:30")
    assert policy.judge(active, active + HOUR - 1) is None
    assert policy.judge(active, active + HOUR) == "idle"


def test_none_never_resets() -> None:
    """After 25 hours or 25 years: the session goes on."""
    policy = ResetPolicy("none", idle_minutes=1, at_hour=4, timezone=None)
    assert policy.judge(1_000_000.0, 1_000_000.0 + 25 * HOUR) is None
    assert policy.judge(0.0, 25 * 365 * 24 * HOUR) is None


def test_single_rules_ignore_the_other() -> None:
    """Mode idle has no daily boundary, mode daily no idle time."""
    active = at(BERLIN, "2026-01-15 03:30")
    assert ResetPolicy("idle", 600, 4, BERLIN).judge(active, active + HOUR) is None
    assert ResetPolicy("daily", 1, 4, BERLIN).judge(active, active + HOUR / 4) is None


@pytest.mark.parametrize("zone", [NEW_YORK, "Asia/Tokyo"])
def test_without_a_zone_the_machines_own_counts(host_zone: Callable[[str], None], zone: str) -> None:
    """The hour is read on the machine's wall clock, daylight saving included."""
    host_zone(zone)
    policy, named = ResetPolicy("daily", 60, 2), ResetPolicy("daily", 60, 2, timezone=zone)
    start = at(zone, "2026-03-07 12:00")
    pairs = [(start + hours * HOUR, start + (hours + later) * HOUR) for hours in range(0, 72, 5) for later in range(30)]
    assert [policy.judge(*pair) for pair in pairs] == [named.judge(*pair) for pair in pairs]
    assert {policy.judge(*pair) for pair in pairs} == {None, "daily"}


def test_unknown_zone_is_refused_in_a_sentence() -> None:
    """A wrong zone is named, with what to write instead; a path is no zone."""
    for name in ("Mars/Olympus", "../etc/passwd", ""):
        with pytest.raises(UnknownTimezone, match="time zone") as caught:
            ResetPolicy("daily", 60, 4, timezone=name)
        assert name in str(caught.value)


def test_broken_stored_times_do_not_break_the_judgement() -> None:
    """A last activity far before the epoch counts as long ago; one in the far future resets nothing."""
    policy = ResetPolicy("both", 60, 4, NEW_YORK)
    assert policy.judge(-1e15, 1.8e9) == "idle"
    assert policy.judge(1.8e15, 1.8e9) is None


modes: st.SearchStrategy[ResetMode] = st.sampled_from(["idle", "daily", "both"])
zones = st.sampled_from([NEW_YORK, BERLIN, "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "UTC"])
policies = st.builds(ResetPolicy, modes, st.integers(1, 3000), st.integers(0, 23), zones)
times = st.floats(1.2e9, 2.2e9)


@given(policy=policies, now=times, back=st.floats(0, 1e8))
def test_a_clock_that_stepped_back_never_resets(policy: ResetPolicy, now: float, back: float) -> None:
    """A message that seems older than the last activity goes on with the session."""
    assert policy.judge(now + back, now) is None


@given(policy=policies, active=times, wait=st.floats(0, 1e6), more=st.floats(0, 1e7))
def test_a_reason_once_given_stays_the_same(policy: ResetPolicy, active: float, wait: float, more: float) -> None:
    """However much later the message is judged, a due reset stays due for the same reason."""
    reason = policy.judge(active, active + wait)
    assert reason is None or policy.judge(active, active + wait + more) == reason


@given(hour=st.integers(0, 23), zone=zones, active=times)
def test_daily_comes_at_least_once_in_two_days(hour: int, zone: str, active: float) -> None:
    """Whatever the zone does to its clock, no session lives on for two days under the daily rule."""
    assert ResetPolicy("daily", 1, hour, zone).judge(active, active + 48 * HOUR) == "daily"


@given(hour=st.integers(0, 23), zone=zones, day=st.dates(dt.date(2009, 1, 1), dt.date(2037, 1, 1)))
def test_one_ordinary_day_has_one_boundary(hour: int, zone: str, day: dt.date) -> None:
    """Just before the configured wall time and just after it lies exactly one boundary, at that time."""
    wall = dt.datetime.combine(day, dt.time(hour))
    instant = wall.replace(tzinfo=ZoneInfo(zone)).timestamp()
    shown = dt.datetime.fromtimestamp(instant, ZoneInfo(zone)).replace(tzinfo=None)
    policy = ResetPolicy("daily", 1, hour, zone)
    if shown == wall:
        assert policy.judge(instant - 1, instant) == "daily"
        assert policy.judge(instant, instant + 1) is None
    else:
        assert policy.judge(instant, instant + 1) is None


@given(minutes=st.integers(1, 3000), active=times)
def test_idle_falls_due_after_its_minutes(minutes: int, active: float) -> None:
    """Due when the minutes are over, not a second before."""
    policy = ResetPolicy("idle", minutes, 4, "UTC")
    assert policy.judge(active, active + minutes * 60 - 1) is None
    assert policy.judge(active, active + minutes * 60 + 1) == "idle"
