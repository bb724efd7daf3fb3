"""The files of a Discord message, as descriptions that can be fetched later.

Contract: pure. The addresses that Discord tells run out within a day, so the reference is made of what stays: the ids
of the channel, the message and the file (`<channel>/<message>/<file>`), for which a new address can be asked at any
time. What Discord claims of a file is taken over as it is and never believed; what it does not tell in the proper form
is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from adapters.base import Attachment, AttachmentKind
from adapters.discord.fields import as_list, as_mapping, snowflake

__all__ = ["FileIds", "described", "file_ids", "forwarded", "named"]

_KINDS: Final[Mapping[str, AttachmentKind]] = {"image": "image", "audio": "audio", "video": "video"}
_VOICE_MESSAGE: Final = 1 << 13
_REFERENCE: Final = re.compile(r"(\d{1,20})/(\d{1,20})/(\d{1,20})", re.ASCII)

#: The ids of channel, message and file.
FileIds = tuple[int, int, str]


def described(message: Mapping[str, Any], channel: str) -> tuple[Attachment, ...]:
    """Return the files of a message in this channel, in order, those of what it forwards last.

    Raises MalformedEvent for one without an id.
    """
    where = f"{channel}/{snowflake(message, 'id')}"
    return tuple(
        Attachment(
            f"{where}/{snowflake(file, 'id')}",
            "voice" if _spoken(part) else _kind(file),
            _text(file, "filename"),
            _text(file, "content_type"),
            _size(file),
        )
        for part in (message, *forwarded(message))
        for file in _files(part)
    )


def forwarded(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the messages that a message forwards, as it carries them; raises MalformedEvent for what is none."""
    snapshots = as_list(message.get("message_snapshots"), "forwarded messages")
    return [
        as_mapping(as_mapping(snapshot, "a forwarded message").get("message"), "a forwarded message")
        for snapshot in snapshots
    ]


def named(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files of a message as notes for people."""
    for file in _files(message):
        kind = _kind(file)
        yield f"[{'document' if kind == 'file' else kind}: {_text(file, 'filename') or 'without a name'}]"


def file_ids(reference: str) -> FileIds | None:
    """Return what a reference is made of, or None for what is none."""
    match = _REFERENCE.fullmatch(reference)
    return None if match is None else (int(match[1]), int(match[2]), match[3])


def _spoken(message: Mapping[str, Any]) -> bool:
    flags = message.get("flags")
    return isinstance(flags, int) and bool(flags & _VOICE_MESSAGE)


def _files(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [as_mapping(file, "an attachment") for file in as_list(message.get("attachments"), "attachments")]


def _kind(file: Mapping[str, Any]) -> AttachmentKind:
    return _KINDS.get((_text(file, "content_type") or "").partition("/")[0], "file")


def _text(file: Mapping[str, Any], name: str) -> str | None:
    value = file.get(name)
    return value if isinstance(value, str) and value else None


def _size(file: Mapping[str, Any]) -> int | None:
    size = file.get("size")
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None
