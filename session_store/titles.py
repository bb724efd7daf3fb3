"""Rules for session titles: pure functions of text, no database.

Contract: `clean_title` is what is stored, `title_key` is what is compared. A title is one line without invisible
characters, at most 100 characters; it is unique per owner over its key. Titles form a lineage: `X`, `X #2`, `X #3`;
only a space, `#` and decimal digits at the end count as a number, and the bare title counts as 1.
Failure: a title that is too long raises `InvalidArgument`; nothing else fails.
Limits: of a base longer than 97 characters the numbered titles keep as much as fits in front of the number.
"""

from __future__ import annotations

import re
import unicodedata

from session_store.errors import InvalidArgument
from session_store.text import clean_text

__all__ = ["MAX_TITLE", "clean_title", "numbered_title", "one_line", "split_number", "title_key"]

MAX_TITLE = 100

# Control characters except those that separate words, zero-width and direction marks, byte-order mark, object
# replacement and annotation characters: invisible in a list, and able to make two titles look the same.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffc]"
)
_NUMBERED = re.compile(r"(?P<base>.*\S) #(?P<number>[0-9]{1,9})", re.DOTALL)


def one_line(text: str) -> str:
    """Return `text` as one visible line: invisible characters removed, whitespace runs collapsed, ends trimmed."""
    return " ".join(_INVISIBLE.sub("", clean_text(text)).split())


def clean_title(title: str | None) -> str | None:
    """Return the title as it is stored, or None when nothing visible is left.

    Raises:
        InvalidArgument: longer than 100 characters after cleaning.
    """
    cleaned = one_line(title) if title else ""
    if len(cleaned) > MAX_TITLE:
        msg = f"The title has {len(cleaned)} characters; at most {MAX_TITLE} are allowed. Choose a shorter one."
        raise InvalidArgument(msg)
    return cleaned or None


def title_key(title: str) -> str:
    """Return the form in which titles are compared: canonical composition (NFC) and case-folded."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", title).casefold())


def split_number(title: str) -> tuple[str, int | None]:
    """Split `X #3` into (`X`, 3); a title without such an ending gives (title, None)."""
    match = _NUMBERED.fullmatch(title)
    return (title, None) if match is None else (match["base"], int(match["number"]))


def numbered_title(base: str, number: int) -> str:
    """Return `base #number`, the base cut where the whole would exceed the limit."""
    suffix = f" #{number}"
    return base[: MAX_TITLE - len(suffix)].rstrip() + suffix
