"""Mails that came back: a mail server reports that it could not deliver one of ours.

Contract: `bounced` reads a delivery report (`multipart/report`) and returns which mail of ours came back and why, or
None: for reports of delays and successes, of mails that are not ours, and for whatever is no such report. Anybody can
write one, but only who has got or carried a mail of ours knows its Message-ID. Pure.
Limits: reports in no standard form are not understood; they are mails of a program, like others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from typing import Any, Final

from adapters.email.body import header, headers, parsed
from adapters.email.threads import is_ours, message_ids

__all__ = ["Bounce", "bounced"]

_LONGEST_REASON: Final = 300


@dataclass(frozen=True, slots=True)
class Bounce:
    """A mail of ours that was not delivered: its Message-ID, to whom it was, and the server's reason."""

    message_id: str
    recipient: str
    reason: str


def bounced(message: Message) -> Bounce | None:
    """Return what a mail reports to have come back, if it does."""
    if message.get_content_type() != "multipart/report":
        return None
    failure = next((block for block in _recipients(message) if header(block, "Action").lower() == "failed"), None)
    own = next((number for number in _named(message) if is_ours(number)), None)
    if failure is None or own is None:
        return None
    status, told = header(failure, "Status"), _after_type(header(failure, "Diagnostic-Code"))
    reason = told if status in told else " ".join(filter(None, (status, told)))
    return Bounce(
        own, _after_type(header(failure, "Final-Recipient")), reason[:_LONGEST_REASON] or "no reason was told"
    )


def _recipients(message: Message) -> Iterator[Message]:
    """Yield the blocks about single recipients; the first block of a report is about the mail as a whole."""
    for part in _parts(message):
        if part.get_content_type() in {"message/delivery-status", "message/global-delivery-status"}:
            yield from _parts(part)[1:]


def _named(message: Message) -> Iterator[str]:
    """Yield the Message-IDs of the mail that came back: its own headers, else what the report answers."""
    for part in _parts(message):
        kind = part.get_content_type()
        if kind in {"message/rfc822", "message/global"}:
            returned = _parts(part)
        elif kind in {"text/rfc822-headers", "message/rfc822-headers", "message/global-headers"}:
            payload: Any = part.get_payload(decode=True)
            returned = [parsed(payload)] if isinstance(payload, bytes) else _parts(part)
        else:
            continue
        for mail in returned:
            yield from message_ids(" ".join(headers(mail, "Message-ID")))
    yield from message_ids(" ".join(headers(message, "In-Reply-To")))
    yield from message_ids(" ".join(headers(message, "References")))


def _parts(part: Message) -> list[Message]:
    payload: Any = part.get_payload()
    return [child for child in payload if isinstance(child, Message)] if isinstance(payload, list) else []


def _after_type(value: str) -> str:
    """Return what follows the type in `smtp; 550 no such user`."""
    _, semicolon, rest = value.partition(";")
    return " ".join((rest if semicolon else value).split())
