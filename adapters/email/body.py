"""What a mail says: its headers and its text, decoded as well as they can be.

Contract: `parsed` takes any bytes. Headers and texts come out as text whatever charset they claim or break; of
alternatives the plain one is taken unless it is blank; texts of several parts follow each other; everything else is
an attachment, of which is kept what it is called and where it stands, not what it holds. Pure and synchronous.
Failure: markup deep or broken enough to defeat the standard library's parser raises whatever it raises; the caller
sets such a mail aside.
Limits: `DEEPEST` levels of parts; attached mails are named, not read.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.policy import Compat32
from typing import Any, Final

from adapters.email.hypertext import plain_of
from adapters.email.words import unflowed

__all__ = ["AttachedPart", "Body", "body_of", "header", "headers", "parsed"]

DEEPEST: Final = 20
_MOST_ATTACHMENTS: Final = 50
_LONGEST_NAME: Final = 200
#: Text encodings of Python that no mail has: slow, or made for other things.
_NO_CHARSETS: Final = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"})
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


class _AsSent(Compat32):
    """Headers as they came, with odd bytes as surrogates; the library would only mark them as unknown."""

    def header_fetch_parse(self, name: str, value: Any) -> Any:  # noqa: ARG002  (the signature is the library's)
        return value


@dataclass(frozen=True, slots=True)
class AttachedPart:
    """A part that is no text of the mail.

    section: its number as IMAP counts parts (`2`, `1.3`), or None where it has none that can be asked for.
    encoding: its transfer encoding, in lower case. size: bytes of what of it is there, decoded; None for a mail.
    """

    name: str | None
    type: str
    section: str | None = None
    encoding: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """The text, history and signature included, and what is attached."""

    text: str
    attachments: tuple[AttachedPart, ...]


def parsed(raw: bytes) -> Message:
    """Parse a mail, cut off or not."""
    return message_from_bytes(raw, policy=_AsSent())


def headers(message: Message, name: str) -> list[str]:
    """Return all headers of that name in order, unfolded and with odd bytes decoded, but encoded words as they are."""
    return [" ".join(_from_bytes(value).split()) for value in message.get_all(name, [])]


def header(message: Message, name: str) -> str:
    """Return the first header of that name for people, or ''."""
    found = headers(message, name)
    return _shown(found[0]) if found else ""


def body_of(message: Message) -> Body:
    """Return the text of a mail and its attachments."""
    attachments: list[AttachedPart] = []
    text = "\n\n".join(piece.strip("\n") for piece in _texts(message, attachments, ()) if piece.strip())
    return Body(text, tuple(attachments[:_MOST_ATTACHMENTS]))


def _texts(part: Message, attachments: list[AttachedPart], path: tuple[int, ...]) -> Iterator[str]:
    """Yield the texts of a part. path: the numbers that lead to it."""
    kind = part.get_content_type()
    if len(path) > DEEPEST:
        attachments.append(AttachedPart("(too deep inside the mail)", kind))
    elif kind == "message/rfc822" or _attached(part, kind):
        attachments.append(_described(part, kind, path))
    elif kind == "multipart/alternative" and part.is_multipart():
        yield from _chosen(_parts(part), attachments, path)
    elif part.is_multipart():
        for number, child in enumerate(_parts(part), 1):
            yield from _texts(child, attachments, (*path, number))
    elif kind == "text/html":
        yield plain_of(_decoded(part))
    elif part.get_content_maintype() in {"text", "multipart"}:
        yield _plain(part)


def _parts(part: Message) -> list[Message]:
    payload: Any = part.get_payload()
    return [child for child in payload if isinstance(child, Message)] if isinstance(payload, list) else []


def _chosen(alternatives: list[Message], attachments: list[AttachedPart], path: tuple[int, ...]) -> Iterator[str]:
    """Yield the texts of the best alternative: plain before formatted, but something before nothing."""
    numbered = enumerate(alternatives, 1)
    for number, alternative in sorted(numbered, key=lambda pair: pair[1].get_content_type() != "text/plain"):
        found: list[AttachedPart] = []
        texts = [text for text in _texts(alternative, found, (*path, number)) if text.strip()]
        attachments.extend(found)
        if texts:
            yield from texts
            return


def _described(part: Message, kind: str, path: tuple[int, ...]) -> AttachedPart:
    mail = kind == "message/rfc822"
    if mail and not path:
        return AttachedPart(_name(part), kind)  # the numbers of its parts begin inside it
    encoding = _from_bytes(str(part.get("Content-Transfer-Encoding", ""))).strip().lower()
    payload = None if mail else part.get_payload(decode=True)
    size = len(payload) if isinstance(payload, bytes) else None
    return AttachedPart(_name(part), kind, ".".join(map(str, path)) or "1", encoding, size)


def _attached(part: Message, kind: str) -> bool:
    if part.get_content_maintype() == "multipart":
        return False
    disposition = _from_bytes(str(part.get("Content-Disposition", ""))).strip().lower()
    return disposition.startswith("attachment") or part.get_content_maintype() != "text" or kind == "text/calendar"


def _name(part: Message) -> str | None:
    try:
        name = part.get_filename() or ""
    except Exception:  # noqa: BLE001  (broken parameters fail in many ways; a name is not worth losing a mail)
        name = ""
    if not name and part.get_content_type() == "message/rfc822":
        name = next((header(inner, "Subject") for inner in _parts(part)), "")
    return _UNPRINTABLE.sub("", _shown(_from_bytes(name)))[:_LONGEST_NAME] or None


def _plain(part: Message) -> str:
    text = _decoded(part)
    if str(part.get_param("format", "")).lower() == "flowed":
        return unflowed(text, delete_space=str(part.get_param("delsp", "")).lower() == "yes")
    return text


def _decoded(part: Message) -> str:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    try:
        charset = part.get_content_charset() or ""
    except Exception:  # noqa: BLE001  (broken parameters fail in many ways)
        charset = ""
    return _as_text(payload, charset)


def _as_text(data: bytes, charset: str) -> str:
    """Decode by the charset that is claimed, else as UTF-8, else as the charset of old Windows programs."""
    for guess in (charset, "utf-8"):
        if guess and guess.replace("-", "_").lower() not in _NO_CHARSETS:
            try:
                return data.decode(guess)
            except (LookupError, ValueError):
                continue
    return data.decode("cp1252", "replace")


def _from_bytes(value: str) -> str:
    """Return a header whose odd bytes came as surrogates as text."""
    return _as_text(value.encode("utf-8", "surrogateescape"), "")


def _shown(value: str) -> str:
    """Decode encoded words."""
    try:
        pieces = decode_header(value)
    except (HeaderParseError, binascii.Error, ValueError):
        return value
    words = [
        piece if isinstance(piece, str) else _as_text(piece, charset or "raw-unicode-escape")
        for piece, charset in pieces
    ]
    return _UNPRINTABLE.sub(" ", "".join(words) or value).strip()
