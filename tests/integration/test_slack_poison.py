"""The Slack adapter under bad input: the real client library, forged events, broken frames, floods."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from adapters.base import InboundMessage, Unreadable, Verdict
from adapters.slack import SlackAdapter
from tests.emulators.slack import SlackEmulator
from tests.emulators.slack_journal import Journal


@pytest.fixture
async def slack() -> AsyncIterator[SlackEmulator]:
    """A Slack that brings unconfirmed events again soon."""
    async with SlackEmulator() as emulator:
        emulator.ack_seconds, emulator.retry_delays = 0.2, (0.0, 0.1)
        yield emulator


@pytest.fixture
def journal() -> Journal:
    """Where messages go."""
    return Journal()


@pytest.fixture
async def adapter(slack: SlackEmulator) -> AsyncIterator[SlackAdapter]:
    """An adapter that is not started; stopped at the end."""
    made = SlackAdapter("main", slack.bot_token, slack.app_token, slack.base_url)
    yield made
    await made.stop()


@pytest.mark.parametrize(
    "payload",
    [
        {},
        [],
        None,
        17,
        "text",
        {"type": "event_callback"},
        {"type": "event_callback", "event": "x"},
        {"type": "event_callback", "event": {"type": ["message"]}},
        {"type": "event_callback", "event": {"type": "message"}, "authorizations": ["x"]},
        {"type": "event_callback", "event": {"type": "message", "channel": 5, "ts": 1}, "team_id": "T1"},
        {"type": "event_callback", "event": {"type": "message"}, "enterprise": 5},
        {"type": "event_callback", "event": {"type": "message", "user": 5}, "team": 5, "view": []},
        {"command": ["/threadline"], "team_id": "T1"},
    ],
)
async def test_a_poison_event_is_set_aside_visibly(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal, payload: Any
) -> None:
    """It is logged as it came and confirmed once; its neighbours are delivered."""
    poison = slack.inject(payload)
    good = slack.say("good")
    with capture_logs() as logs:
        await adapter.start(journal.deliver)
        await slack.confirmed(poison, good)

    assert journal.texts == ["good"]
    assert poison.deliveries == 1
    notes = [entry for entry in logs if entry["event"] == "slack_event_set_aside"]
    assert len(notes) == 1
    assert notes[0]["log_level"] == "error"


async def test_what_cannot_be_read_is_confirmed_only_when_it_is_recorded(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """As it came, without what lets its reader act in its name; while the record fails, it stays with Slack."""
    records: list[Unreadable] = []

    async def report(unreadable: Unreadable) -> None:
        records.append(unreadable)
        if len(records) == 1:
            raise OSError("disk full")

    adapter.report_to(report)
    await adapter.start(journal.deliver)
    called = slack.command("stop", user="U 1")
    await slack.until(lambda: len(records) == 1)
    assert not called.acked
    slack.repeat(called)
    await slack.confirmed(called)
    broken = slack.inject(17)
    await slack.confirmed(broken)
    slack.frame("no json")
    await slack.until(lambda: len(records) == 4)

    assert {(record.platform, record.account) for record in records} == {("slack", "main")}
    assert "'user_id' is no id" in records[1].reason
    assert '"user_id": "U 1"' in records[1].raw
    assert "emulated" not in records[1].raw
    assert "/unused" not in records[1].raw
    assert records[3].raw == '"no json"'


async def test_broken_frames_and_envelopes_are_survived(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """Whatever comes over the socket, the next event is taken."""
    await adapter.start(journal.deliver)
    frames = [
        "",
        "no json",
        "[1]",
        "{",
        "{}",
        '{"type": 5}',
        '{"payload": {}}',
        '{"envelope_id": "x"}',
        '{"type": "new"}',
    ]
    with capture_logs() as logs:
        for frame in frames:
            slack.frame(frame)
        good = slack.say("good")
        await slack.confirmed(good)

    assert journal.texts == ["good"]
    assert [entry["event"] for entry in logs].count("slack_event_set_aside") == 6


def without(value: Any, path: tuple[str, ...]) -> Any:
    """Return a JSON value with one field gone."""
    if len(path) == 1:
        return {name: inside for name, inside in value.items() if name != path[0]}
    return {**value, path[0]: without(value[path[0]], path[1:])}


async def test_events_with_any_field_gone_or_odd_are_confirmed(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """Each field of an event missing or of another type: all are confirmed, none hangs, the good one is there."""
    slack.ack_seconds = 10.0
    await adapter.start(journal.deliver)
    slack.hold()
    model = slack.say("<@UBOT> model", channel="C1", thread="1790000000.000001").payload
    paths = [(name,) for name in model] + [("event", name) for name in model["event"]]
    for path in paths:
        slack.inject(without(model, path))
        for odd in (None, 7, "odd", ["x"], {"x": 1}):
            body = json.loads(json.dumps(model))
            (body["event"] if len(path) == 2 else body)[path[-1]] = odd
            if body.get("team_id") == "odd" and len(path) == 1:
                continue
            slack.inject(body)
    last = slack.say("last")
    slack.release()
    await slack.until(lambda: last.acked and all(event.acked for event in slack.events))

    assert "last" in journal.texts
    assert all(event.deliveries == 1 for event in slack.events)


async def test_a_flood_is_taken_in_with_bounds(slack: SlackEmulator, adapter: SlackAdapter, journal: Journal) -> None:
    """More than may wait at once: no more than that is in work at a time, and all of it is taken in the end."""
    slack.ack_seconds = 10.0
    most = 0
    busy = 0

    async def deliver(message: InboundMessage) -> Verdict:
        nonlocal most, busy
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0)
        busy -= 1
        return await journal.deliver(message)

    slack.hold()
    for number in range(1500):
        slack.say(f"n{number}", channel="C1", user="U1")
    await adapter.start(deliver)
    slack.release()
    await slack.until(lambda: all(event.acked for event in slack.events), seconds=30.0)

    assert len(journal.keys) == 1500
    assert most <= 256
