"""Questions: what is one, in which language, and what it is about.

Contract: pure, deterministic, total: any text gives an answer, none raises. A message asks when a sentence ends with a
question mark, when it opens with a question word (in Chinese also when it closes with one), or when a `?` stands in
front. A heading asks nothing: "How to deploy: run x" is something told.

Limits: six languages (English, Chinese, Russian, German, French, Spanish); of a very long text only the beginning is
looked at. A word that no table knows counts as topic, so that too little is found rather than something wrong.
"""

# ruff: noqa: RUF001 - marks and quotes of other scripts are what is looked for
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from gateway.agents.languages import (
    CHINESE_ENDINGS,
    CHINESE_FUNCTION,
    CHINESE_OPENINGS,
    CHINESE_TALK,
    LEADING,
    LEXICA,
    MARKS,
    SUBJECTS,
    Language,
    fold,
)

__all__ = ["CJK", "Topic", "asks", "language_of", "states", "topic"]

#: Characters of scripts without spaces, and Hangul, whose particles stick to the words; for a character class.
CJK: Final = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)

_LOOKED_AT: Final = 20_000
_MOST_WORDS: Final = 12
_MOST_LETTERS: Final = 80
_STATING_WORDS: Final = 4
_NOTE_WORDS: Final = 12

_HAN: Final = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_KANA: Final = re.compile("[\u3040-\u30ff]")
_HIRAGANA: Final = re.compile("[\u3041-\u309f]+")
_CYRILLIC: Final = re.compile("[\u0400-\u04ff]")
_OTHER_CYRILLIC: Final = re.compile("[іїєґўђјљњћџѓќѕ]", re.IGNORECASE)
_CJK_RUN: Final = re.compile(f"([{CJK}]+)")
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")

#: Code and addresses may hold question marks that ask nothing; so may `name?.field` and `?key=value`.
_QUOTED: Final = re.compile(r"```.*?```|`[^`\n]*`|\b[a-z][a-z0-9+.-]{1,20}://\S+", re.DOTALL | re.IGNORECASE)
_MARK: Final = re.compile(r"[？؟⁇⁈]|\?(?!\.?[A-Za-z0-9_=&/%#])")
_BREAK: Final = re.compile(r"(?<=[.!?؟…])[\"'”’»)\]]*\s+|(?<=[。！？])|\n+")
_COMMA: Final = re.compile(r"[,，;；]\s*\w")
_HEADING: Final = re.compile(r"[^\n:：]{1,120}(?::\s|：)\s*\S")

#: Punctuation around a word; not what belongs to it, as in `#1`, `@ana`, `./run`, `C++` and `50%`.
_BEFORE: Final = " \t\r\n\"'“”‘’«»‹›([{<¿¡?!,;:。，、；：！？…*_`|>=—–-"
_AFTER: Final = " \t\r\n\"'“”‘’«»‹›)]}>?!,;:.。，、；：！？…*_`|=—–-"
_ELISION: Final = re.compile(r"^(?:[cdjlmnst]|qu|jusqu|lorsqu)['’](?=\w)", re.IGNORECASE)
_POSSESSIVE: Final = re.compile(r"(?<=\w)['’]s$", re.IGNORECASE)
_SYMBOL: Final = re.compile("[^\\W_]|[\u2190-\u2bff\U0001f000-\U0001faff]")

_CHINESE_TALK_SET: Final = frozenset(CHINESE_TALK)
_CHINESE_CUT: Final = re.compile(
    "|".join(sorted({*CHINESE_FUNCTION, *CHINESE_TALK}, key=lambda words: (-len(words), words)))
)


@dataclass(frozen=True, slots=True)
class Topic:
    """The words of a question worth searching for, in order, at most twelve of 80 characters; none for "who am I?".

    weak: they are only words about talking and remembering ("note", "week"), for want of better ones.
    """

    words: tuple[str, ...]
    weak: bool = False


def language_of(text: str) -> Language:
    """Return the language of a message as far as it shows; English when it does not."""
    looked = _plain(text)
    if _KANA.search(looked):
        return "en"
    words = _WORD.findall(looked)
    if len(_HAN.findall(looked)) > sum(1 for word in words if not _HAN.search(word)):
        return "zh"
    if sum(1 for word in words if _CYRILLIC.search(word)) * 2 > len(words):
        return "en" if _OTHER_CYRILLIC.search(looked) else "ru"
    folded = [fold(word) for word in words]
    lowered = looked.casefold()
    best: Language = "en"
    most = 0
    candidates: tuple[Language, ...] = ("en", "de", "fr", "es")
    for language in candidates:
        lexicon = LEXICA[language]
        small = [word for word in folded if word in lexicon.function or word in lexicon.asking or word in lexicon.talk]
        # A letter alone ("y", "n") is a word of some language by chance.
        score = len(small) if any(len(word) > 1 for word in small) else 0
        score += sum(2 for mark in MARKS.get(language, "") if mark in lowered)
        if score > most:
            best, most = language, score
    return best


def asks(text: str) -> bool:
    """Whether a message wants an answer."""
    plain = _plain(text)
    return plain.startswith(("?", "？", "¿")) or _MARK.search(plain) is not None or _opens(plain) or _closes(plain)


