"""The Discord adapter starts, stops and finds its server: the real client library against an emulated Discord."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from discord.gateway import DiscordWebSocket
from discord.http import Route
from structlog.testing import capture_logs

from adapters.base import AdapterState, InboundMessage, StartError, Verdict
from adapters.discord import DiscordAdapter, waiting
from tests.emulators.discord import TOKEN, DiscordEmulator


class Gateway:
    """Takes what is delivered, except what is in `held`."""

    def __init__(self) -> None:
        self.tried: list[InboundMessage] = []
        self.taken: list[InboundMessage] = []
        self.held: set[str] = set()

    async def deliver(self, message: InboundMessage) -> Verdict:
        """Take a message, or wait for ever with one in `held`."""
        self.tried.append(message)
        if message.text in self.held:
            await asyncio.Event().wait()
        self.taken.append(message)
        return Verdict.ACCEPTED

    @property
    def texts(self) -> list[str]:
        """What was taken, in order."""
        return [message.text for message in self.taken]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying again need not be waited for."""
    monkeypatch.setattr(waiting, "FIRST_WAIT", 0.02)


@pytest.fixture
async def discord() -> AsyncIterator[DiscordEmulator]:
    """A Discord."""
    async with DiscordEmulator() as emulator:
        yield emulator


@pytest.fixture
def gateway() -> Gateway:
    """Where messages go."""
    return Gateway()


@pytest.fixture
async def adapter(discord: DiscordEmulator) -> AsyncIterator[DiscordAdapter]:
    """An adapter that is not started; stopped at the end."""
    made = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    yield made
    await made.stop()


async def test_a_wrong_token_is_told_without_quoting_it(discord: DiscordEmulator, gateway: Gateway) -> None:
    """It is a matter of the configuration: one sentence, no retry, no secret."""
    adapter = DiscordAdapter("second", "wrong-secret", discord.api_url, discord.gateway_url)
    with pytest.raises(StartError, match=r"'second': Discord refuses the bot's token.*api_url") as caught:
        await adapter.start(gateway.deliver)

    assert "wrong-secret" not in str(caught.value)
    assert adapter.state is AdapterState.STOPPED
    assert [name for name, _ in discord.calls] == ["me"]


