"""One mail to one `InboundMessage`, or to the reason why it is none.

Contract: `inbound` is pure. The place is a direct chat with the author's address, its thread the thread of the mail: a
new mail begins a session, an answer goes on with its own. The author is who the receiving server vouches for (or who
the mail claims, if the account trusts that); a mail that nobody vouches for is refused here, because its claimed author
would open that person's sessions. What programs send (answering machines, lists, ourselves) is refused too, so that two
machines never talk to each other; of a mail of ours that came back, only that is told. Copies and `Reply-To` do not
matter: an answer goes to the author only.
`MalformedMail` is raised for what cannot be understood, and nothing else.
Attachments are described, never fetched; what of them cannot be fetched is named in the text.
Limits: `MOST_WORDS` characters of text, and `MOST_QUOTED` of somebody else's mail that is answered to us; what was left
out is told at the end. A command is the first line of a mail.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import Message
from typing import Final

from adapters.base import Attachment, InboundKind, InboundMessage, Place, Quoted, Sender
from adapters.email.account import MailAccount
from adapters.email.attached import described
from adapters.email.authentication import Author, author, proven
from adapters.email.body import AttachedPart, body_of, header, headers, parsed
from adapters.email.bounces import Bounce, bounced
from adapters.email.imap import FetchedMail
from adapters.email.threads import base_subject, is_ours, message_id, message_ids, thread_of
from adapters.email.words import divided

__all__ = ["MARK", "MOST_WORDS", "PLATFORM", "Arrival", "MalformedMail", "NotForUs", "inbound"]

PLATFORM: Final = "email"
#: Header of every mail that a gateway sends.
MARK: Final = "X-Threadline"
MOST_WORDS: Final = 64_000
MOST_QUOTED: Final = 8_000
_LONGEST_SUBJECT: Final = 200

_COMMAND: Final = re.compile(r"/[A-Za-z][A-Za-z0-9_-]{0,63}(?:\s|\Z)")
_MACHINES: Final = re.compile(
    r"(?:mailer-daemon|postmaster|bounces?|no-?reply|do-?not-?reply)(?:[+=-].*)?@", re.IGNORECASE
)
_BULK: Final = frozenset({"bulk", "list", "junk", "auto_reply"})


class MalformedMail(ValueError):
    """The mail cannot be understood."""


@dataclass(frozen=True, slots=True)
class NotForUs:
    """Why a mail is not taken in."""

    reason: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where and when a mail came in: the account's name, the folder's generation, Unix seconds."""

    account: str
    uid_validity: int
    received_at: float


def inbound(mail: FetchedMail, mailbox: MailAccount, arrival: Arrival) -> InboundMessage | NotForUs:
    """Return the message that a mail is, or why it is none."""
    try:
        message = parsed(mail.raw)
        if (bounce := bounced(message)) is not None:
            return _returned(bounce, arrival, mail.uid)
        sender = author(headers(message, "From"))
        reason = _machine(message, sender) or _unproven(message, sender, mailbox)
        if reason is not None or sender is None:
            return NotForUs(reason or "it does not name one author")
        return _message(message, sender, mail, arrival)
    except Exception as error:
        # The standard library's parser fails in many ways on what no mail program writes.
        raise MalformedMail(f"{type(error).__name__}: {error}") from error


def _returned(bounce: Bounce, arrival: Arrival, uid: int) -> InboundMessage:
    """Return the event that a mail of ours came back."""
    return InboundMessage(
        place=Place(PLATFORM, arrival.account, "dm", bounce.recipient),
        sender=Sender(None),
        dedupe_key=f"r:{arrival.uid_validity}:{uid}",
        kind="bounce",
        text=bounce.reason,
        message_id="",
        received_at=arrival.received_at,
        addressed=False,
        subject=bounce.message_id,
    )


