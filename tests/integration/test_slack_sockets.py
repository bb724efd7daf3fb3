"""The Slack adapter stays connected: whatever becomes of a socket, the next one brings what is missing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

import adapters.slack.client as client_module
import adapters.slack.liveness as liveness_module
import adapters.slack.receiving as receiving_module
import adapters.slack.sockets as sockets_module
from adapters.base import AdapterState, OutboundPart, StartError
from adapters.slack import SlackAdapter
from tests.emulators.slack import SlackEmulator
from tests.emulators.slack_journal import Journal

BOUND = 5.0


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all waits be short, in the proportions of the real ones."""
    monkeypatch.setattr(sockets_module, "PING_SECONDS", 0.2)
    monkeypatch.setattr(sockets_module, "SILENT_SECONDS", 0.8)
    monkeypatch.setattr(sockets_module, "CONNECT_SECONDS", 1.0)
    monkeypatch.setattr(sockets_module, "_LOOK_SECONDS", 0.02)
    for module in (client_module, receiving_module):
        monkeypatch.setattr(module, "backoff", lambda failures: 0.01 * failures)
    monkeypatch.setattr(receiving_module, "_TOKEN_WAIT", 0.1)


@pytest.fixture
async def slack() -> AsyncIterator[SlackEmulator]:
    """A Slack that brings unconfirmed events again soon."""
    async with SlackEmulator() as emulator:
        emulator.ack_seconds, emulator.retry_delays = 0.3, (0.0, 0.1)
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


async def close(slack: SlackEmulator) -> None:
    """Close the sockets in good manners."""
    await slack.close_sockets()


async def abort(slack: SlackEmulator) -> None:
    """Cut the sockets."""
    slack.abort_sockets()


async def ask(slack: SlackEmulator) -> None:
    """Ask the app to take a new socket."""
    slack.ask_to_go()


async def warn(slack: SlackEmulator) -> None:
    """Ask the app with the other reason that Slack gives."""
    slack.ask_to_go("warning")


async def silence(slack: SlackEmulator) -> None:
    """Let the sockets hang: open, and nothing is heard."""
    slack.silence()


async def nothing(slack: SlackEmulator) -> None:
    """Leave the sockets alone."""
    del slack


async def replaced(slack: SlackEmulator, count: int) -> None:
    """Return when so many sockets were asked for."""
    await slack.until(lambda: slack.opened >= count)


@pytest.mark.parametrize("disturb", [close, abort, ask, warn, silence])
async def test_a_lost_socket_is_replaced(
    slack: SlackEmulator,
    adapter: SlackAdapter,
    journal: Journal,
    disturb: Callable[[SlackEmulator], Awaitable[None]],
) -> None:
    """Whatever happens to it; what is said meanwhile arrives."""
    await adapter.start(journal.deliver)
    for number in range(2, 5):
        await disturb(slack)
        await slack.confirmed(slack.say(f"said {number}"))
        await replaced(slack, number)
        await slack.until(lambda: adapter.state is AdapterState.CONNECTED)

    assert journal.keys == {f"m:T1/D1:{event.ts}" for event in slack.events}
    await slack.until(lambda: len(slack.sockets) == 1)


