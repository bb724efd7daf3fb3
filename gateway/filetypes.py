"""What a file is, judged by its beginning; and its words, if it is a text.

Contract: `judge` is pure and total; any bytes give an answer. A file is a text when its beginning is UTF-8, or UTF-16
with its mark, without the control characters that texts do not have. Everything else is asked of the library of
signatures; the name only chooses among types that the content fits equally well. Nothing in a file is ever run,
unpacked or followed.
Limits: a text is judged by what was read of it; texts in other encodings are no texts; `application/octet-stream` where
nothing fits. Loads the library's table of signatures at the first call that needs it, so call it on a worker thread.
"""

from __future__ import annotations

import codecs
import re
from typing import Final, NamedTuple

__all__ = ["UNKNOWN", "Judged", "judge"]

UNKNOWN: Final = "application/octet-stream"

_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f\ufffe\uffff]")
_UTF16: Final = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_PDF: Final = b"%PDF-"
_ZIP: Final = b"PK\x03\x04"
#: The library goes by offsets that are all near the beginning.
_SIGNATURE: Final = 65_536
_ENDING: Final = re.compile(r"\.[A-Za-z0-9]{1,8}\Z")


class Judged(NamedTuple):
    """A media type, and the words of a text; None for what is no text."""

    media_type: str
    text: str | None


def judge(beginning: bytes, name: str = "", *, whole: bool = True) -> Judged:
    """Judge a file by its first bytes. name: as somebody called it. whole: that these are all of them."""
    if beginning.startswith(_PDF):
        return Judged("application/pdf", None)
    text = _text(beginning, whole=whole)
    return Judged(_signature(beginning[:_SIGNATURE], name), None) if text is None else Judged("text/plain", text)


def _text(data: bytes, *, whole: bool) -> str | None:
    mark, encoding = next(((mark, name) for mark, name in _UTF16 if data.startswith(mark)), (b"", ""))
    if not encoding:
        mark, encoding = (codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""), "utf-8"
    try:
        # What was read of a longer file may end inside a character.
        text = codecs.getincrementaldecoder(encoding)("strict").decode(data.removeprefix(mark), final=whole)
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text


def _signature(data: bytes, name: str) -> str:
    import puremagic  # noqa: PLC0415 - reads its table when imported

    try:
        found = puremagic.magic_string(data)
    except (puremagic.PureError, ValueError):
        return UNKNOWN
    best = max((match.confidence for match in found), default=0.0)
    fitting = [match for match in found if match.confidence == best and match.mime_type]
    ending = _ENDING.search(name)
    for match in fitting:
        if ending is not None and match.extension.lower() == ending[0].lower():
            return str(match.mime_type)
    if data.startswith(_ZIP):
        return "application/zip"
    rest = fitting or [match for match in found if match.mime_type]
    return str(rest[0].mime_type) if rest else UNKNOWN
