"""What a mail account is: its address, its secret, its two servers, and whose word about senders counts.

Contract: immutable values, checked by the settings before they come here. The password is in no `repr`.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from typing import Final, Literal

__all__ = ["MailAccount", "Server", "refused_login", "tls_context"]

#: What stands before the words of an answer for programs.
_CODE: Final = re.compile(r"\A\s*\[[A-Z-]+\]\s*")


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server listens. tls: from the first byte on, by STARTTLS (and never without), or not at all."""

    host: str
    port: int
    tls: Literal["tls", "starttls", "none"]


@dataclass(frozen=True, slots=True)
class MailAccount:
    """One mailbox that belongs to the gateway.

    address: its own address, in canonical form. authserv_id: the name under which its receiving server reports what it
    checked; None: no report is believed. trust_from: believe every From, for servers that nobody else can reach.
    token_command: prints an access token that stands in for the password.
    """

    address: str
    username: str
    password: str = field(repr=False)
    imap: Server
    smtp: Server
    folder: str = "INBOX"
    authserv_id: str | None = None
    trust_from: bool = False
    token_command: tuple[str, ...] = ()

    @property
    def domain(self) -> str:
        """The domain of the address."""
        return self.address.rpartition("@")[2]


def refused_login(account: MailAccount, server: Server, words: str) -> str:
    """Return a sentence for people about a server that does not let this account in. words: what it said."""
    words = _CODE.sub("", words).rstrip(". ")
    what, where = ("user name or password", "both under platforms.email")
    if account.token_command:
        what, where = "access token", "token_command and username under platforms.email"
    return f"The mail server {server.host} refused the {what} of {account.address} ({words}); check {where}."


def tls_context() -> ssl.SSLContext:
    """Certificates and names are checked, with the authorities that the system knows. Reads files: it blocks."""
    return ssl.create_default_context()