async def test_the_new_socket_is_up_before_the_old_one_goes(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """When Slack asks for it; what came over the old one is confirmed over the old one."""
    slack.ack_seconds = 10.0
    journal.held = {"slow"}
    await adapter.start(journal.deliver)
    slow = slack.say("slow")
    await slack.until(lambda: journal.tried)
    slack.ask_to_go()
    await slack.until(lambda: len(slack.sockets) == 2)
    journal.let_go.set()
    await slack.confirmed(slow)
    await slack.until(lambda: len(slack.sockets) == 1)

    assert slow.deliveries == 1


async def test_a_socket_that_looks_healthy_but_brings_nothing_is_replaced(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The app is told of its own posts; when that stops, the socket is suspected."""
    monkeypatch.setattr(liveness_module, "ECHO_SECONDS", 0.3)
    await adapter.start(journal.deliver)
    event = slack.say("hello")
    await slack.confirmed(event)
    await adapter.send(journal.taken[0].place, OutboundPart(plain="first"))
    await slack.until(lambda: slack.events[-1].echo and slack.events[-1].acked)

    slack.mute()
    unheard = slack.say("is anybody there?")
    await adapter.send(journal.taken[0].place, OutboundPart(plain="second"))
    with capture_logs() as logs:
        await slack.confirmed(unheard)

    assert "it is open, but brings nothing" in [entry.get("reason") for entry in logs]
    assert journal.texts == ["hello", "is anybody there?"]


async def test_a_socket_that_is_not_greeted_is_given_up(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """A connection without Slack's hello is none; the state says so until one is greeted."""
    slack.greets = False
    await adapter.start(journal.deliver)
    assert adapter.state is AdapterState.RETRYING
    slack.greets = True
    event = slack.say("now")
    await slack.until(lambda: event.acked and adapter.state is AdapterState.CONNECTED)

    assert journal.keys == {f"m:T1/D1:{event.ts}"}


async def test_an_address_that_does_not_work_is_not_tried_twice(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """Each try asks for a new one: they work once, and not for long."""
    slack.links_work = False
    await adapter.start(journal.deliver)
    assert adapter.state is AdapterState.RETRYING
    assert "cannot be reached" in (adapter.problem or "")
    slack.links_work = True
    await slack.until(lambda: adapter.state is AdapterState.CONNECTED)

    assert slack.opened >= 2


async def test_sockets_that_end_at_once_are_not_made_in_a_hot_loop(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits longer than the one before, and the state says why."""
    waits: list[int] = []

    def waited(failures: int) -> float:
        waits.append(failures)
        return 0.01

    monkeypatch.setattr(receiving_module, "backoff", waited)
    await adapter.start(journal.deliver)
    seen = []
    while len(waits) < 4:
        await slack.until(lambda: slack.sockets and slack.sockets[-1] not in seen)
        seen.append(slack.sockets[-1])
        slack.ask_to_go("too_many_websockets")

    assert waits[:4] == [1, 2, 3, 4]


async def test_an_outage_is_survived(slack: SlackEmulator, adapter: SlackAdapter, journal: Journal) -> None:
    """While Slack is away the state says so; afterwards everything arrives, once."""
    await adapter.start(journal.deliver)
    port = slack.port
    await slack.stop()
    await slack.until(lambda: adapter.state is AdapterState.RETRYING)
    assert "cannot be reached" in (adapter.problem or "")
    slack.say("said meanwhile")
    await slack.start(port)
    await slack.until(lambda: slack.events[0].acked)

    assert journal.texts == ["said meanwhile"]
    assert (adapter.state, adapter.problem) == (AdapterState.CONNECTED, None)


async def test_start_without_network_goes_on_in_the_background(slack: SlackEmulator, journal: Journal) -> None:
    """The daemon comes up all the same; the account connects when Slack is there."""
    port, base_url = slack.port, slack.base_url
    await slack.stop()
    adapter = SlackAdapter("main", slack.bot_token, slack.app_token, base_url)
    await adapter.start(journal.deliver)
    assert adapter.state is AdapterState.RETRYING
    assert "cannot be reached" in (adapter.problem or "")

    await slack.start(port)
    event = slack.say("now")
    await slack.confirmed(event)
    assert (adapter.state, adapter.problem) == (AdapterState.CONNECTED, None)
    await adapter.stop()


@pytest.mark.parametrize(
    "fault",
    [
        {"method": "auth.test", "action": "refuse", "status": 500},
        {"method": "auth.test", "action": "garbage"},
        {"method": "auth.test", "action": "drop"},
        {"method": "auth.test", "action": "refuse", "error": "internal_error"},
        {"method": "apps.connections.open", "action": "refuse", "status": 429, "headers": {"Retry-After": "0.1"}},
        {"method": "apps.connections.open", "action": "refuse", "error": "internal_error"},
        {"method": "apps.connections.open", "action": "garbage"},
    ],
)
async def test_trouble_at_the_start_passes(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal, fault: dict[str, Any]
) -> None:
    """Nothing of this is the configuration's fault."""
    slack.fail(**fault)
    await adapter.start(journal.deliver)
    assert adapter.state is AdapterState.RETRYING
    assert adapter.problem
    await slack.until(lambda: adapter.state is AdapterState.CONNECTED)


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("bot_token", r"refused the bot_token of account 'main' \(invalid_auth\).*platforms.slack.bot_token"),
        ("app_token", r"refused the app_token of account 'main' \(invalid_auth\).*platforms.slack.app_token"),
    ],
)
async def test_a_wrong_token_is_told_without_quoting_it(
    slack: SlackEmulator, journal: Journal, key: str, sentence: str
) -> None:
    """It is a matter of the configuration: one sentence, no retry, no secret."""
    tokens = {"bot_token": slack.bot_token, "app_token": slack.app_token, key: "x-wrong-secret"}
    adapter = SlackAdapter("main", tokens["bot_token"], tokens["app_token"], slack.base_url)
    with pytest.raises(StartError, match=sentence) as caught:
        await adapter.start(journal.deliver)

    assert "wrong-secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert adapter.state is AdapterState.STOPPED


@pytest.mark.parametrize(
    ("scopes", "missing"),
    [("im:history,app_mentions:read", "chat:write"), ("chat:write,users:read", "im:history and app_mentions:read")],
)
async def test_an_app_without_the_rights_it_needs_is_told(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal, scopes: str, missing: str
) -> None:
    """Which right, and where to give it."""
    slack.workspace.scopes = scopes
    with pytest.raises(StartError, match=f"{missing}.*OAuth & Permissions"):
        await adapter.start(journal.deliver)


async def test_what_an_app_will_not_be_told_of_is_logged(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """It may be meant so."""
    slack.workspace.scopes = "chat:write,app_mentions:read"
    with capture_logs() as logs:
        await adapter.start(journal.deliver)

    (note,) = [entry for entry in logs if entry["event"] == "slack_scopes_missing"]
    assert "direct messages (im:history)" in note["not_told_of"]
    assert adapter.state is AdapterState.CONNECTED


async def test_a_missing_scope_of_the_app_token_is_told(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """It has only one."""
    slack.fail("apps.connections.open", "refuse", error="missing_scope", more={"needed": "connections:write"})
    with pytest.raises(StartError, match="connections:write"):
        await adapter.start(journal.deliver)


async def test_a_wrong_address_is_told(journal: Journal) -> None:
    """An address that is none cannot get better by waiting."""
    adapter = SlackAdapter("main", "xoxb-1", "xapp-1", "slack.com/api")
    with pytest.raises(StartError, match="base_url"):
        await adapter.start(journal.deliver)


async def test_a_token_revoked_later_shows_as_failed_and_heals(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """Nobody but a person can mend it, so the state says what to do; once it is mended it goes on by itself."""
    await adapter.start(journal.deliver)
    slack.app_tokens.clear()
    await slack.close_sockets()
    await slack.until(lambda: adapter.state is AdapterState.FAILED)
    assert "platforms.slack.app_token" in (adapter.problem or "")

    slack.app_tokens.add(slack.app_token)
    await slack.until(lambda: adapter.state is AdapterState.CONNECTED)


async def test_the_proxy_of_the_environment_is_not_for_loopback(
    slack: SlackEmulator, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library would send even 127.0.0.1 through it."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    adapter = SlackAdapter("main", slack.bot_token, slack.app_token, slack.base_url)
    await adapter.start(journal.deliver)
    event = slack.say("direct")
    await slack.confirmed(event)
    await adapter.stop()


@pytest.mark.parametrize("disturb", [silence, abort])
async def test_stop_never_hangs(
    slack: SlackEmulator,
    adapter: SlackAdapter,
    journal: Journal,
    disturb: Callable[[SlackEmulator], Awaitable[None]],
) -> None:
    """Not on a peer that answers nothing, and not in the middle of connecting."""
    await adapter.start(journal.deliver)
    slack.greets = False
    await disturb(slack)
    async with asyncio.timeout(BOUND):
        await adapter.stop()

    assert adapter.state is AdapterState.STOPPED
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("slack")]


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_becomes_of_the_sockets_everything_is_taken(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal, seed: int
) -> None:
    """Words keep coming while sockets are closed, cut, silenced and replaced: each is confirmed, in the end."""
    chance = random.Random(seed)  # noqa: S311  (the same disturbances each time)
    await adapter.start(journal.deliver)
    for number in range(20):
        await chance.choice([close, abort, ask, warn, silence, nothing])(slack)
        event = slack.say(f"n{number}", channel=f"D{number % 4}")
        if chance.random() < 0.5:
            await slack.confirmed(event)
    await slack.until(lambda: all(event.acked for event in slack.events), 30.0)
    await slack.until(lambda: adapter.state is AdapterState.CONNECTED)

    assert journal.keys == {f"m:T1/{event.payload['event']['channel']}:{event.ts}" for event in slack.events}
