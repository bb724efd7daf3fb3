"""Which mails belong together, and the Message-IDs that we give to our own.

Contract: a mail that answers nothing begins a thread of its own; every other one belongs to the thread of the oldest
mail that it names. A thread's id is the Message-ID of its first mail, without the angle brackets. Our own Message-IDs
carry the thread that they were sent in, so that an answer to one of our mails finds its thread whatever the mail
program left out of `References`; they are made from the key of the part and its content, so that a part that is sent a
second time is the same mail, while the same key in another home is another one. All functions are pure.
Limits: ids longer than `LONGEST_ID` count as none; a thread with a very long id is not carried in ours.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Final

__all__ = ["LONGEST_ID", "base_subject", "is_ours", "message_id", "message_ids", "own_message_id", "thread_of"]

LONGEST_ID: Final = 400
_LONGEST_CARRIED: Final = 120

_ID: Final = re.compile(r"<([^<>\s\x00-\x1f\x7f]{1,400})>")
_OURS: Final = re.compile(r"threadline\.[0-9a-f]{24}[.@]")
_OWN: Final = re.compile(r"threadline\.[0-9a-f]{24}\.([A-Za-z0-9_-]+)@")
#: What mail programs put before the subject of an answer, in their languages.
_ANSWER: Final = re.compile(
    r"(?:re|aw|antw|sv|vs|odp|ynt|rif|res|回复|答复|回覆|返信)\s*(?:\[\d+\])?\s*[:\uff1a]\s*", re.IGNORECASE
)


def message_ids(header: str) -> list[str]:
    """Return all Message-IDs of a header, in order, without the angle brackets."""
    return _ID.findall(header)


def message_id(header: str) -> str | None:
    """Return the first Message-ID of a header, or None."""
    match = _ID.search(header)
    return match[1] if match else None


def thread_of(own: str, references: str, in_reply_to: str) -> str:
    """Return the thread of the mail with the id `own`, by its two headers."""
    named = [*message_ids(references), *message_ids(in_reply_to)]
    carried = (_carried(name) for name in reversed(named))
    return next((thread for thread in carried if thread), named[0] if named else own)


def own_message_id(key: str, content: str, thread: str, domain: str) -> str:
    """Return the id of a mail of ours; `thread` is '' for one that begins a thread."""
    digest = hashlib.sha256(f"{key}\0{content}\0{thread}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
    encoded = thread.encode("utf-8", "surrogatepass")
    if not 0 < len(encoded) <= _LONGEST_CARRIED:
        return f"threadline.{digest}@{domain}"
    return f"threadline.{digest}.{base64.urlsafe_b64encode(encoded).decode('ascii').rstrip('=')}@{domain}"


def is_ours(name: str) -> bool:
    """Tell whether an id has the form of ours, which anybody can imitate."""
    return _OURS.match(name) is not None


def base_subject(subject: str) -> str:
    """Return a subject in one line, without the marks of an answer before it."""
    words = " ".join(subject.split())
    while match := _ANSWER.match(words):
        words = words[match.end() :]
    return words


def _carried(own: str) -> str | None:
    """Return the thread that one of our ids carries, or None."""
    match = _OWN.match(own)
    if match is None:
        return None
    try:
        return base64.urlsafe_b64decode(match[1] + "=" * (-len(match[1]) % 4)).decode("utf-8") or None
    except (binascii.Error, UnicodeDecodeError):
        return None