def states(text: str) -> bool:
    """Whether a message says something, so that it can serve as an answer; one that only asks does not.

    One without a question mark that is long, has a comma or does not turn its words round may well be a note.
    """
    plain = _plain(text)
    if not asks(text):
        return True
    if plain.startswith(("?", "？")):
        return False
    sentences = [sentence for sentence in _BREAK.split(plain) if sentence.strip()]
    rest = sentences[_opens(plain) : len(sentences) - _closes(plain)]
    if any(_substantial(sentence) for sentence in rest if _MARK.search(sentence) is None):
        return True
    return _MARK.search(plain) is None and _may_note(plain)


def topic(text: str) -> Topic:
    """Reduce a question to what it is about."""
    plain = _plain(text)
    asking = [sentence for sentence in _BREAK.split(plain) if sentence and _MARK.search(sentence)]
    found = _reduce(" ".join(asking)) if asking else Topic(())
    return found if found.words and not found.weak else _reduce(text[:_LOOKED_AT])


def _plain(text: str) -> str:
    return _QUOTED.sub(" ` ", text[:_LOOKED_AT]).strip()


def _substantial(sentence: str) -> bool:
    """Whether a sentence is long enough to say something ("Thanks!" is not)."""
    cjk = sum(len(run) for run in _CJK_RUN.findall(sentence))
    return cjk >= _STATING_WORDS or len(sentence.split()) >= _STATING_WORDS


def _may_note(plain: str) -> bool:
    """Whether an unmarked message that opens like a question may be a note: "What we decided is to wait"."""
    words = _WORD.findall(plain)
    if len(words) >= _NOTE_WORDS or _COMMA.search(plain):
        return True
    turned = len(words) < _STATING_WORDS or fold(words[1]) not in SUBJECTS
    return not turned and language_of(plain) == "en"


def _opens(plain: str) -> bool:
    """Whether the message opens with a question word and is no heading."""
    line = plain.partition("\n")[0].lstrip(_BEFORE)
    if _HEADING.match(line):
        return False
    if line.startswith(CHINESE_OPENINGS):
        return True
    first = _WORD.findall(line[:200])[:2]
    language = language_of(plain)
    if language == "zh" or not first:
        return False
    if _asking(first[0], language):
        return True
    return len(first) > 1 and fold(first[0]) in LEADING and _asking(first[1], language)


def _closes(plain: str) -> bool:
    """Whether the message closes with a Chinese question word."""
    return plain.rstrip(_AFTER).endswith(CHINESE_ENDINGS)


def _asking(word: str, language: Language) -> bool:
    folded = fold(word)
    if folded == "ou":
        return "ù" in word.casefold()  # without its accent the French word is "or"
    return folded in LEXICA[language].asking


def _reduce(text: str) -> Topic:
    language = language_of(text)
    strong: dict[str, str] = {}
    weak: dict[str, str] = {}
    for chunk in text.split():
        for piece in _CJK_RUN.split(chunk):
            if _CJK_RUN.fullmatch(piece):
                for word, talk in _cut(piece):
                    (weak if talk else strong).setdefault(fold(word), word)
                continue
            word = _bare(piece, language)
            kind = _kind(word, language) if _SYMBOL.search(word) else "function"
            if kind != "function":
                (weak if kind == "talk" else strong).setdefault(fold(word), word)
    chosen = list((strong or weak).values())
    if len(chosen) > _MOST_WORDS:
        longest = sorted(range(len(chosen)), key=lambda number: (-len(chosen[number]), number))[:_MOST_WORDS]
        chosen = [chosen[number] for number in sorted(longest)]
    return Topic(tuple(word[:_MOST_LETTERS] for word in chosen), weak=not strong and bool(weak))


def _bare(piece: str, language: Language) -> str:
    """Take a word out of its punctuation, elided articles and the possessive."""
    word = piece.lstrip(_BEFORE).rstrip(_AFTER)
    if language == "fr":
        return _ELISION.sub("", word)
    return _POSSESSIVE.sub("", word) if language == "en" and fold(word) not in LEXICA["en"].asking else word


def _kind(word: str, language: Language) -> Literal["function", "talk", "topic"]:
    """Tell what a word does; one joined by hyphens ("avons-nous") does what the least of its parts does."""
    lexicon = LEXICA["en" if language == "zh" else language]
    whole = fold(word)
    parts = [whole] if whole in lexicon.asking else [part for part in whole.split("-") if part] or [whole]
    if all(part in lexicon.function or part in lexicon.asking for part in parts):
        return "function"
    if all(part in lexicon.function or part in lexicon.asking or part in lexicon.talk for part in parts):
        return "talk"
    return "topic"


def _cut(run: str) -> list[tuple[str, bool]]:
    """Cut a run without spaces into words, each with whether it is about talking; function words fall away."""
    if _KANA.search(run):
        # Japanese: hiragana is nearly always grammar.
        words = [word for word in _HIRAGANA.split(run) if word]
        return [(word, False) for word in words or [run]]
    cut: list[tuple[str, bool]] = []
    start = 0
    for found in _CHINESE_CUT.finditer(run):
        if found.start() > start:
            cut.append((run[start : found.start()], False))
        if found.group() in _CHINESE_TALK_SET:
            cut.append((found.group(), True))
        start = found.end()
    if start < len(run):
        cut.append((run[start:], False))
    return cut
