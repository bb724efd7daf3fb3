"""Markdown to messages that Telegram takes: formatted first, split afterwards.

Contract: every part has at most 4,096 UTF-16 units, with and without its entities, and joined the parts are the whole
answer; only a part that would be nothing but white space is left out, since Telegram refuses it. What is shown is what
was written, save the marks of Markdown: HTML, `&` references, `$`, `||` and links to no web address are shown
literally, and if formatting would still swallow a word, or fails, the answer is sent as it was written. A link's
address is part of the plain form.
Limits: pure and synchronous; a second per megabyte.

A part's payload: `entities` (offsets in UTF-16 units) and, where it differs from `plain`, the `text` they belong to.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import structlog
from telegramify_markdown import RenderConfig, convert

from adapters.base import OutboundPart
from adapters.splitting import split_ranges, utf16_costs, utf16_length

__all__ = ["MAX_UNITS", "render"]

MAX_UNITS = 4096
#: Telegram ignores longer addresses, and a part must hold the whole of one.
_LONGEST_LINK = 2000
#: Telegram ignores what a message has more; then the plain form, with every address, is the better one.
_MOST_ENTITIES = 100
#: Telegram refuses a message without visible text, yet an answer must never vanish.
_NOTHING_TO_SHOW = "(empty message)"

_SURROGATE = re.compile("[\ud800-\udfff]")
#: What the formatter would drop or reinterpret although a person wrote it as text: the first character of each match is
#: hidden from it. `]:` would be a reference definition, `](` with anything but an address of the web a dead link.
_LITERAL = re.compile(r"[<&$]|\|(?=\|)|(?<=\|)\||(?<=\]):|(?<=\])\((?!(?:https?|tg)://)", re.IGNORECASE)
_STAND_INS = range(0xE000, 0xF8FF)
#: Written by people, made anew by the formatter: numbers of lists and marks of done tasks.
_REMADE = re.compile(r"^[\s>]*\d{1,9}[.)]|\[[xX]\]", re.MULTILINE)

_log = structlog.get_logger(__name__)


def render(markdown: str) -> list[OutboundPart]:
    """Return the parts of an answer, in order; none only for empty text."""
    if not markdown:
        return []
    source = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", markdown)
    text, entities = _format(source)
    parts = list(_parts(text, entities))
    return parts or [OutboundPart(plain=_NOTHING_TO_SHOW)]


def _format(source: str) -> tuple[str, list[dict[str, Any]]]:
    """Return shown text and entities, or the source itself when formatting fails or would lose words."""
    try:
        text, entities = _convert(source)
    except Exception as error:  # noqa: BLE001  (whatever the formatter stumbles over, the answer must go out)
        _log.warning("telegram_formatting_failed", length=len(source), error=repr(error))
        return source, []
    if not text.strip() or _loses_words(source, text, entities):
        return source, []
    return text, entities


def _convert(source: str) -> tuple[str, list[dict[str, Any]]]:
    """Format, with the literal characters hidden behind stand-ins of the same width."""
    used = set(source)
    free = (chr(code) for code in _STAND_INS if chr(code) not in used)
    stand_ins = {character: next(free) for character in "<&$|:("}
    hidden = _LITERAL.sub(lambda match: stand_ins[match.group()], source)
    back = str.maketrans({stand_in: character for character, stand_in in stand_ins.items()})
    text, entities = convert(hidden, latex_escape=False, config=_plain_symbols())
    shown = [
        {name: value.translate(back) if isinstance(value, str) else value for name, value in entity.to_dict().items()}
        for entity in entities
    ]
    return text.translate(back), shown


def _plain_symbols() -> RenderConfig:
    """Return settings that add no ornaments of their own and fold nothing away."""
    config = RenderConfig.isolated()
    for level in range(1, 7):
        setattr(config.markdown_symbol, f"heading_level_{level}", "")
    config.cite_expandable = False
    return config


def _loses_words(source: str, text: str, entities: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether a letter, digit or other non-ASCII character of the source is found nowhere in the result."""
    kept = Counter(text)
    for entity in entities:
        kept.update(entity.get("url", ""))
        kept.update(entity.get("language", ""))
        if len(entity.get("url", "")) > _LONGEST_LINK:
            return True
    wanted = Counter(_REMADE.sub("", source))
    return any(
        count > kept[character]
        for character, count in wanted.items()
        if (character.isalnum() or not character.isascii()) and not character.isspace()
    )


def _parts(text: str, entities: Sequence[Mapping[str, Any]]) -> Iterator[OutboundPart]:
    units = utf16_costs(text)
    offsets = [0, *accumulate(units)]
    links = _links(text, entities, offsets)
    costs = list(units)
    for last, address in links:
        costs[last] += utf16_length(address)
    ranges = split_ranges(text, costs, MAX_UNITS)
    clipped = _clip(entities, [(offsets[start], offsets[end]) for start, end in ranges])
    plain = _with_addresses(text, ranges, links)
    for (start, end), formatting, written in zip(ranges, clipped, plain, strict=True):
        shown = text[start:end]
        if not shown.strip():
            continue
        payload: dict[str, Any] = {}
        if 0 < len(formatting) <= _MOST_ENTITIES:
            payload["entities"] = formatting
            if written != shown:
                payload["text"] = shown
        yield OutboundPart(plain=written, payload=payload)


def _links(text: str, entities: Sequence[Mapping[str, Any]], offsets: Sequence[int]) -> list[tuple[int, str]]:
    """Return, in order, the index of the last character of each link and the address to write behind it."""
    links = []
    for entity in entities:
        if url := entity.get("url"):
            first = bisect_left(offsets, entity["offset"])
            last = bisect_left(offsets, entity["offset"] + entity["length"]) - 1
            if text[first : last + 1].strip() != url:
                links.append((last, f" ({url})"))
    return sorted(links)


def _with_addresses(text: str, ranges: Sequence[tuple[int, int]], links: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Yield the text of each range with the addresses of the links that end there."""
    waiting = deque(links)
    for start, end in ranges:
        pieces: list[str] = []
        done = start
        while waiting and waiting[0][0] < end:
            last, address = waiting.popleft()
            pieces += (text[done : last + 1], address)
            done = last + 1
        yield "".join([*pieces, text[done:end]])


def _clip(entities: Sequence[Mapping[str, Any]], ranges: Sequence[tuple[int, int]]) -> Iterator[list[dict[str, Any]]]:
    """Yield for each range of units what of the entities lies in it, told from its start."""
    waiting = deque(sorted(entities, key=lambda entity: entity["offset"]))
    open_ones: list[Mapping[str, Any]] = []
    for start, end in ranges:
        while waiting and waiting[0]["offset"] < end:
            open_ones.append(waiting.popleft())
        open_ones = [entity for entity in open_ones if entity["offset"] + entity["length"] > start]
        yield [
            {
                **entity,
                "offset": max(entity["offset"], start) - start,
                "length": min(entity["offset"] + entity["length"], end) - max(entity["offset"], start),
            }
            for entity in open_ones
        ]
