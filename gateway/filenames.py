"""Names of files that came from outside, made harmless.

Contract: `harmless_name` is pure and total. What it returns is one name, never a path: not empty, at most `MAX_LENGTH`
characters, without separators, control, invisible and direction-turning characters, brackets and quotes; no system
takes it for a device or hides it. The ending stays, so that people know what they save; nothing here believes it.
Applied twice it changes nothing more.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["MAX_LENGTH", "harmless_name"]

MAX_LENGTH: Final = 100

_MAX_ENDING: Final = 16
_SEPARATOR: Final = re.compile(r"[/\\\u2044\u2215\u29f5\u29f8\u29f9\ufe68\uff0f\uff3c]")
_MARKS: Final = re.compile(r"""[\[\]<>{}:"'|?*`$%&;\uff1a]""")
_BLANKS: Final = re.compile(r"\s+")
#: Names that Windows takes for devices, whatever their ending.
_DEVICE: Final = re.compile(
    r"(?:con|prn|aux|nul|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3])(?=\.|\Z)", re.IGNORECASE
)
#: Control, format (invisible, direction), halves of characters, private and unassigned ones.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def harmless_name(claimed: str | None, otherwise: str) -> str:
    """Return the name to show and to save under. otherwise: used where nothing of the claimed name is left."""
    # Of a name longer than any system has, the end is kept: there is its ending.
    text = unicodedata.normalize("NFC", (claimed or "")[-4096:])
    text = _SEPARATOR.split(text.rstrip("/\\"))[-1]
    text = _BLANKS.sub(" ", text)
    text = "".join(letter for letter in text if unicodedata.category(letter) not in _UNSEEN)
    # Between two blanks there may have been something unseen.
    text = _BLANKS.sub(" ", _MARKS.sub("_", text))
    text = unicodedata.normalize("NFC", text).strip(" .")
    if not text:
        return otherwise
    if _DEVICE.match(text):
        text = f"_{text}"
    return _short(text)


def _short(text: str) -> str:
    if len(text) <= MAX_LENGTH:
        return text
    stem, dot, ending = text.rpartition(".")
    if not dot or len(ending) > _MAX_ENDING:
        return text[:MAX_LENGTH].rstrip(" .")
    return f"{stem[: MAX_LENGTH - len(ending) - 1].rstrip(' .')}.{ending}"
