"""Accounts are kept up each on its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from adapters.base import AdapterState, InboundMessage, StartError, Verdict
from gateway import entrances
from gateway.entrances import Entrances
from tests.unit.gateway_core.fakes import FakeAdapter


class Account:
    """Two accounts and what was told of them."""

    def __init__(self) -> None:
        self.first = FakeAdapter()
        self.second = FakeAdapter(account="second")
        self.opened: list[tuple[str, str]] = []
        self.news = asyncio.Event()
        adapters = {("telegram", "main"): self.first, ("telegram", "second"): self.second}
        self.entrances = Entrances(adapters, self.deliver, self.open)

    async def deliver(self, _message: InboundMessage) -> Verdict:
        """Nothing comes."""
        await asyncio.sleep(0)
        return Verdict.IGNORED

    def open(self, account: tuple[str, str]) -> None:
        """Note it."""
        self.opened.append(account)
        self.news.set()

    async def until_opened(self, count: int) -> None:
        """Return when accounts have been opened so many times."""
        async with asyncio.timeout(20):
            while len(self.opened) < count:
                await self.news.wait()
                self.news = asyncio.Event()

    def state(self, account: str = "telegram/main") -> tuple[str | None, str | None]:
        """What is told of an account."""
        told = self.entrances.states()[account]
        return told["state"], told["problem"]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Kept up inside the context, then stopped."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.entrances.run)
            yield
            tasks.cancel_scope.cancel()
        await self.entrances.stop()


@pytest.fixture
async def both(monkeypatch: pytest.MonkeyPatch) -> Account:
    """Two accounts; what waits, waits briefly."""
    monkeypatch.setattr(entrances, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(entrances, "LONGEST_WAIT", 0.02)
    return Account()


async def test_accounts_are_started_opened_and_stopped(both: Account) -> None:
    """Each once."""
    async with both.running():
        await both.until_opened(2)
        assert both.state() == ("connected", None)
    assert (both.first.started, both.first.stopped) == (1, 1)
    assert both.state() == ("stopped", None)


async def test_an_account_that_cannot_work_is_reported_and_the_other_serves(both: Account) -> None:
    """Its sentence is told, it is not tried again, and nothing is sent through it."""
    both.first.starts.append(StartError("Telegram refused the token; check it."))
    async with both.running():
        await both.until_opened(1)
        await both.until_opened(1)
        assert both.state() == ("failed", "Telegram refused the token; check it.")
        assert both.state("telegram/second") == ("connected", None)
    assert both.opened == [("telegram", "second")]
    assert both.first.started == 1


async def test_an_account_that_breaks_at_the_start_is_started_again(both: Account, logged: list[Any]) -> None:
    """An unforeseen error is no end; the state tells of it meanwhile without its inner words."""
    both.first.starts.extend([RuntimeError("inner words"), OSError("more"), None])
    async with both.running():
        await both.until_opened(2)
        assert both.state() == ("connected", None)
    assert both.first.started == 3
    assert [entry["event"] for entry in logged if entry["log_level"] == "error"] == ["account_broken"] * 2


async def test_an_account_in_trouble_says_so(both: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two tries."""
    monkeypatch.setattr(entrances, "LONGEST_WAIT", 3600.0)
    both.first.starts.append(RuntimeError("inner words"))
    stopped = asyncio.Event()
    real = both.first.stop

    async def stop() -> None:
        await real()
        stopped.set()

    monkeypatch.setattr(both.first, "stop", stop)
    async with both.running():
        await both.until_opened(1)
        async with asyncio.timeout(20):
            await stopped.wait()
        state, problem = both.state()
        assert state == "retrying"
        assert problem is not None
        assert "RuntimeError" in problem
        assert "inner words" not in problem


async def test_an_adapter_that_ends_by_itself_is_started_again(both: Account) -> None:
    """Its account goes on; the other never noticed."""
    async with both.running():
        await both.until_opened(2)
        both.first.state = AdapterState.STOPPED
        await both.until_opened(3)
        assert both.state() == ("connected", None)
    assert both.first.started == 2
    assert both.second.started == 1


async def test_an_adapter_that_does_not_stop_is_left_after_its_time(
    both: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are stopped, and the end comes."""
    monkeypatch.setattr(entrances, "STOP_SECONDS", 0.05)
    hung = asyncio.Event()

    async def stop() -> None:
        hung.set()
        await asyncio.Event().wait()

    async with both.running():
        await both.until_opened(2)
        monkeypatch.setattr(both.first, "stop", stop)
    assert hung.is_set()
    assert both.second.stopped == 1


async def test_an_error_while_stopping_keeps_no_other_from_being_stopped(
    both: Account, monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    """It is logged."""

    async def stop() -> None:
        await asyncio.sleep(0)
        raise RuntimeError

    async with both.running():
        await both.until_opened(2)
        monkeypatch.setattr(both.first, "stop", stop)
    assert both.second.stopped == 1
    assert "account_not_stopped" in [entry["event"] for entry in logged]


async def test_without_accounts_there_is_nothing_to_do() -> None:
    """A gateway for the page alone."""
    account = Account()
    none = Entrances({}, account.deliver, account.open)
    await none.run()
    await none.stop()
    assert none.states() == {}
