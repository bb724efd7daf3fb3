"""Every adapter keeps the one contract: the shipped checks over each platform's emulator or server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from adapters.contract import AdapterContract, Bench
from adapters.discord import waiting
from tests.contract.benches import DiscordBench, SlackBench, TelegramBench
from tests.contract.email_bench import EmailBench
from tests.emulators.discord import DiscordEmulator
from tests.emulators.slack import SlackEmulator
from tests.emulators.telegram import TelegramEmulator
from tests.servers.dovecot import Dovecot, missing
from tests.servers.smtp import MailServer


@pytest.fixture(scope="module")
def dovecot() -> Iterator[Dovecot]:
    """An IMAP server."""
    with Dovecot() as server:
        yield server


class TestTelegram(AdapterContract):
    """python-telegram-bot at an emulated Bot API."""

    @pytest.fixture
    async def bench(self) -> AsyncIterator[Bench]:
        """A Bot API server."""
        async with TelegramEmulator() as telegram:
            yield TelegramBench(telegram)


class TestSlack(AdapterContract):
    """slack-bolt at an emulated Slack."""

    @pytest.fixture
    async def bench(self) -> AsyncIterator[Bench]:
        """A Slack that brings unconfirmed events again soon."""
        async with SlackEmulator() as slack:
            slack.ack_seconds, slack.retry_delays = 0.2, (0.0, 0.1)
            yield SlackBench(slack)


class TestDiscord(AdapterContract):
    """discord.py at an emulated Discord."""

    @pytest.fixture
    async def bench(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
        """A Discord; trying again need not be waited for."""
        monkeypatch.setattr(waiting, "FIRST_WAIT", 0.02)
        async with DiscordEmulator() as discord:
            yield DiscordBench(discord)


@pytest.mark.skipif(missing() is not None, reason=missing() or "")
class TestEmail(AdapterContract):
    """IMAP and SMTP at real servers."""

    @pytest.fixture
    async def bench(self, dovecot: Dovecot, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
        """A mailbox of its own, and an SMTP server."""
        async with MailServer() as smtp:
            yield EmailBench(dovecot, smtp, monkeypatch)
