"""The attachments of a mail, as descriptions that can be fetched later.

Contract: pure. The reference is made of what the server keeps: the generation of the folder, the number of the mail,
that of the part, and the encoding in which it is sent (`<uidvalidity>/<uid>/<section>/<encoding>`). What a mail claims
of its parts is taken over as it is and never believed.
Limits: of a mail that was not read whole, no size is told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from adapters.base import Attachment, AttachmentKind
from adapters.email.body import AttachedPart

__all__ = ["PartAddress", "address_of", "described"]

_KINDS: Final[Mapping[str, AttachmentKind]] = {"image": "image", "audio": "audio", "video": "video"}
#: Encodings that leave the bytes as they are.
_PLAIN: Final = frozenset({"", "7bit", "8bit", "binary"})
_REFERENCE: Final = re.compile(
    r"(?P<validity>\d{1,10})/(?P<uid>\d{1,10})/(?P<section>\d{1,4}(?:\.\d{1,4}){0,30})/"
    r"(?P<encoding>plain|base64|quoted-printable)"
)


@dataclass(frozen=True, slots=True)
class PartAddress:
    """Where a part lies, and how it is packed: `plain`, `base64` or `quoted-printable`."""

    uid_validity: int
    uid: int
    section: str
    encoding: str


def described(part: AttachedPart, uid_validity: int, uid: int, *, whole: bool) -> Attachment | None:
    """Return a part as what can be fetched, or None where it cannot. whole: nothing was cut from the mail."""
    encoding = "plain" if part.encoding in _PLAIN else part.encoding
    reference = f"{uid_validity}/{uid}/{part.section}/{encoding}"
    if address_of(reference) is None:
        return None
    kind = _KINDS.get(part.type.partition("/")[0], "file")
    return Attachment(reference, kind, part.name, part.type, part.size if whole else None)


def address_of(reference: str) -> PartAddress | None:
    """Return what a reference is made of, or None for what is none."""
    match = _REFERENCE.fullmatch(reference)
    if match is None or not reference.isascii():
        return None
    return PartAddress(int(match["validity"]), int(match["uid"]), match["section"], match["encoding"])
