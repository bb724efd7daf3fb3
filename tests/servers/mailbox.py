"""What tests of the mail adapter share: a gateway that can fail, and a mailbox on the real server."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from collections.abc import Callable
from typing import Any

from adapters.base import InboundMessage, Verdict
from adapters.email import MailAccount, Server
from tests.servers.dovecot import PASSWORD, Dovecot
from tests.servers.smtp import MailServer

__all__ = ["BOUND", "DONE", "KEYWORD", "Box", "Gateway", "eventually"]

BOUND = 10.0
KEYWORD = "$Threadline"
#: Flags of a mail that was taken in.
DONE = frozenset({KEYWORD, "\\Seen"})


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
    """One mailbox on the server, and what stands in it; `more` are further facts of the account."""

    def __init__(self, dovecot: Dovecot, smtp: MailServer, **more: Any) -> None:
        self.user = f"agent-{uuid.uuid4().hex[:12]}"
        self.dovecot = dovecot
        account = MailAccount(
            address="agent@example.org",
            username=self.user,
            password=PASSWORD,
            imap=Server("127.0.0.1", dovecot.port, "none"),
            smtp=Server("127.0.0.1", smtp.port, "none"),
            trust_from=True,
        )
        self.account = dataclasses.replace(account, **more)

    async def put(self, *mails: bytes) -> None:
        """Put mails into the mailbox."""
        for mail in mails:
            await asyncio.to_thread(self.dovecot.deliver, self.user, mail)

    async def marked(self, *flags: frozenset[str]) -> None:
        """Wait until the mails carry exactly these flags, oldest first; another client looks."""
        wanted = list(flags)
        async with asyncio.timeout(BOUND):
            while await self.flags() != wanted:  # noqa: ASYNC110  (another program changes it)
                await asyncio.sleep(0.05)

    async def flags(self) -> list[frozenset[str]]:
        """The flags of each mail, oldest first, but for the one that only says that it is new to the looker."""
        found = await asyncio.to_thread(self.dovecot.flags, self.user)
        return [frozenset(flags - {"\\Recent"}) for flags in found]


async def eventually(true: Callable[[], object]) -> None:
    """Wait until something is true that nobody tells about."""
    async with asyncio.timeout(BOUND):
        while not true():  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.02)
