"""Text as the search index holds it, and the two other forms of it that searching compares with.

Contract: three pure functions over one normalisation (NFKC, invisible characters dropped, NUL as a space).

- `segment` feeds the index. Scripts that are written without spaces (Chinese, Japanese, Korean, Thai, Lao, Khmer,
  Burmese) become single characters, each run followed by one break token, so that a phrase of characters is found
  exactly where the characters stand side by side. Other scripts are left to the tokenizer (unicode61).
- `normal` is what literals are compared in: letter case and typographic variants of quotes and hyphens are folded.
- `words` is the token sequence that the index makes of a text, for rows that the index does not hold yet.

A change of what `segment` returns must raise `SEGMENTATION`: an index without a copy of its text can only forget
tokens that are made again identically. Limits: NFKC follows Python's Unicode tables, so two Python versions may
disagree about characters that are new in the younger one; such a character may leave a posting behind that no
search shows. Diacritics of Latin letters are folded by the tokenizer, those of other scripts and `ß`/`ss` are not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = [
    "BREAK",
    "SEGMENTATION",
    "SPACED",
    "aligned",
    "cap",
    "has_word",
    "is_unspaced",
    "normal",
    "runs",
    "segment",
    "words",
]

SEGMENTATION = 1
BREAK = "\ue000"
"""The break token: a private-use character, which the tokenizer keeps and no text brings in (see _APART)."""

# Letters of scripts without spaces. Vowel signs and marks are left out on purpose: the tokenizer drops them, so they
# must break a run, or a query without the sign would match a text with it.
_MARKED_SCRIPTS = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0xA9E0, 0xA9FE), (0xAA60, 0xAA7F))
_MARKED_LETTERS = "".join(
    chr(code)
    for first, last in _MARKED_SCRIPTS
    for code in range(first, last + 1)
    if unicodedata.category(chr(code))[0] in "LN"
)
_UNSPACED = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u303c\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\u1100-\u11ff"
    "\uac00-\ud7fb\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
) + re.escape(_MARKED_LETTERS)
_RUN = re.compile(f"[{_UNSPACED}]+")
SPACED = f"[^\\W_{_UNSPACED}]"
"""A letter or digit of a script that is written with spaces, as a regular expression."""
_RUN_OR_WORD = re.compile(f"(?P<run>[{_UNSPACED}]+)|{SPACED}+")

# Characters for which normalising and the two substitutions below change no token. Most text consists of these alone,
# and skipping the work for it halves the cost of segmenting Chinese and Russian.
_PLAIN = (
    "\\x01-\\x7f\u00c0-\u00ff\u0400-\u0481\u048a-\u052f\u2010-\u2016\u2018-\u2027\u3000-\u3003\u3005-\u3029"
    "\u3041-\u3096\u30a1-\u30fa\u30fc-\u30fe\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff0f\uff1a-\uff20"
    "\uff3b-\uff3e\uff5b-\uff64"
)
_NOT_PLAIN = re.compile(f"[^{_PLAIN}]")

# The same without the dots that normalising turns into several characters.
_NOT_ALIGNED = re.compile(f"[^{_PLAIN.replace(chr(0x2018) + '-' + chr(0x2027), chr(0x2018) + '-' + chr(0x2023))}]")

# Dropped: soft hyphen, zero-width space, word joiner, byte order mark, direction marks, variation selectors.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufe00-\ufe0f\ufeff]")

# Symbols younger than the tokenizer's tables, which would stick to a word as if they were letters; private-use
# characters, the break token among them; NUL.
_APART = re.compile(
    "[\\x00\u20a0-\u20cf\u218a\u218b\u23f4-\u23ff\u2700\u2b4d-\u2bff\u2e3c-\u2e7f\ue000-\uf8ff"
    "\U0001f000-\U0001fbff\U000f0000-\U0010ffff]"
)

_TYPOGRAPHIC = (
    ("\u2018", "'"),
    ("\u2019", "'"),
    ("\u201c", '"'),
    ("\u201d", '"'),
    ("\u2010", "-"),
    ("\u2011", "-"),
)
_WORD = re.compile(f"[^\\W_]+|{BREAK}")
_LETTER = re.compile(r"[^\W_]")
# The marks that the tokenizer drops; after a Latin letter it drops them from composed letters too.
_MARKS = "[\u0300-\u0304\u0306-\u030c\u030f\u0311\u031b\u0323-\u0328\u032d\u032e\u0330\u0331]"
_MARK = re.compile(_MARKS)
_MARKED_LATIN = re.compile(f"(?<=[A-Za-z]){_MARKS}+")


def cap(text: str, head: int, tail: int) -> str:
    """`text`, or its first `head` and last `tail` characters when it is longer than both together."""
    if len(text) <= head + tail:
        return text
    return f"{text[:head]}\n{text[-tail:]}"


def segment(text: str) -> str:
    """The text to hand to the tokenizer. Equal texts give equal tokens in every process of this SEGMENTATION."""
    if text.isascii():
        return text.replace("\0", " ") if "\0" in text else text
    if _NOT_PLAIN.search(text) is not None:
        text = _APART.sub(" ", _visible(text))
    return _RUN.sub(_split, text)


def normal(text: str) -> str:
    """The form in which a literal is looked for inside a text. No two characters of it differ by case alone."""
    if text.isascii():
        return text.replace("\0", " ").lower()
    text = _visible(text).replace("\0", " ")
    for variant, plain in _TYPOGRAPHIC:
        text = text.replace(variant, plain)
    # lower() makes two characters of İ and looks at the neighbours of Σ; a substring must fold like its text.
    return text.replace("\u0130", "i").lower().replace("\u03c2", "\u03c3")


def aligned(text: str) -> bool:
    """Whether `normal` surely leaves every character of the text where it stands."""
    return text.isascii() or _NOT_ALIGNED.search(text) is None


def words(text: str) -> str:
    """The tokens of a text in order, each with one space before it, and one space at the end."""
    segmented = segment(text)
    if not segmented.isascii():
        segmented = unicodedata.normalize("NFD", segmented)
        segmented = unicodedata.normalize("NFC", _MARKED_LATIN.sub("", segmented))
        segmented = normal(_MARK.sub("", segmented))
    else:
        segmented = segmented.lower()
    return f" {' '.join(_WORD.findall(segmented))} "


def has_word(text: str) -> bool:
    """Whether the index can hold anything of `text`: a letter or a digit of any script."""
    return _LETTER.search(text) is not None


def is_unspaced(character: str) -> bool:
    """Whether the character is a token by itself: its script does without spaces."""
    return _RUN.match(character) is not None


def runs(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, str, bool]]:
    """The words of a part of a text and its runs of unspaced characters (True), in order, with their positions."""
    for found in _RUN_OR_WORD.finditer(text, start, len(text) if end is None else end):
        yield found.start(), found[0], found["run"] is not None


def _visible(text: str) -> str:
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def _split(run: re.Match[str]) -> str:
    return f" {' '.join(run[0])} {BREAK} "
