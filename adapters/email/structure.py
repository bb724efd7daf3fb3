"""What a mail is made of, as the server tells it (BODYSTRUCTURE), for mails too large to be read whole.

Contract: `skeleton` returns a mail with the headers of all its parts and none of their content, so that whoever looks
for attachments finds in it those of the real mail, under the same numbers. Every text in it counts as there. Pure.
Failure: None for an answer that makes no sense.
Limits: `DEEPEST` levels, `MOST_TOKENS` words; of a mail inside the mail only its subject.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from email.message import Message
from typing import Final, TypeAlias

__all__ = ["skeleton"]

DEEPEST: Final = 25
MOST_TOKENS: Final = 20_000
_TOKEN: Final = re.compile(rb'\s*(?:(\()|(\))|"((?:[^"\\]|\\.)*)"|\{(\d+)\}(?:\r\n)?|([^\s()"{]+))', re.DOTALL)
#: A text that is there, in each encoding.
_SAID: Final = "."
_SAID_IN_BASE64: Final = "Lg=="
_NAME: Final = re.compile(r"[a-z0-9*.+-]{1,60}")

#: Fields that every single part has: its type, parameters, id, description, encoding and size.
_FIXED: Final = 7

#: NIL is None, a number or word stays text.
_Value: TypeAlias = "str | list[_Value] | None"


class _Nonsense(ValueError):
    """It is not what the standard says."""


def skeleton(text: bytes, literals: Sequence[bytes]) -> Message | None:
    """Return the mail that a BODYSTRUCTURE describes. text: from its first parenthesis; literals: those in it."""
    try:
        tokens = _tokens(text, iter(literals))
        body = _read(next(tokens), tokens, 0)
        return _part(body) if isinstance(body, list) else None
    except (_Nonsense, ValueError, StopIteration, RuntimeError):
        return None


def _tokens(text: bytes, literals: Iterator[bytes]) -> Iterator[str | bytes | None]:
    """Yield parentheses as bytes, values as text, NIL as None."""
    position = 0
    for _ in range(MOST_TOKENS):
        match = _TOKEN.match(text, position)
        if match is None:
            return
        position = match.end()
        opening, closing, quoted, literal, atom = match.groups()
        if opening or closing:
            yield opening or closing
        elif literal is not None:
            yield _text(next(literals))
        elif quoted is not None:
            yield _text(re.sub(rb"\\(.)", rb"\1", quoted))
        else:
            yield None if atom.upper() == b"NIL" else _text(atom)


def _read(token: str | bytes | None, tokens: Iterator[str | bytes | None], depth: int) -> _Value:
    """Return the value that begins with a token; raises _Nonsense for what does not end or is too deep."""
    if not isinstance(token, bytes):
        return token
    if token == b")" or depth > 2 * DEEPEST:
        raise _Nonsense
    values: list[_Value] = []
    for following in tokens:
        if following == b")":
            return values
        values.append(_read(following, tokens, depth + 1))
    raise _Nonsense


def _part(body: list[_Value]) -> Message:
    if body and isinstance(body[0], list):
        children = [child for child in body if isinstance(child, list)]
        return _several(body, children)
    kind, subtype, parameters, _, _, encoding = (*body, *[None] * 6)[:6]
    name = f"{kind}/{subtype}".lower()
    message = _headed(name, parameters)
    packed = encoding.lower() if isinstance(encoding, str) else "7bit"
    message["Content-Transfer-Encoding"] = packed
    # What follows the size depends on the kind: a mail has envelope, body and lines, a text has lines.
    more = {"message/rfc822": 3}.get(name, 1 if name.startswith("text/") else 0)
    padded: list[_Value] = [*body, *[None] * (_FIXED + more + 2)]
    _dispose(message, padded[_FIXED + more + 1])
    envelope = padded[_FIXED]
    if name == "message/rfc822" and isinstance(envelope, list):
        inner = Message()
        inner["Subject"] = envelope[1] if len(envelope) > 1 and isinstance(envelope[1], str) else ""
        message.set_payload([inner])
    else:
        message.set_payload(_SAID_IN_BASE64 if packed == "base64" else _SAID)
    return message


def _several(body: list[_Value], lists: list[list[_Value]]) -> Message:
    """Return a part made of parts: they come first, then the subtype, parameters and disposition."""
    count = next((number for number, value in enumerate(body) if not isinstance(value, list)), len(body))
    subtype, parameters, disposition = (*body[count:], None, None, None)[:3]
    message = _headed(f"multipart/{subtype}".lower(), parameters)
    _dispose(message, disposition)
    message.set_payload([_part(child) for child in lists[:count]])
    return message


def _headed(kind: str, parameters: _Value) -> Message:
    message = Message()
    message.add_header("Content-Type", kind, **_pairs(parameters))
    return message


def _dispose(message: Message, disposition: _Value) -> None:
    if isinstance(disposition, list) and disposition and isinstance(disposition[0], str):
        message.add_header("Content-Disposition", disposition[0], **_pairs((*disposition, None)[1]))


def _pairs(parameters: _Value) -> dict[str, str]:
    if not isinstance(parameters, list):
        return {}
    pairs = zip(parameters[::2], parameters[1::2], strict=False)
    known = ((name.lower(), value) for name, value in pairs if isinstance(name, str) and isinstance(value, str))
    return {name: value for name, value in known if _NAME.fullmatch(name)}


def _text(value: bytes) -> str:
    """Return what was told, with odd bytes as the parser of mails keeps them, and in one line."""
    return " ".join(value.decode("utf-8", "surrogateescape").split())
