"""What people type into a search, as something that can be looked for.

Contract: `parse` reads words, "phrases", prefix*, AND (also between words that stand side by side), OR and NOT. AND
binds tighter than OR, NOT concerns the next term; operators are these three words in capitals and nothing else. Every
term is quoted by us, so no input can reach the index as syntax. A word with punctuation in or before it (src/main.py,
don't, #123, 50%) is a phrase for the index whose exact spelling is checked on the text afterwards. Sentence
punctuation, parentheses and quotes around a word are ignored, and so is punctuation that stands alone beside words. An
unclosed quote ends with the query; operators without a term are dropped.
Failure: `QueryError` says why nothing can be searched: no term, only terms to leave out, or too many characters.
Limits: no grouping. Phrases compare words, not what stands between them, unless they contain punctuation themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from session_store.errors import QueryError
from session_store.segment import BREAK, has_word, is_unspaced, normal, runs, segment, words
from session_store.text import clean_text

__all__ = ["MAX_QUERY", "Clause", "Haystack", "Query", "Term", "parse", "term_of"]

MAX_QUERY: Final = 2048
"""Longest query, in characters."""
_RELAXED_TERMS: Final = 64
_PAIR: Final = 2

_NEGATION: Final = frozenset({"NOT"})
_ALTERNATIVE: Final = frozenset({"OR"})
_OPERATORS: Final = _NEGATION | _ALTERNATIVE | {"AND"}
_TYPOGRAPHIC_QUOTES: Final = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u201f\uff02", '"'))
_TOKEN: Final = re.compile(r'"(?P<phrase>[^"]*)(?:"(?P<star>\*?)|\Z)|(?P<word>[^\s"]+)')
_BEFORE: Final = "('`\u00ab\u2039\u00bf\u00a1\u2018\u201a\uff08\u300a\u300c\u300e\u3010\u3008\u3014"
_AFTER: Final = (
    ",.;:!?'`\u2026\u00bb\u203a\u2019\uff0c\u3002\u3001\uff1b\uff1a\uff01\uff1f\u300b\u300d\u300f\u3011\u3009\u3015"
)
_CLOSING: Final = {")": "(", "\uff09": "\uff08"}
#: Alone beside words these say nothing.
_SENTENCE_MARKS: Final = frozenset(_BEFORE + _AFTER + ")\uff09-\u2010\u2011\u2012\u2013\u2014\u30fb\u00b7")
_SPELLING: Final = re.compile(r"[^\w\s]|_")

_NOTHING: Final = 'There is nothing to search for. Type a word, a "phrase" or a prefix*.'
_ONLY_NOT: Final = "The query says only what to leave out. Add a word to search for."


class Haystack:
    """A text that terms are looked for in; its forms are made when they are first needed."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def normal(self) -> str:
        """For literals."""
        return normal(self._text)

    @cached_property
    def even(self) -> str:
        """For literals of several words: every white space is one space."""
        return " ".join(self.normal.split())

    @cached_property
    def words(self) -> str:
        """For what the index would find."""
        return words(self._text)


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for.

    literal: as it must be spelled, in the normal form. phrase: what the index is asked for; '' if it can hold nothing
    of the term (emoji, punctuation). tokens: the same as a sequence of words. spelled: the literal must be in the text,
    the index's answer is not enough.
    """

    literal: str
    phrase: str
    tokens: str
    prefix: bool = False
    spelled: bool = False

    @property
    def match(self) -> str:
        """The term in the index's query language."""
        return f'"{self.phrase}"{" *" if self.prefix else ""}'

    def stands_in(self, text: Haystack) -> bool:
        """Whether the literal is anywhere in the text, also inside words."""
        return self.literal in (text.even if " " in self.literal else text.normal)

    def holds(self, text: Haystack) -> bool:
        """Whether an index that held the text would find it, and the spelling is right."""
        if self.tokens and f" {self.tokens}{'' if self.prefix else ' '}" not in text.words:
            return False
        return not self.spelled or self.stands_in(text)


@dataclass(frozen=True, slots=True)
class Clause:
    """Terms that must all be there, and terms of which none may be."""

    wanted: tuple[Term, ...]
    unwanted: tuple[Term, ...] = ()

    @property
    def match(self) -> str | None:
        """What the index is asked for: all that the clause finds and perhaps more. None: it cannot be asked."""
        wanted = " AND ".join(term.match for term in self.wanted if term.phrase)
        if not wanted:
            return None
        unwanted = " OR ".join(term.match for term in self.unwanted if term.phrase and not term.spelled)
        return f"(({wanted}) NOT ({unwanted}))" if unwanted else f"({wanted})"

    @property
    def exact(self) -> bool:
        """Whether the index's answer needs no second look."""
        return not any(term.spelled or not term.phrase for term in self.wanted + self.unwanted)

    def holds(self, text: Haystack) -> bool:
        """Whether the clause is true of the text, word for word."""
        return all(term.holds(text) for term in self.wanted) and not any(term.holds(text) for term in self.unwanted)

    def stands_in(self, text: Haystack) -> bool:
        """Whether the clause is true of the text when wanted terms may stand inside words."""
        return all(term.stands_in(text) for term in self.wanted) and not any(term.holds(text) for term in self.unwanted)


