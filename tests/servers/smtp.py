"""A real SMTP server: aiosmtpd in the test's own loop, with faults on demand.

Contract: listens on 127.0.0.1; what it accepts is kept in `accepted` and handed to `deliver` per recipient. `answers`
holds, per step (`MAIL`, `RCPT`, `DATA`), what is answered instead of yes: a status line, `DROP` to cut the connection
(at `DATA` after the mail was taken), `HANG` to say nothing until the connection ends.
"""

# ruff: noqa: N802, ARG002 - the hooks have the names and arguments that the library gives them

from __future__ import annotations

import asyncio
import base64
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

__all__ = ["DROP", "HANG", "Accepted", "MailServer"]

DROP = "drop"
HANG = "hang"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A mail that the server took."""

    sender: str
    recipient: str
    raw: bytes


class MailServer:
    """One server, as an async context manager. logins: user -> password; None: it asks for none.

    tokens: user -> access token, instead of passwords.
    """

    def __init__(
        self,
        deliver: Callable[[str, bytes], None] | None = None,
        logins: dict[str, str] | None = None,
        tokens: dict[str, str] | None = None,
    ) -> None:
        self._deliver = deliver
        self._logins = logins
        self._tokens = tokens
        self._server: asyncio.Server | None = None
        self._connections: list[SMTP] = []
        self.answers: dict[str, str] = {}
        self.accepted: list[Accepted] = []
        #: The steps that were asked for, and an event for the next one.
        self.steps: list[str] = []
        self.asked = asyncio.Event()
        self.port = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, at the same port as before."""
        self._server = await asyncio.get_running_loop().create_server(self._connection, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """End it and every connection."""
        if self._server is not None:
            self._server.close()
            for connection in self._connections:
                _cut(connection)
            await self._server.wait_closed()
            self._server = None

    def _connection(self) -> SMTP:
        auth: dict[str, Any] = {}
        if self._logins is not None or self._tokens is not None:
            auth = {"authenticator": self._judge, "auth_required": True, "auth_require_tls": False}
            auth["auth_exclude_mechanism"] = ["XOAUTH2"] if self._tokens is None else ["PLAIN", "LOGIN"]
        with warnings.catch_warnings():
            # The library warns of passwords over plain connections; this one does not leave the machine.
            warnings.simplefilter("ignore", UserWarning)
            connection = SMTP(self, hostname="localhost", loop=asyncio.get_running_loop(), **auth)
        self._connections.append(connection)
        return connection

    def _judge(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
        known = self._logins or {}
        right = isinstance(data, LoginPassword) and known.get(data.login.decode()) == data.password.decode()
        return AuthResult(success=right, handled=right)

    async def auth_XOAUTH2(self, server: SMTP, args: list[str]) -> AuthResult:
        """Judge an access token; what is wrong with it is told in JSON first, as the large providers do."""
        said = base64.b64decode(args[1]).decode()
        for user, token in (self._tokens or {}).items():
            if said == f"user={user}\1auth=Bearer {token}\1\1":
                return AuthResult(success=True)
        await server.challenge_auth('{"status":"400","schemes":"bearer"}')
        return AuthResult(success=False, handled=False)

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Judge the sender."""
        envelope.mail_from = address
        return await self._answer("MAIL", server)

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Judge a recipient."""
        envelope.rcpt_tos.append(address)
        return await self._answer("RCPT", server)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Take a mail."""
        raw = envelope.original_content or b""
        if not self.answers.get("DATA", "2").startswith(("4", "5")):
            for recipient in envelope.rcpt_tos:
                self.accepted.append(Accepted(envelope.mail_from or "", recipient, raw))
                if self._deliver is not None:
                    self._deliver(recipient, raw)
        return await self._answer("DATA", server)

    async def _answer(self, step: str, server: SMTP) -> str:
        answer = self.answers.get(step, "250 OK")
        self.steps.append(step)
        self.asked.set()
        if answer == DROP:
            _cut(server)
        if answer in {DROP, HANG}:
            await asyncio.Event().wait()
        return answer


def _cut(connection: SMTP) -> None:
    if isinstance(connection.transport, asyncio.WriteTransport):
        connection.transport.abort()