async def test_a_missing_intent_is_told_with_the_switch(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """Only a person can switch it on, so nothing is tried again."""
    discord.bots[TOKEN].content = False
    with pytest.raises(StartError, match="switch on Message Content Intent"):
        await adapter.start(gateway.deliver)
    assert adapter.state is AdapterState.STOPPED


async def test_a_token_refused_later_is_a_failure(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """The state says what to do; nothing is tried again."""
    await adapter.start(gateway.deliver)
    await discord.gateway.close(4004)
    await discord.until(lambda: adapter.state is AdapterState.FAILED)
    assert "make a new token" in (adapter.problem or "")
    await adapter.stop()
    assert (adapter.state, adapter.problem) == (AdapterState.STOPPED, None)


async def test_start_without_network_goes_on_in_the_background(discord: DiscordEmulator, gateway: Gateway) -> None:
    """The daemon comes up all the same; the account connects when the server is there."""
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    await discord.stop()
    await adapter.start(gateway.deliver)
    assert adapter.state is AdapterState.RETRYING
    assert "cannot be reached" in (adapter.problem or "")

    await discord.start()
    await discord.until(lambda: adapter.state is AdapterState.CONNECTED)
    discord.say("now", channel=discord.dm())
    await discord.until(lambda: gateway.texts == ["now"])
    assert adapter.problem is None
    await adapter.stop()


async def test_a_refused_first_connection_is_survived(discord: DiscordEmulator, gateway: Gateway) -> None:
    """The library's client dies of it, with an error that says nothing; the state says what was wrong."""
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    await discord.gateway.stop()
    await adapter.start(gateway.deliver)
    assert adapter.state is AdapterState.RETRYING
    assert "cannot be reached (nothing answers at its address)" in (adapter.problem or "")

    await discord.gateway.start(discord.gateway.port)
    await discord.until(lambda: adapter.state is AdapterState.CONNECTED)
    await adapter.stop()


async def test_nothing_is_left_after_stop(discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway) -> None:
    """No task, no connection; what comes later is not taken; and it can be started again."""
    gateway.held = {"held"}
    before = asyncio.all_tasks()
    await adapter.start(gateway.deliver)
    discord.say("held")
    discord.call("new")
    await discord.until(lambda: gateway.tried)
    await adapter.stop()
    await adapter.stop()
    await discord.until(lambda: discord.gateway.connected == 0)
    await discord.until(lambda: not asyncio.all_tasks() - before)

    gateway.held = set()
    await adapter.start(gateway.deliver)
    await discord.until(lambda: gateway.texts == [])
    discord.say("again")
    await discord.until(lambda: "again" in gateway.texts)


async def test_a_second_start_is_refused(discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway) -> None:
    """Two readers of one account would answer twice."""
    await adapter.start(gateway.deliver)
    with pytest.raises(RuntimeError, match="started already"):
        await adapter.start(gateway.deliver)
    assert discord.gateway.identified == 1


async def test_accounts_of_one_process_do_not_know_of_each_other(gateway: Gateway) -> None:
    """Each has its own addresses and token; nothing is set for the whole process."""
    async with DiscordEmulator() as one, DiscordEmulator() as two:
        two.add_bot("other", "2000", "otherbot")
        first = DiscordAdapter("main", one.token, one.api_url, one.gateway_url)
        second = DiscordAdapter("second", "other", two.api_url, two.gateway_url)
        await asyncio.gather(first.start(gateway.deliver), second.start(gateway.deliver))
        one.say("to the first", channel=one.dm())
        two.say("to the second", channel=two.dm())
        await one.until(lambda: len(gateway.taken) == 2)
        await asyncio.gather(first.stop(), second.stop())

    assert {message.text: message.place.account for message in gateway.taken} == {
        "to the first": "main",
        "to the second": "second",
    }
    assert Route.BASE == "https://discord.com/api/v10"
    assert str(DiscordWebSocket.DEFAULT_GATEWAY) == "wss://gateway.discord.gg/"


async def test_without_a_gateway_address_the_api_is_asked(discord: DiscordEmulator, gateway: Gateway) -> None:
    """As on the real platform; the connection is made as the library makes it, only elsewhere."""
    adapter = DiscordAdapter("main", discord.token, discord.api_url + "/")
    await adapter.start(gateway.deliver)
    assert adapter.state is AdapterState.CONNECTED
    assert [name for name, _ in discord.calls] == ["me", "application", "gateway"]
    assert discord.gateway.query["v"] == "10"
    assert discord.gateway.query["encoding"] == "json"
    discord.gateway.reconnect()
    await discord.until(lambda: discord.gateway.resumed == 1)
    await adapter.stop()


async def test_a_configured_gateway_is_used_for_resuming_too(
    discord: DiscordEmulator, adapter: DiscordAdapter, gateway: Gateway
) -> None:
    """Whatever address the server tells: what stands before it was put there on purpose."""
    discord.gateway.resume_url = "ws://127.0.0.1:9/elsewhere"
    await adapter.start(gateway.deliver)
    discord.gateway.reconnect()
    await discord.until(lambda: discord.gateway.resumed == 1)
    assert discord.gateway.query["v"] == "10"


async def test_no_session_is_begun_when_few_are_left(discord: DiscordEmulator, gateway: Gateway) -> None:
    """Beginning too many makes Discord take the token away."""
    discord.sessions_left = 3
    adapter = DiscordAdapter("main", discord.token, discord.api_url)
    await adapter.start(gateway.deliver)
    assert adapter.state is AdapterState.RETRYING
    assert "too many sessions today" in (adapter.problem or "")
    assert discord.gateway.identified == 0
    await adapter.stop()


async def test_the_log_keeps_secrets(discord: DiscordEmulator, gateway: Gateway) -> None:
    """Neither our own log nor the state quotes a token."""
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    with capture_logs() as logs:
        discord.fail("me", "refuse", status=503, message=f"bad {discord.token}")
        await adapter.start(gateway.deliver)
        await discord.until(lambda: adapter.state is AdapterState.CONNECTED)
        await adapter.stop()
    assert discord.token not in json.dumps(logs, default=repr)