@dataclass(frozen=True, slots=True)
class Query:
    """Clauses of which at least one must be true."""

    clauses: tuple[Clause, ...]

    @property
    def wanted(self) -> tuple[Term, ...]:
        """All terms that a hit may show."""
        return tuple(dict.fromkeys(term for clause in self.clauses for term in clause.wanted))

    def relaxed(self) -> Query:
        """The same words, any of which is enough; what was to be left out still is.

        Phrases fall into words, long runs of unspaced scripts into pairs of characters; at most 64 terms.
        """
        found: dict[Term, tuple[Term, ...]] = {}
        for clause in self.clauses:
            for term in clause.wanted:
                for piece in _pieces(term):
                    found.setdefault(piece, clause.unwanted)
        clauses = [Clause((term,), unwanted) for term, unwanted in found.items()]
        return Query(tuple(clauses[:_RELAXED_TERMS]))


def parse(text: str) -> Query:
    """Read a query.

    Raises:
        QueryError: there is nothing in it to search for, or it is too long.
    """
    if len(text) > MAX_QUERY:
        raise QueryError(f"The query has {len(text):,} characters; at most {MAX_QUERY:,} can be searched. Shorten it.")
    tokens = list(_tokens(clean_text(text).replace("\0", " ").translate(_TYPOGRAPHIC_QUOTES)))
    if any(isinstance(token, Term) and token.phrase for token in tokens):
        tokens = [token for token in tokens if not (isinstance(token, Term) and _says_nothing(token))]
    clauses: list[Clause] = []
    wanted: list[Term] = []
    unwanted: list[Term] = []
    negated = False
    for token in [*tokens, *_ALTERNATIVE]:
        if isinstance(token, Term):
            (unwanted if negated else wanted).append(token)
            negated = False
        elif token in _NEGATION:
            negated = True
        elif token in _ALTERNATIVE:
            if unwanted and not wanted:
                raise QueryError(_ONLY_NOT)
            if wanted:
                clauses.append(Clause(tuple(wanted), tuple(unwanted)))
            wanted, unwanted, negated = [], [], False
    if not clauses:
        raise QueryError(_NOTHING)
    return Query(tuple(clauses))


def _tokens(text: str) -> Iterator[Term | str]:
    """Terms, and operators as plain strings."""
    for found in _TOKEN.finditer(text):
        word = found["word"]
        if word in _OPERATORS:
            yield word
        elif word is not None:
            bare = _bare(word.strip("*"))
            # Emphasis (**word**) is no prefix; a prefix ends with a letter or digit.
            star = word.endswith("*") and not word.startswith("*") and has_word(word[:-1][-1:])
            if term := term_of(bare, prefix=star):
                yield term
        elif term := term_of(found["phrase"], prefix=bool(found["star"])):
            yield term


def term_of(text: str, *, prefix: bool = False) -> Term | None:
    """Text as a term; None if there is nothing in it to look for."""
    literal = " ".join(normal(text).split())
    if not literal:
        return None
    if not has_word(literal):
        return Term(literal, "", "", spelled=True)
    # The run may go on in the text, so the phrase must not demand its end.
    phrase = " ".join(segment(text).replace('"', " ").split()).removesuffix(f" {BREAK}")
    tokens = words(text).strip().removesuffix(f" {BREAK}")
    return Term(
        literal,
        phrase,
        tokens,
        # One character is one token there, so a phrase is a prefix by itself.
        prefix=prefix and not is_unspaced(phrase[-1]),
        spelled=_SPELLING.search(literal) is not None,
    )


def _bare(word: str) -> str:
    """The word without what belongs to the sentence around it; the word itself if nothing would be left."""
    bare = word.lstrip(_BEFORE)
    while bare and (bare[-1] in _AFTER or bare.count(bare[-1]) > bare.count(_CLOSING.get(bare[-1], bare[-1]))):
        bare = bare[:-1]
    return bare or word


def _says_nothing(term: Term) -> bool:
    return not term.phrase and set(term.literal) <= _SENTENCE_MARKS


def _pieces(term: Term) -> Iterator[Term]:
    one = " " not in term.literal and not any(unspaced for _, _, unspaced in runs(term.literal))
    if not term.tokens or (term.spelled and one):
        yield term
        return
    for _, run, unspaced in runs(term.literal):
        pairs = [run[at : at + _PAIR] for at in range(len(run) - _PAIR + 1)]
        pieces = pairs if unspaced and pairs else [run]
        for piece in pieces:
            if made := term_of(piece, prefix=term.prefix and term.literal.endswith(piece)):
                yield made
