"""Markdown to messages that Slack takes: whole code blocks in every part, nobody mentioned, nothing lost.

Contract: every part's `markdown` has at most `MAX_CHARACTERS` characters (those beyond the basic plane count twice, so
that it fits however Slack counts), its code fences are balanced, and it mentions no one: Slack's own `<...>` tokens are
shown as they were written. Joined, the plain forms are the whole answer; only a part that would be nothing but white
space is left out, since Slack refuses it. `pieces` cuts a plain form into messages of plain text.
Limits: pure and synchronous; some seconds per megabyte.

A part's payload: `markdown`, what goes as `markdown_text`; none for what no Markdown can carry.
"""

from __future__ import annotations

import re

import structlog

from adapters.base import OutboundPart
from adapters.slack.fences import Code, code_ranges, split_markdown
from adapters.slack.text import escape
from adapters.splitting import split_ranges, utf16_costs, utf16_length

__all__ = ["MAX_CHARACTERS", "MAX_PLAIN", "pieces", "render"]

MAX_CHARACTERS = 12_000
MAX_PLAIN = 4_000
#: Slack refuses a message without visible text, yet an answer must never vanish.
_NOTHING_TO_SHOW = "(empty message)"
#: No character that a message could carry.
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")
#: Breaks a token without being seen.
_JOINER = "\N{WORD JOINER}"
_TOKEN_IN_CODE = re.compile(r"<(?=@[UWB][A-Z0-9]|#[CDG][A-Z0-9]|!(?:here|channel|everyone|group|subteam|date)\b)")
#: Outside code: addresses in angle brackets, every other `<`, and each `&` that would begin a reference.
_SPECIAL = re.compile(
    r"<(?P<address>https?://[^\s<>|]+)>|<|&(?=(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
)

_log = structlog.get_logger(__name__)


def render(markdown: str) -> list[OutboundPart]:
    """Return the parts of an answer, in order; none only for empty text."""
    if not markdown:
        return []
    source = _UNSENDABLE.sub("\N{REPLACEMENT CHARACTER}", markdown).replace("\r\n", "\n").replace("\r", "\n")
    try:
        parts = _formatted(source)
    except Exception as error:  # noqa: BLE001  (whatever the parser stumbles over, the answer must go out)
        _log.warning("slack_formatting_failed", length=len(source), error=repr(error))
        parts = None
    if parts is None:
        ranges = split_ranges(source, utf16_costs(source), MAX_CHARACTERS)
        parts = [OutboundPart(plain=source[start:end]) for start, end in ranges]
    return [part for part in parts if part.plain.strip()] or [OutboundPart(plain=_NOTHING_TO_SHOW)]


def pieces(plain: str, limit: int = MAX_PLAIN) -> list[str]:
    """Return `plain` as messages of plain text, in Slack's form, each of at most `limit` characters."""
    costs = [utf16_length(escape(character)) for character in plain]
    return [
        escape(plain[start:end]) for start, end in split_ranges(plain, costs, limit) if plain[start:end].strip()
    ] or [_NOTHING_TO_SHOW]


def _formatted(source: str) -> list[OutboundPart] | None:
    code = Code(source)
    written = _written(code)
    cuts = split_markdown(code, [max(1, utf16_length(text)) for text in written], MAX_CHARACTERS)
    if cuts is None:
        return None
    return [
        OutboundPart(
            plain=source[cut.start : cut.end],
            payload={"markdown": f"{cut.before}{''.join(written[cut.start : cut.end])}{cut.after}"},
        )
        for cut in cuts
    ]


def _written(code: Code) -> list[str]:
    """Return for each character of the source what is sent for it."""
    source = code.text
    written = list(source)
    done = 0
    for start, end in code_ranges(code):
        _defuse(source, done, start, written)
        for match in _TOKEN_IN_CODE.finditer(source, start, end):
            written[match.start()] = f"<{_JOINER}"
        done = max(done, end)
    _defuse(source, done, len(source), written)
    return written


def _defuse(source: str, start: int, end: int, written: list[str]) -> None:
    for match in _SPECIAL.finditer(source, start, end):
        if match["address"]:
            written[match.start()] = written[match.end() - 1] = ""
        else:
            written[match.start()] = "&lt;" if match.group() == "<" else "&amp;"
