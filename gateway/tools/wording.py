"""What a question is about: its words in all their forms, without those that only hold a sentence together.

Contract: pure, total. Function words and question words of six languages fall away unless nothing else is left; words
about talking and remembering count little. Words of languages that the stemmer knows are found in every form that has
the same stem, English irregular forms included; runs of scripts without spaces fall into pairs of characters. What is
written with punctuation in it (a path, an address) is looked for as it is written.
Limits: 24 words of a question, 40 pairs of characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

import snowballstemmer

from gateway.agents.languages import CHINESE_FUNCTION, CHINESE_TALK, LEXICA, Language, fold
from gateway.agents.questions import asks, language_of, states
from session_store.query import Query, Term, term_of
from session_store.related import Question, Word
from session_store.segment import runs

__all__ = ["question_of"]

_MOST_WORDS: Final = 24
_MOST_PAIRS: Final = 40
_PAIR: Final = 2
_LITTLE: Final = 0.4
#: What makes a word an address, a path, a number of something; apostrophes and hyphens do not.
_LITERAL: Final = re.compile(r"(?a:\w[^\w\s'-]+\w)|^[#@$./~-]|_")
#: Shorter beginnings would find too much.
_SHORTEST: Final = 3

_STEMMERS: Final = {"en": "english", "ru": "russian", "de": "german", "fr": "french", "es": "spanish"}
_IRREGULAR: Final = """
be was were been|go went gone|do did done|have had|buy bought|bring brought|think thought|teach taught|catch caught
take took taken|give gave given|get got gotten|come came|see saw seen|eat ate eaten|drink drank drunk|drive drove driven
ride rode ridden|write wrote written|read|speak spoke spoken|break broke broken|choose chose chosen|wear wore worn
win won|lose lost|find found|meet met|feel felt|leave left|keep kept|sleep slept|spend spent|send sent|build built
make made|say said|tell told|sell sold|hold held|stand stood|understand understood|know knew known|grow grew grown
fly flew flown|draw drew drawn|throw threw thrown|swim swam swum|sing sang sung|begin began begun|run ran|pay paid
hear heard|sit sat|fall fell fallen|become became|forget forgot forgotten|get got|hurt|cut|put|fight fought|seek sought
child children|man men|woman women|person people|foot feet|tooth teeth|mouse mice|wife wives|life lives|knife knives
good better best|bad worse worst
"""
_FORMS: Final = {form: tuple(line.split()) for line in re.split(r"[|\n]", _IRREGULAR.strip()) for form in line.split()}
_MARKS: Final = ("?", "\uff1f")
_CHINESE_CUT: Final = re.compile("|".join(sorted(CHINESE_FUNCTION, key=len, reverse=True)))
_CHINESE_TALK: Final = re.compile("|".join(sorted(CHINESE_TALK, key=len, reverse=True)))


def question_of(text: str, query: Query) -> Question:
    """Read a question. query: the same text as the strict search understands it."""
    language = language_of(text)
    found: dict[Word, None] = {}
    for term in query.wanted:
        found |= dict.fromkeys(_words(term, language, strictly=True))
    if not found:
        found = {word: None for term in query.wanted for word in _words(term, language, strictly=False)}
    spaced = [word for word in found if word.stems or len(word.terms[0].literal) > _PAIR][:_MOST_WORDS]
    pairs = [word for word in found if word not in spaced][:_MOST_PAIRS]
    unwanted = query.clauses[0].unwanted
    return Question((*spaced, *pairs), _stemmer(language), unwanted, _only_asks, asks(text))


def _only_asks(said: str) -> bool:
    """Whether a message asks and says nothing else; without a question mark at its end it says something."""
    return said.rstrip().endswith(_MARKS) and not states(said)


def _words(term: Term, language: Language, *, strictly: bool) -> Iterator[Word]:
    """The words of one term. strictly: without function words."""
    if not term.phrase or (term.spelled and _LITERAL.search(term.literal) is not None):
        yield Word((term,))
    for _, run, unspaced in runs(term.literal):
        yield from _pairs(run, strictly=strictly) if unspaced else _forms(run, language, strictly=strictly)


def _forms(word: str, language: Language, *, strictly: bool) -> Iterator[Word]:
    folded = fold(word)
    lexicon = LEXICA["en" if language == "zh" else language]
    if strictly and (folded in lexicon.function or folded in lexicon.asking or len(folded) == 1):
        return
    stem = _stemmer(language)
    forms = _FORMS.get(folded, (folded,)) if language in {"en", "zh"} else (folded,)
    terms = [term for form in forms for term in _terms(form, stem(form))]
    weight = _LITTLE if folded in lexicon.talk else 1.0
    yield Word(tuple(dict.fromkeys(terms)), frozenset(stem(form) for form in forms), weight)


def _terms(form: str, stem: str) -> Iterator[Term]:
    """The beginning that all forms with this stem share."""
    alike = next((at for at, (one, other) in enumerate(zip(form, stem, strict=False)) if one != other), len(stem))
    beginning = form[:alike]
    if len(beginning) > _SHORTEST and beginning[-1] in "eiy":
        beginning = beginning[:-1]
    if made := term_of(beginning if len(beginning) >= _SHORTEST else form, prefix=len(beginning) >= _SHORTEST):
        yield made


def _pairs(run: str, *, strictly: bool) -> Iterator[Word]:
    for piece in _CHINESE_CUT.split(run) if strictly else [run]:
        talk = _CHINESE_TALK.fullmatch(piece) is not None
        cut: Iterable[str] = [piece[at : at + _PAIR] for at in range(len(piece) - 1)] or [piece]
        for pair in cut:
            if pair and (made := term_of(pair)):
                yield Word((made,), weight=_LITTLE if talk else 1.0)


@lru_cache(8)
def _stemmer(language: Language) -> _Stemmer:
    return _Stemmer(_STEMMERS.get(language, "english"))


class _Stemmer:
    """Stems of folded words; remembers the latest."""

    def __init__(self, algorithm: str) -> None:
        stem = snowballstemmer.stemmer(algorithm)
        self._stem = lru_cache(4096)(stem.stemWord)

    def __call__(self, word: str) -> str:
        return str(self._stem(word))
