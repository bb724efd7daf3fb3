"""The new words of a mail, apart from the history that it quotes and without a marked signature.

Contract: only what is clearly marked is cut: a signature behind its `-- ` line, and, in an answer, a quote at the very
end with the line that introduces it, or everything below a line or a block of headers that mail programs put above the
mail they answer. Quotes with words between or below them stay: they are what those words are about. Forwarded mails
stay whole. What would leave nothing leaves everything. Pure; linear in the length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["divided", "unflowed"]

_SIGNATURE: Final = "-- "
#: `--` without its space counts as the mark of a signature only when few lines follow.
_SHORT_SIGNATURE: Final = 8
_LONGEST_INTRODUCTION: Final = 3
_LONGEST_LINE: Final = 500

_FORWARDED: Final = re.compile(
    r"\s*(?:-{3,}\s*(?:forwarded message|weitergeleitete nachricht|message transféré|mensaje reenviado|"
    r"пересылаемое сообщение|пересланное сообщение|转发的?邮件|転送メッセージ)\b.*|begin forwarded message:\s*)\Z",
    re.IGNORECASE,
)
_ORIGINAL: Final = re.compile(
    r"\s*-{3,}\s*(?:original message|original appointment|ursprüngliche nachricht|message d'origine|"
    r"mensaje original|исходное сообщение|原始邮件|元のメッセージ)\s*-{3,}\s*\Z",
    re.IGNORECASE,
)
_HEADER: Final = re.compile(r"\s*\*?(?P<name>[^\W\d_][\w .'-]{0,20}?)\s?(?:\*:|:\*|:|\uff1a)", re.IGNORECASE)
_FROM: Final = frozenset({"from", "von", "de", "от", "发件人", "差出人"})
_OTHERS: Final = frozenset(
    {
        "sent",
        "date",
        "to",
        "cc",
        "subject",
        "gesendet",
        "datum",
        "an",
        "betreff",
        "envoyé",
        "à",
        "objet",
        "enviado",
        "para",
        "asunto",
        "assunto",
        "fecha",
        "отправлено",
        "дата",
        "кому",
        "тема",
        "копия",
        "发送时间",
        "收件人",
        "主题",
        "抄送",
        "送信日時",
        "宛先",
        "件名",
        "enviado el",
    }
)
_RULE: Final = re.compile(r"\s*_{8,}\s*\Z")
_COLON: Final = (":", "\uff1a")
_WROTE: Final = re.compile(
    r"\b(?:wrote|schrieb|écrit|escribió|escreveu|scritto|schreef|skrev|napisał|kirjoitti|пишет|написала?|пише)\b"
    r"|写道|寫道|書きました|のメッセージ",
    re.IGNORECASE,
)
_WHEN: Final = re.compile(r"\d{4}|\d{1,2}[:.]\d{2}")


def divided(text: str, *, answer: bool) -> tuple[str, str]:
    """Return what the sender wrote, and the history below it.

    answer: the mail answers another one, so that quotes in it are history.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    forwarded = next((index for index, line in enumerate(lines) if _FORWARDED.match(line[:_LONGEST_LINE])), len(lines))
    kept, tail = lines[:forwarded], lines[forwarded:]
    end = _history(kept) if answer and not tail else len(kept)
    words = "\n".join([*_without_signature(kept[:end]), *tail]).strip()
    return (words, "\n".join(kept[end:]).strip()) if words else (text.strip(), "")


def unflowed(text: str, *, delete_space: bool) -> str:
    """Join the lines that a mail program broke only for old screens (format=flowed)."""
    joined: list[str] = []
    open_line = False
    for line in text.replace("\r\n", "\n").split("\n"):
        quoted = line.startswith(">")
        words = line.removeprefix(" ")
        if open_line and not quoted and words != _SIGNATURE:
            joined[-1] = (joined[-1][:-1] if delete_space else joined[-1]) + words
        else:
            joined.append(words)
        open_line = words.endswith(" ") and words != _SIGNATURE and not quoted
    return "\n".join(joined)


def _without_signature(lines: list[str]) -> list[str]:
    for index, line in enumerate(lines):
        short = line == "--" and len(lines) - index - 1 <= _SHORT_SIGNATURE
        if line == _SIGNATURE or short:
            return lines[:index]
    return lines


def _history(lines: list[str]) -> int:
    """Return the index of the first line of the history; their number where there is none."""
    for index, line in enumerate(lines):
        if _ORIGINAL.match(line[:_LONGEST_LINE]) or _headers_begin(lines[index : index + 8]):
            return index - 1 if index and _RULE.match(lines[index - 1][:_LONGEST_LINE]) else index
    end = len(lines)
    while end and (not lines[end - 1].strip() or lines[end - 1].startswith(">")):
        end -= 1
    if not any(line.startswith(">") for line in lines[end:]):
        return len(lines)
    return end - _introduction(lines[:end])


def _headers_begin(lines: Sequence[str]) -> bool:
    """Tell whether a mail's headers are written out here: who, and at least two of when, to whom, about what."""
    names = [match["name"].lower() if (match := _HEADER.match(line[:_LONGEST_LINE])) else "" for line in lines]
    if not names or names[0] not in _FROM:
        return False
    block = names[: names.index("")] if "" in names else names
    return sum(name in _OTHERS for name in block) >= 2  # noqa: PLR2004


def _introduction(lines: Sequence[str]) -> int:
    """Return how many lines at the end introduce a quote ("On Monday at 10:00 Ann wrote:"), broken or not."""
    for count in range(1, _LONGEST_INTRODUCTION + 1):
        last = lines[-count:]
        if len(last) < count or not last[0].strip():
            break
        joined = " ".join(line[:_LONGEST_LINE] for line in last).rstrip()
        if joined.endswith(_COLON) and _WROTE.search(joined) and _WHEN.search(joined):
            return count
    only = lines[-1][:_LONGEST_LINE].rstrip() if lines else ""
    return int(only.endswith(_COLON) and _WROTE.search(only) is not None and "@" in only)
