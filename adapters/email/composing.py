"""A part of an answer as the mail that carries it.

Contract: an answer goes to the address that is the place's chat, in the place's thread: `References` names the first
mail of the thread and the one that is answered, so that mail programs put it there; its subject is that of the thread.
Its Message-ID is made from the part's key, so that a part that is sent twice is one mail with one id. Every mail says
that a program sent it, so that no answering machine replies. All bytes are 7-bit. What is no address is `Refused`.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import BaseHeader, HeaderRegistry, UnstructuredHeader
from email.message import EmailMessage
from email.policy import SMTP, Policy
from typing import Final, cast

from adapters.base import OutboundPart, Place, Refused
from adapters.email.account import MailAccount
from adapters.email.mails import MARK
from adapters.email.threads import base_subject, message_ids, own_message_id
from config.mail import canonical_address

__all__ = ["Letter", "answer", "opening"]

_SUBJECT: Final = "Threadline"
#: What stands for the Message-ID of a mail without one.
_NUMBER: Final = re.compile(r"\d+:\d+")
_LONGEST_SUBJECT: Final = 200
#: Bytes per character from which base64 is the shorter encoding.
_MOSTLY_ASCII: Final = 1.2


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail ready to go."""

    recipient: str
    message_id: str
    raw: bytes


def answer(account: MailAccount, place: Place, part: OutboundPart) -> Letter:
    """Return the mail for a part; in a place without a thread it begins a new one."""
    key = part.idempotency_key or secrets.token_hex(16)
    own = own_message_id(key, f"{place.chat}\0{part.plain}", place.thread, account.domain)
    subject = base_subject(place.name or "")[:_LONGEST_SUBJECT] or _SUBJECT
    message = _message(account, place.chat, f"Re: {subject}" if place.thread else subject, own, "auto-replied")
    # The thread of a mail without an id has no id either; our answer is then the first that can be named.
    answered = message_ids(" ".join(f"<{name}>" for name in dict.fromkeys((place.thread, part.reply_to)) if name))
    named = [f"<{name}>" for name in answered if not _NUMBER.fullmatch(name)]
    if named:
        message["In-Reply-To"] = named[-1]
        message["References"] = " ".join(named)
    _fill(message, part.plain, part.payload.get("html"))
    return Letter(place.chat, own, message.as_bytes())


def opening(account: MailAccount, place: Place, title: str) -> Letter:
    """Return the first mail of a new thread."""
    own = own_message_id(secrets.token_hex(16), place.chat, "", account.domain)
    subject = " ".join(title.split())[:_LONGEST_SUBJECT] or _SUBJECT
    message = _message(account, place.chat, subject, own, "auto-generated")
    _fill(message, "This conversation goes on here: answer this mail.\n", None)
    return Letter(place.chat, own, message.as_bytes())


class _Ids(UnstructuredHeader):
    """Message-IDs, one a line; the library would encode long ones, and no mail program reads them then."""

    def fold(self, *, policy: Policy) -> str:
        """Return the header as it goes out."""
        ids = (policy.linesep + " ").join(str(self).split())
        return f"{self.name}: {ids}{policy.linesep}"  # type: ignore[attr-defined]  # the registry mixes it in


_HEADERS: Final = HeaderRegistry()
for _name in ("message-id", "in-reply-to", "references"):
    # The registry makes headers of it by inheritance; the stubs ask for the whole.
    _HEADERS.map_to_type(_name, cast("type[BaseHeader]", _Ids))
_POLICY: Final = SMTP.clone(header_factory=_HEADERS, cte_type="7bit")


def _message(account: MailAccount, recipient: str, subject: str, own: str, submitted: str) -> EmailMessage:
    try:
        canonical_address(recipient)
    except ValueError as error:
        raise Refused(f"{recipient!r} is no mail address.") from error
    message = EmailMessage(policy=_POLICY)
    message["From"] = account.address
    message["To"] = recipient
    message["Subject"] = "".join(letter if letter.isprintable() else " " for letter in subject)
    message["Date"] = datetime.now(UTC)
    message["Message-ID"] = f"<{own}>"
    message["Auto-Submitted"] = submitted
    message[MARK] = "1"
    return message


def _fill(message: EmailMessage, plain: str, markup: object) -> None:
    message.set_content(plain, cte=_encoding(plain))
    if isinstance(markup, str):
        page = f"<!DOCTYPE html>\n<html>\n<body>\n{markup}\n</body>\n</html>\n"
        message.add_alternative(page, subtype="html", cte=_encoding(page))


def _encoding(text: str) -> str:
    """Return the shorter encoding; either carries every character, control characters too."""
    return "quoted-printable" if len(text.encode()) < len(text) * _MOSTLY_ASCII else "base64"
