"""E-mail as the adapter contract needs it: real servers for both directions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from email import message_from_bytes
from email.policy import default

import pytest

from adapters.base import Gone, Place, Refused, RetryLater, SendError
from adapters.contract import PATIENCE, Said
from adapters.email import EmailAdapter
from adapters.email.imap import FetchedMail
from tests.servers.dovecot import PASSWORD, Dovecot
from tests.servers.letters import letter
from tests.servers.mailbox import DONE, Box
from tests.servers.smtp import DROP, HANG, Accepted, MailServer

__all__ = ["EmailBench"]

_POISON = "poison"


class EmailBench:
    """Threads with Ann and with Bob; a place without thread begins one."""

    places = (Place("email", "main", "dm", "ann@example.org"), Place("email", "main", "dm", "bob@example.org"))
    secrets = (PASSWORD,)

    def __init__(self, dovecot: Dovecot, smtp: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self._smtp = smtp
        self._box = Box(dovecot, smtp)
        self._said = 0
        parse = EmailAdapter._parse  # noqa: SLF001  (no mail is known that defeats the parser, yet one may exist)

        def defeated(adapter: EmailAdapter, mail: FetchedMail, uid_validity: int) -> object:
            if _POISON.encode() in mail.raw:
                raise ValueError("poisoned")
            return parse(adapter, mail, uid_validity)

        monkeypatch.setattr(EmailAdapter, "_parse", defeated)

    @property
    def sent(self) -> Sequence[tuple[Place, str]]:
        """What the server took."""
        return [_sent(mail) for mail in self._smtp.accepted]

    @property
    def attempts(self) -> int:
        """How many mails were handed to the server."""
        return self._smtp.steps.count("DATA")

    def make(self) -> EmailAdapter:
        """Make the adapter."""
        return EmailAdapter("main", self._box.account)

    async def say(self, place: Place, text: str) -> Said:
        """Let somebody write."""
        number = f"{self._said}@mail.example.org"
        before = {"References": f"<{place.thread}>", "In-Reply-To": f"<{place.thread}>"} if place.thread else {}
        await self._box.put(letter(text, sender=place.chat, Message_ID=f"<{number}>", **before))
        self._said += 1
        where = Place("email", "main", "dm", place.chat, place.thread or number)
        return Said(where, self._said - 1, f"m:{number}")

    async def command(self, place: Place, name: str, argument: str) -> Said:
        """The first line of a mail."""
        return await self.say(place, f"/{name} {argument}")

    async def malformed(self) -> int:
        """A mail that cannot be parsed."""
        await self.say(self.places[0], _POISON)
        return 1

    async def confirmed(self, said: Said) -> bool:
        """Whether the mail is marked."""
        flags = await self._box.flags()
        return isinstance(said.handle, int) and flags[said.handle] == DONE

    def fail(self, kind: type[SendError]) -> None:
        """Refuse mails, or cut the connection once they were taken."""
        answers = {
            RetryLater: ("DATA", "452 4.3.1 disk full"),
            Gone: ("RCPT", "550 5.1.1 no such user"),
            Refused: ("DATA", "554 5.6.0 spam"),
        }
        self._smtp.answers = dict([answers.get(kind, ("DATA", DROP))])

    def hang(self) -> None:
        """Answer no mail."""
        self._smtp.answers = {"DATA": HANG}

    def remove(self) -> None:
        """A mail that was sent is nobody's to take away, and mail is not edited."""
        raise NotImplementedError

    def heal(self) -> None:
        """Take mails."""
        self._smtp.answers = {}

    async def until(self, condition: Callable[[], object], seconds: float = PATIENCE) -> None:
        """Look now and then."""
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110  (nobody tells)
                await asyncio.sleep(0.02)


def _sent(mail: Accepted) -> tuple[Place, str]:
    message = message_from_bytes(mail.raw, policy=default)
    body = message.get_body(("plain",))
    text = "" if body is None else str(body.get_content())
    threads = str(message["References"] or message["Message-ID"]).split()
    return Place("email", "main", "dm", mail.recipient, threads[0].strip("<>")), text
