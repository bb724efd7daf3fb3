"""The files of a Telegram message, as descriptions that can be fetched later.

Contract: `described` is pure. The reference is Telegram's file id, which stays good for this bot. Of a photo's sizes
the largest is meant. What the platform claims is taken over as it is and never believed.
Limits: pictures, sounds, films and documents; stickers, stories and paid media stay words.
"""

from __future__ import annotations

from typing import Any, Final

from telegram import Message, PhotoSize

from adapters.base import Attachment, AttachmentKind

__all__ = ["described"]

#: Attributes that hold one file; where one implies another (an animation is also a document), the telling one first.
_SINGLE: Final[tuple[tuple[str, AttachmentKind], ...]] = (
    ("animation", "video"),
    ("video", "video"),
    ("video_note", "video"),
    ("voice", "voice"),
    ("audio", "audio"),
    ("document", "file"),
)


def described(message: Message) -> tuple[Attachment, ...]:
    """Return the file of a message; Telegram sends at most one with each."""
    if message.photo:
        largest = max(message.photo, key=_area)
        return _attachment(largest, "image")
    for name, kind in _SINGLE:
        one = getattr(message, name)
        if one is not None:
            media_type = _text(getattr(one, "mime_type", None)) or ""
            return _attachment(one, "image" if kind == "file" and media_type.startswith("image/") else kind)
    return ()


def _area(size: PhotoSize) -> tuple[int, int]:
    return _number(size.width) * _number(size.height), _number(size.file_size)


def _attachment(one: Any, kind: AttachmentKind) -> tuple[Attachment, ...]:
    reference = _text(one.file_id)
    if not reference:
        return ()
    name, media_type = _text(getattr(one, "file_name", None)), _text(getattr(one, "mime_type", None))
    return (Attachment(reference, kind, name, media_type, _number(one.file_size) or None),)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
