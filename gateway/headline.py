"""A title from the words of a conversation itself, without a model.

Contract: pure; three to seven words of the first sentence that says something, as they stand there, so that the
language is kept; less where less was said. Code, Markdown and addresses give way to words where there are any. '' for a
text without a visible character. `tidied` makes a title of what a model wrote when it was asked for one.
"""

from __future__ import annotations

import re
from typing import Final

from gateway.agents.languages import LEXICA, fold
from session_store.titles import one_line

__all__ = ["headline", "tidied"]

_WORDS: Final = 7
_LEAST_WORDS: Final = 3
_CHARACTERS: Final = 60
#: Of a script without spaces.
_RUN_CHARACTERS: Final = 20
_LEAST_RUN: Final = 4
_LOOKED_AT: Final = 2_000
_TITLE_CHARACTERS: Final = 80

_FENCED: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LINK: Final = re.compile(r"!?\[([^\]\n]{1,200})\]\([^)\s]*\)")
_ADDRESS: Final = re.compile(r"\bhttps?://\S+")
_MARKS: Final = re.compile(r"^[\s>#*+\-=~_`|]+|[*`]+", re.MULTILINE)
_END: Final = re.compile(r"[.!?](?=\s|$)|[\u3002\uff01\uff1f\uff0c]")
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")
_EDGES: Final = (
    " \t.,;:!?\"'()[]{}<>-\u2013\u2014\u2026\u3001\u3002\uff01\uff0c\uff1f\u00ab\u00bb\u201c\u201d\u201e\u300c\u300d"
)
_FUNCTION: Final = frozenset().union(*(lexicon.function for lexicon in LEXICA.values()))
#: What models like to write before a title.
_LABEL: Final = re.compile(r"^(?:title|titel|titre|t\u00edtulo|\u6807\u9898)\s*[:\uff1a]\s*", re.IGNORECASE)


def headline(text: str) -> str:
    """A title made of the beginning of `text`."""
    text = text[:_LOOKED_AT]
    spoken = _ADDRESS.sub(" ", _LINK.sub(r"\1", _FENCED.sub("\n", text)))
    return _of(spoken) or _of(text) or one_line(text)[:_CHARACTERS].rstrip()


def tidied(written: str) -> str:
    """What a model wrote as a title: its first line, without label, quotes, Markdown or full stop."""
    line = next((line for line in written.splitlines() if one_line(line)), "")
    return _cut(_LABEL.sub("", one_line(_MARKS.sub("", line))).strip(_EDGES), _TITLE_CHARACTERS)


def _of(text: str) -> str:
    lines = [line for line in (one_line(line) for line in _MARKS.sub("", text).splitlines()) if line]
    line = next((line for line in lines if any(character.isalnum() for character in line)), next(iter(lines), ""))
    return _few(_sentence(line)).strip(_EDGES) or line[:_CHARACTERS].strip()


def _sentence(line: str) -> str:
    """The beginning of a line up to the end of a sentence, if that is long enough to tell something."""
    for end in _END.finditer(line):
        sentence = line[: end.end()]
        if len(sentence.split()) >= _LEAST_WORDS or len(_UNSPACED.findall(sentence)) >= _LEAST_RUN:
            return sentence
    return line


def _few(sentence: str) -> str:
    """The first words; the last one is not one that only leads to the next."""
    if len(_UNSPACED.findall(sentence)) * 2 > len(sentence):
        return sentence[:_RUN_CHARACTERS]
    words = sentence.split()
    kept: list[str] = []
    for word in words[:_WORDS]:
        if kept and len(" ".join([*kept, word])) > _CHARACTERS:
            break
        kept.append(word)
    while len(kept) > _LEAST_WORDS and len(kept) < len(words) and fold(kept[-1].strip(_EDGES)) in _FUNCTION:
        kept.pop()
    return " ".join(kept)[:_CHARACTERS]


def _cut(title: str, limit: int) -> str:
    """The title within so many characters, cut between words where it can be."""
    if len(title) <= limit:
        return title
    return title[: limit + 1].rpartition(" ")[0].rstrip(_EDGES) or title[:limit]