def _machine(message: Message, sender: Author | None) -> str | None:
    """Return why this is no mail of a person, or None."""
    if headers(message, MARK):
        return "a gateway sent it"
    if _automatic(message) or (sender is not None and _MACHINES.match(sender.address)):
        return "a program sent it"
    return None


def _unproven(message: Message, sender: Author | None, mailbox: MailAccount) -> str | None:
    """Return why nobody knows that the mail is from who it claims, or None."""
    if sender is None:
        return "it does not name one author"
    if sender.address == mailbox.address:
        return "it is from this account itself"
    reports = headers(message, "Authentication-Results")
    if mailbox.trust_from or (mailbox.authserv_id and proven(sender.domain, reports, mailbox.authserv_id)):
        return None
    return f"the receiving server does not vouch for its author {sender.address}"


def _automatic(message: Message) -> bool:
    submitted = header(message, "Auto-Submitted").partition(";")[0].strip().lower()
    return (
        submitted not in {"", "no"}
        or header(message, "Precedence").lower() in _BULK
        or bool(headers(message, "List-Id"))
        or header(message, "Return-Path") == "<>"
        or message.get_content_type() in {"multipart/report", "message/delivery-status"}
    )


def _message(message: Message, sender: Author, mail: FetchedMail, arrival: Arrival) -> InboundMessage | NotForUs:
    references, in_reply_to = " ".join(headers(message, "References")), " ".join(headers(message, "In-Reply-To"))
    answered = [*message_ids(references), *message_ids(in_reply_to)]
    # A number of the folder is not for ever, but nothing else names a mail without an id.
    number = message_id(" ".join(headers(message, "Message-ID"))) or f"{arrival.uid_validity}:{mail.uid}"
    thread = thread_of(number, references, in_reply_to)
    subject = base_subject(header(message, "Subject"))[:_LONGEST_SUBJECT]
    body = body_of(message)
    words, history = divided(body.text, answer=bool(answered))
    attached = body.attachments if mail.structure is None else body_of(mail.structure).attachments
    files, left = _divided_files(attached, arrival.uid_validity, mail)
    text = _shortened(words, MOST_WORDS) or ("" if answered else subject)
    text = "\n".join(filter(None, (text, *left)))
    if not text and not files:
        return NotForUs("it holds no words")
    reply_to = message_id(in_reply_to) or (answered[-1] if answered else None)
    kind: InboundKind = "message"
    if _COMMAND.match(text):
        kind, text = "command", text.partition("\n")[0].rstrip()
    return InboundMessage(
        place=Place(PLATFORM, arrival.account, "dm", sender.address, thread, subject or None),
        sender=Sender(sender.address, sender.name),
        dedupe_key=f"m:{number}",
        kind=kind,
        text=text,
        message_id=number,
        received_at=arrival.received_at,
        reply_to=reply_to,
        # What we wrote ourselves stands in the session; what somebody else wrote is known from here only.
        quoted=Quoted(_shortened(history, MOST_QUOTED)) if history and reply_to and not is_ours(reply_to) else None,
        extra=({"subject": subject} if subject else {}) | ({} if mail.whole else {"truncated": True}),
        attachments=files,
    )


def _shortened(words: str, most: int) -> str:
    if len(words) <= most:
        return words
    return f"{words[:most]}\n\n[The mail goes on; {len(words) - most} characters were left out.]"


def _divided_files(
    parts: Sequence[AttachedPart], uid_validity: int, mail: FetchedMail
) -> tuple[tuple[Attachment, ...], list[str]]:
    """Return the attachments that can be fetched, and notes that name the others, and what was not read."""
    files: list[Attachment] = []
    left: list[str] = []
    for part in parts:
        file = described(part, uid_validity, mail.uid, whole=mail.whole)
        if file is None:
            left.append(f"[attachment: {part.name or 'without a name'}]")
        else:
            files.append(file)
    if not mail.whole:
        missing = "words" if mail.structure is not None else "words and attachments"
        left.append(f"[This mail is so large that its end was not read; {missing} may be missing.]")
    return tuple(files), left
