"""What the built-in agent says, in six languages.

Contract: each sentence is Markdown with at most one place for a text, which the caller has made inert. `is_own` tells
the agent's own confirmations and answers from what others said, by their beginnings; they are therefore unmistakable
and none of them may begin like another agent's answer would.
"""

# ruff: noqa: RUF001 - sentences of other scripts on purpose
from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway.agents.languages import Language

__all__ = ["PHRASES", "Phrases", "is_own", "source_name"]


@dataclass(frozen=True, slots=True)
class Phrases:
    """One language. `{}` stands where a text is put in.

    kept: confirmation with an excerpt. noted: the same without. found: before passages that match the whole question.
    close: before passages that match a part. nothing: with the words looked for. recent: before a list of sessions.
    empty: nothing was ever kept. failed: with the reason. terminal: name of that source.
    """

    kept: str
    noted: str
    found: str
    close: str
    nothing: str
    recent: str
    empty: str
    failed: str
    terminal: str
    web: str


PHRASES: Final[dict[Language, Phrases]] = {
    "en": Phrases(
        kept="Kept: {}",
        noted="Kept.",
        found="I found this:",
        close="Nothing matches all of it; this comes closest:",
        nothing="I found nothing about “{}”.",
        recent="The latest conversations:",
        empty="Nothing has been kept here yet.",
        failed="The search did not work: {}",
        terminal="terminal",
        web="web",
    ),
    "zh": Phrases(
        kept="已记下：{}",
        noted="已记下。",
        found="找到了这些：",
        close="没有完全符合的内容，最接近的是：",
        nothing="没有找到关于“{}”的内容。",
        recent="最近的对话：",
        empty="这里还没有任何记录。",
        failed="搜索失败：{}",
        terminal="终端",
        web="网页",
    ),
    "ru": Phrases(
        kept="Записано: {}",
        noted="Записано.",
        found="Вот что нашлось:",
        close="Целиком не подходит ничего; ближе всего это:",
        nothing="Ничего не нашлось по словам «{}».",
        recent="Последние беседы:",
        empty="Здесь пока ничего не записано.",
        failed="Поиск не удался: {}",
        terminal="терминал",
        web="веб",
    ),
    "de": Phrases(
        kept="Notiert: {}",
        noted="Notiert.",
        found="Das habe ich gefunden:",
        close="Ganz passt nichts; am nächsten kommt:",
        nothing="Ich habe nichts zu „{}“ gefunden.",
        recent="Die letzten Gespräche:",
        empty="Hier ist noch nichts notiert.",
        failed="Die Suche ging nicht: {}",
        terminal="Terminal",
        web="Web",
    ),
    "fr": Phrases(
        kept="C’est noté : {}",
        noted="C’est noté.",
        found="Voici ce que j’ai trouvé :",
        close="Rien ne correspond entièrement ; voici le plus proche :",
        nothing="Je n’ai rien trouvé sur « {} ».",
        recent="Les dernières conversations :",
        empty="Rien n’a encore été noté ici.",
        failed="La recherche a échoué : {}",
        terminal="terminal",
        web="web",
    ),
    "es": Phrases(
        kept="Anotado: {}",
        noted="Anotado.",
        found="Esto es lo que encontré:",
        close="Nada coincide del todo; esto es lo más cercano:",
        nothing="No encontré nada sobre «{}».",
        recent="Las últimas conversaciones:",
        empty="Aquí todavía no hay nada anotado.",
        failed="La búsqueda falló: {}",
        terminal="terminal",
        web="web",
    ),
}

_BEGINNINGS: Final = tuple(
    sentence.partition("{}")[0]
    for words in PHRASES.values()
    for sentence in (
        words.kept,
        words.noted,
        words.found,
        words.close,
        words.nothing,
        words.recent,
        words.empty,
        words.failed,
    )
)


def is_own(text: str) -> bool:
    """Whether an assistant's message is one of these sentences."""
    return text.startswith(_BEGINNINGS)


def source_name(source: str, language: Language) -> str:
    """Return the name of an entrance ("terminal", "Telegram") in a language."""
    words = PHRASES[language]
    return {"cli": words.terminal, "web": words.web}.get(source, source.capitalize())
