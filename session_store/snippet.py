"""A short piece of a message around what was found, on the text as it was written.

Contract: about TOKENS words (characters in scripts without spaces) around the place where most of the wanted terms
stand close together; each occurrence inside is put between `>>>` and `<<<`, cuts are shown by `…`. Terms are found as
the index finds them, in any spelling that is equal to it (case, width, composition, Latin diacritics). If none can be
found, the beginning of the text is returned without marks.
Limits: looks at the first 200 occurrences of a term and shows at most some 1,200 characters. The text between the marks
is the original, line breaks and control characters included.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from session_store.query import Term
from session_store.segment import BREAK, SPACED, aligned, is_unspaced, normal, runs

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
    """A piece of the text and the form of it that is searched. same: positions are equal in both."""

    offset: int
    original: str
    form: str
    same: bool


def snippet(text: str, terms: Sequence[Term]) -> str:
    """Cut `text` around the best place for `terms`."""
    for form in (normal, _without_marks):
        views = list(_views(text, form))
        for inside in (False, True):
            for view in views:
                if spans := _occurrences(view, terms, inside=inside):
                    best = _originally(view, max(spans, key=lambda span: (_terms_near(spans, span), -span.start)))
                    return _cut(text, best, _near(text, best, terms, form))
    return _cut(text, _Span(0, 0, 0), ())


def _near(text: str, best: _Span, terms: Sequence[Term], form: Callable[[str], str]) -> list[_Span]:
    """The occurrences that a cut around the best place may show, as positions in the text."""
    offset = max(0, best.start - _WIDTH)
    piece = text[offset : best.end + 2 * _WIDTH]
    view = _View(offset, piece, form(piece), aligned(piece))
    return [_originally(view, span) for span in _occurrences(view, terms, inside=True)]


def _terms_near(spans: Sequence[_Span], first: _Span) -> int:
    """How many different terms stand from `first` on within a short distance."""
    at = bisect_left(spans, first)
    last = bisect_left(spans, _Span(first.start + _NEAR, 0, 0))
    return len({span.term for span in spans[at:last]} | {first.term})


def _cut(text: str, best: _Span, spans: Sequence[_Span]) -> str:
    furthest = best.start + 2 * _WIDTH
    before = _lead(text, best.start)
    start = before[0] if len(before) == _LEAD else max(0, best.start - _WIDTH)
    after = [end for _, end in islice(_tokens(text, best.start, furthest), TOKENS - len(before))]
    end = after[-1] if len(before) + len(after) == TOKENS else min(len(text), furthest)
    end = max(end, min(best.end, furthest))
    if found := _AFTER_WORD.match(text, end):
        end = found.end()
    pieces = []
    at = start
    for span in spans:
        if at <= span.start < end:
            stop = min(span.end, end)
            pieces += [text[at : span.start], ">>>", text[span.start : stop], "<<<"]
            at = stop
    pieces.append(text[at:end])
    shown = "".join(pieces).strip()
    return f"{'…' if text[:start].strip() else ''}{shown}{'…' if text[end:].strip() else ''}"


def _lead(text: str, before: int) -> list[int]:
    """Where the last words before a place begin. Most are near, so little is looked at first."""
    found: list[int] = []
    for width in (_NEAR, _WIDTH):
        # One more than is shown: the first may be cut.
        found = [start for start, _ in _tokens(text, max(0, before - width), before)]
        if len(found) > _LEAD:
            break
    return found[-_LEAD:]


def _tokens(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the words and the unspaced characters of a part of the text lie."""
    for at, run, unspaced in runs(text, start, end):
        if unspaced:
            yield from ((position, position + 1) for position in range(at, at + len(run)))
        else:
            yield at, at + len(run)


def _occurrences(view: _View, terms: Sequence[Term], *, inside: bool) -> list[_Span]:
    """Where the terms stand in the form of a view, in order; inside words only if asked and not found as words."""
    spans: list[_Span] = []
    for number, term in enumerate(terms):
        for anchor, pattern in _patterns(term)[: 2 if inside else 1]:
            found = [_Span(*match.span(), number) for match in islice(_found(view.form, anchor, pattern), _OCCURRENCES)]
            if found:
                spans += found
                break
    return sorted(spans)


def _found(form: str, anchor: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """All matches. Looking for how the pattern begins is many times quicker than trying it everywhere."""
    at = form.find(anchor)
    while at >= 0:
        match = pattern.match(form, at)
        if match is not None:
            yield match
        at = form.find(anchor, at + 1 if match is None else max(match.end(), at + 1))


@lru_cache(512)
def _patterns(term: Term) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Ways in which a term may be written, the stricter first: how it begins, and the whole."""
    literal = r"\s+".join(re.escape(word) for word in term.literal.split(" "))
    tokens = [token for token in term.tokens.split(" ") if token != BREAK]
    spelling = literal if term.spelled else r"[\W_]*".join(map(re.escape, tokens))
    starts_word = not is_unspaced(term.literal[0]) and term.literal[0].isalnum()
    ends_word = not is_unspaced(term.literal[-1]) and term.literal[-1].isalnum()
    head = f"(?<!{SPACED})" if starts_word else ""
    tail = f"{SPACED}*" if term.prefix else f"(?!{SPACED})" if ends_word else ""
    first = term.literal.split(" ")[0]
    return (first if term.spelled else tokens[0], re.compile(f"{head}{spelling}{tail}")), (first, re.compile(literal))


def _views(text: str, form: Callable[[str], str]) -> Iterator[_View]:
    if aligned(text):
        yield _View(0, text, form(text), same=True)
        return
    for offset in range(0, len(text), _PIECE - _OVERLAP):
        piece = text[offset : offset + _PIECE]
        formed = form(piece)
        yield _View(offset, piece, formed, same=unicodedata.is_normalized("NFKC", piece) and len(formed) == len(piece))


def _without_marks(text: str) -> str:
    return "".join(map(_plain_letter, normal(text)))


@lru_cache(2048)
def _plain_letter(character: str) -> str:
    """The letter without diacritics, for Latin letters only, as the tokenizer does it."""
    first = unicodedata.normalize("NFD", character)[0]
    return first if first.isascii() else character


def _originally(view: _View, span: _Span) -> _Span:
    """The span as positions in the text."""
    if view.same:
        return _Span(view.offset + span.start, view.offset + span.end, span.term)
    start, end = _original_start(view.original, span.start), _original_end(view.original, span.end)
    return _Span(view.offset + start, view.offset + end, span.term)


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
