"""A short piece of a message around what was found, on the text as it was written.

Contract: about TOKENS words (characters in scripts without spaces) around the place where most of the wanted terms stand
close together; each occurrence inside is put between `>>>` and `<<<`, cuts are shown by `…`. Terms are found as the
index finds them, in any spelling that is equal to it (case, width, composition, Latin diacritics). If none can be found,
the beginning of the text is returned without marks.
Limits: looks at the first 200 occurrences of a term and shows at most 1,200 characters. The text between the marks is the
original, line breaks and control characters included.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from session_store.query import Term
from session_store.segment import BREAK, SPACED, is_unspaced, normal, runs

__all__ = ["TOKENS", "snippet"]

TOKENS: Final = 40
"""Words or unspaced characters that a snippet shows."""
_LEAD: Final = 14
_WIDTH: Final = 400
_NEAR: Final = 160
_OCCURRENCES: Final = 200
#: Text whose normal form has other positions is worked through in pieces, which overlap so that no match is cut.
_PIECE: Final = 4096
_OVERLAP: Final = 512

_AFTER_WORD: Final = re.compile(r"[^\w\s]{0,8}")


class _Span(NamedTuple):
    start: int
    end: int
    term: int


class _View(NamedTuple):
    """A piece of the text and its normal form. same: positions are equal in both."""

    offset: int
    original: str
    form: str
    same: bool


def snippet(text: str, terms: Sequence[Term]) -> str:
    """Cut `text` around the best place for `terms`."""
    spans = _occurrences(text, terms)
    if not spans:
        return _cut(text, 0, 0, ())
    best = max(range(len(spans)), key=lambda at: (_terms_near(spans, at), -at))
    return _cut(text, spans[best].start, spans[best].end, spans)


def _terms_near(spans: Sequence[_Span], at: int) -> int:
    near = {spans[at].term}
    for span in islice(spans, at + 1, None):
        if span.start > spans[at].start + _NEAR:
            break
        near.add(span.term)
    return len(near)


def _cut(text: str, anchor: int, anchor_end: int, spans: Sequence[_Span]) -> str:
    before = [start for start, _ in _tokens(text, max(0, anchor - _WIDTH), anchor)]
    start = before[-_LEAD] if len(before) >= _LEAD else max(0, anchor - _WIDTH)
    after = [end for _, end in _tokens(text, anchor, anchor + 2 * _WIDTH)]
    room = TOKENS - min(len(before), _LEAD)
    end = after[room - 1] if len(after) >= room else min(len(text), anchor + 2 * _WIDTH)
    end = max(end, min(anchor_end, anchor + 2 * _WIDTH))
    if found := _AFTER_WORD.match(text, end):
        end = found.end()
    pieces = []
    at = start
    for span in spans:
        if span.start >= at and span.start < end:
            stop = min(span.end, end)
            pieces += [text[at : span.start], ">>>", text[span.start : stop], "<<<"]
            at = stop
    pieces.append(text[at:end])
    shown = "".join(pieces).strip()
    return f"{'…' if text[:start].strip() else ''}{shown}{'…' if text[end:].strip() else ''}"


def _tokens(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the words and the unspaced characters of a part of the text lie."""
    for at, run, unspaced in runs(text, start, end):
        if unspaced:
            yield from ((position, position + 1) for position in range(at, at + len(run)))
        else:
            yield at, at + len(run)


def _occurrences(text: str, terms: Sequence[Term]) -> list[_Span]:
    views = list(_views(text))
    for forms in (views, map(_without_marks, views)):
        looked_at = list(forms)
        spans = sorted(span for number, term in enumerate(terms) for span in _places(looked_at, term, number))
        if spans:
            return spans
    return []


def _places(views: Sequence[_View], term: Term, number: int) -> list[_Span]:
    """Occurrences as words if there are any, else inside words."""
    for pattern in _patterns(term):
        found = (_span(view, match, number) for view in views for match in pattern.finditer(view.form))
        spans = list(dict.fromkeys(islice(found, _OCCURRENCES)))
        if spans:
            return spans
    return []


@lru_cache(512)
def _patterns(term: Term) -> tuple[re.Pattern[str], ...]:
    literal = r"\s+".join(re.escape(word) for word in term.literal.split(" "))
    tokens = [token for token in term.tokens.split(" ") if token != BREAK]
    spelling = literal if term.spelled else r"[\W_]*".join(map(re.escape, tokens))
    starts_word = not is_unspaced(term.literal[0]) and term.literal[0].isalnum()
    ends_word = not is_unspaced(term.literal[-1]) and term.literal[-1].isalnum()
    head = f"(?<!{SPACED})" if starts_word else ""
    tail = f"{SPACED}*" if term.prefix else f"(?!{SPACED})" if ends_word else ""
    return re.compile(f"{head}{spelling}{tail}"), re.compile(literal)


def _views(text: str) -> Iterator[_View]:
    form = normal(text)
    if text.isascii() or (unicodedata.is_normalized("NFKC", text) and len(form) == len(text)):
        yield _View(0, text, form, same=True)
        return
    for offset in range(0, len(text), _PIECE - _OVERLAP):
        piece = text[offset : offset + _PIECE]
        yield _View(offset, piece, normal(piece), same=False)


def _without_marks(view: _View) -> _View:
    return view._replace(form="".join(map(_plain_letter, view.form)))


@lru_cache(2048)
def _plain_letter(character: str) -> str:
    """The letter without diacritics, for Latin letters only, as the tokenizer does it."""
    first = unicodedata.normalize("NFD", character)[0]
    return first if first.isascii() else character


def _span(view: _View, match: re.Match[str], number: int) -> _Span:
    start, end = match.span()
    if not view.same:
        start, end = _original_start(view.original, start), _original_end(view.original, end)
    return _Span(view.offset + start, view.offset + end, number)


def _original_start(text: str, position: int) -> int:
    """The last place in `text` before which at most `position` characters of its normal form lie."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if len(normal(text[:middle])) <= position:
            low = middle
        else:
            high = middle - 1
    return low


def _original_end(text: str, position: int) -> int:
    """The first place in `text` before which `position` characters of its normal form lie, marks included."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high) // 2
        if len(normal(text[:middle])) >= position:
            high = middle
        else:
            low = middle + 1
    while low < len(text) and unicodedata.combining(text[low]):
        low += 1
    return low
