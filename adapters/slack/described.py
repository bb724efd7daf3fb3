"""The files of a Slack message, as descriptions that can be fetched later.

Contract: `described` is pure. The reference is Slack's file id, which stays good for this app. What Slack claims is
taken over as it is and never believed; in channels that are shared with another organization it may tell an id only.
Limits: files that lie elsewhere (a link to another service) or are gone stay words: `unfetchable` names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.base import Attachment, AttachmentKind
from adapters.slack.fields import MalformedEvent, as_id, as_list, as_text

__all__ = ["described", "unfetchable"]

_KINDS: Final[Mapping[str, AttachmentKind]] = {"image": "image", "audio": "audio", "video": "video"}
_NOT_HERE = frozenset({"external", "tombstone", "hidden_by_limit"})
_VOICE = "slack_audio"


def described(message: Mapping[str, Any]) -> tuple[Attachment, ...]:
    """Return the files of a message that can be fetched, in order."""
    return tuple(
        Attachment(reference, _kind(file), _name(file), as_text(file, "mimetype") or None, _size(file))
        for file in _files(message)
        if as_text(file, "mode") not in _NOT_HERE and (reference := as_id(file, "id")) is not None
    )


def unfetchable(message: Mapping[str, Any]) -> list[str]:
    """Return the names of the files of a message that cannot be fetched."""
    return [
        _name(file) or "without a name"
        for file in _files(message)
        if as_text(file, "mode") in _NOT_HERE or as_id(file, "id") is None
    ]


def _files(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    files = as_list(message, "files")
    if any(not isinstance(file, dict) for file in files):
        raise MalformedEvent("one of its 'files' is no object")
    return files


def _kind(file: Mapping[str, Any]) -> AttachmentKind:
    if as_text(file, "subtype") == _VOICE:
        return "voice"
    return _KINDS.get(as_text(file, "mimetype").partition("/")[0], "file")


def _name(file: Mapping[str, Any]) -> str | None:
    return as_text(file, "name") or as_text(file, "title") or None


def _size(file: Mapping[str, Any]) -> int | None:
    size = file.get("size")
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None
