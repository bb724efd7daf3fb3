"""The mail adapter receives: against a real IMAP server."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from structlog.testing import capture_logs

from adapters.base import AdapterState, InboundMessage, Place, StartError, Verdict
from adapters.email import EmailAdapter, MailAccount, Server
from tests.servers.dovecot import PASSWORD, Dovecot, missing
from tests.servers.letters import letter
from tests.servers.smtp import MailServer

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

BOUND = 10.0
KEYWORD = "$Threadline"


class Gateway:
    """Takes what is delivered, as long as it is let."""

    def __init__(self) -> None:
        self.tried: list[InboundMessage] = []
        self.taken: list[InboundMessage] = []
        self.failing: set[str] = set()
        self.held: set[str] = set()
        self.verdict = Verdict.ACCEPTED
        self.let_go = asyncio.Event()
        self._changed = asyncio.Condition()

    async def deliver(self, message: InboundMessage) -> Verdict:
        """Take a message, fail for texts in `failing`, wait with those in `held`."""
        self.tried.append(message)
        await self._tell()
        if message.text in self.held:
            await self.let_go.wait()
        if message.text in self.failing:
            raise OSError("disk full")
        self.taken.append(message)
        await self._tell()
        return self.verdict

    async def until(self, true: Callable[[], object]) -> None:
        """Wait until something is true that a delivery makes true."""
        async with asyncio.timeout(BOUND), self._changed:
            await self._changed.wait_for(lambda: bool(true()))

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    @property
    def texts(self) -> list[str]:
        """What was taken, in order."""
        return [message.text for message in self.taken]


class Box:
    """One mailbox on the server, and what stands in it."""

    def __init__(self, dovecot: Dovecot, smtp: MailServer) -> None:
        self.user = f"agent-{uuid.uuid4().hex[:12]}"
        self.dovecot = dovecot
        self.account = MailAccount(
            address="agent@example.org",
            username=self.user,
            password=PASSWORD,
            imap=Server("127.0.0.1", dovecot.port, "none"),
            smtp=Server("127.0.0.1", smtp.port, "none"),
            trust_from=True,
        )

    async def put(self, *mails: bytes) -> None:
        """Put mails into the mailbox."""
        for mail in mails:
            await asyncio.to_thread(self.dovecot.deliver, self.user, mail)

    async def marked(self, *flags: set[str]) -> None:
        """Wait until the mails carry exactly these flags, oldest first (`\\Recent` does not matter)."""
        async with asyncio.timeout(BOUND):
            while [found - {"\\Recent"} for found in await asyncio.to_thread(self.dovecot.flags, self.user)] != list(
                flags
            ):
                await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def dovecot() -> Iterator[Dovecot]:
    """An IMAP server."""
    with Dovecot() as server:
        yield server


@pytest.fixture
async def smtp() -> AsyncIterator[MailServer]:
    """An SMTP server that asks for no password."""
    async with MailServer() as server:
        yield server


@pytest.fixture
def box(dovecot: Dovecot, smtp: MailServer) -> Box:
    """A mailbox of its own."""
    return Box(dovecot, smtp)


@pytest.fixture
def gateway() -> Gateway:
    """Where messages go."""
    return Gateway()


@pytest.fixture
async def adapter(box: Box) -> AsyncIterator[EmailAdapter]:
    """An adapter that is not started; stopped at the end."""
    made = EmailAdapter("main", box.account)
    yield made
    await made.stop()


DONE = {KEYWORD, "\\Seen"}


async def test_mails_are_delivered_and_then_marked(box: Box, adapter: EmailAdapter, gateway: Gateway) -> None:
    """What waited before the start comes too; nothing is marked before it was taken; later mail is pushed."""
    gateway.held = {"before"}
    await box.put(letter("before"))
    await adapter.start(gateway.deliver)
    assert (adapter.state, adapter.problem) == (AdapterState.CONNECTED, None)

    await gateway.until(lambda: gateway.tried)
    await box.marked(set())
    gateway.let_go.set()
    await box.marked(DONE)
    await box.put(letter("after"))
    await gateway.until(lambda: gateway.texts == ["before", "after"])
    await box.marked(DONE, DONE)
