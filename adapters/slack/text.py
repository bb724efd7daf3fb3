"""Slack's own form of text to the words that people see, and back to text that mentions nobody.

Contract: `readable` undoes Slack's tokens (`<@U1>`, `<#C1|general>`, `<!here>`, links) and its three escapes in one
pass, so that nothing is decoded twice; what a mention becomes is plain text that pings nobody. Words of the text are
never dropped. `escape` is the way back: whatever a text holds, Slack shows it literally.
Limits: pure and synchronous, linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["escape", "mentioned", "readable", "without_mention"]

_TOKEN = re.compile(r"<([^<>]*)>|&(amp|lt|gt);")
_ESCAPE = re.compile(r"&(amp|lt|gt);")
_ESCAPES = {"amp": "&", "lt": "<", "gt": ">"}
_USER = re.compile(r"<@([A-Z0-9]{1,32})(?:\|[^<>]*)?>", re.IGNORECASE)
_ADDRESS_SCHEMES = ("mailto:", "tel:")
#: What stands between a mention at the beginning and what is said.
_AROUND = " \t\r\n\xa0,:"


def escape(text: str) -> str:
    """Return `text` so that Slack shows it as it is."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def mentioned(text: str) -> list[str]:
    """Return the ids of the users that Slack's text mentions, in order, each once."""
    return list(dict.fromkeys(match[1] for match in _USER.finditer(text)))


def readable(text: str, name: Callable[[str], str]) -> str:
    """Return the words of Slack's text; `name` tells the name of a user id, or '' when it is not known."""

    def shown(match: re.Match[str]) -> str:
        if match[2] is not None:
            return _ESCAPES[match[2]]
        token, _, label = match[1].partition("|")
        return _said(token, _decoded(label), name) or match[0]

    return _TOKEN.sub(shown, text)


def without_mention(text: str, user: str) -> tuple[str, bool]:
    """Return Slack's text without mentions of `user` at either end, and whether it is mentioned anywhere.

    A text that is nothing but mentions stays as it is.
    """
    mention = re.compile(rf"<@{re.escape(user)}(?:\|[^<>]*)?>")
    spans = [match.span() for match in mention.finditer(text)]
    start, end = 0, len(text.rstrip())
    for first, last in spans:
        if text[start:first].strip(_AROUND):
            break
        start = last
    for first, last in reversed(spans):
        if last != end or first < start:
            break
        end = len(text[:first].rstrip())
    if start:
        start += len(text[start:]) - len(text[start:].lstrip(_AROUND))
    return text[start:end].strip() or text.strip(), bool(spans)


def _said(token: str, label: str, name: Callable[[str], str]) -> str:
    """Return what a token says."""
    kind, rest = token[:1], token[1:]
    if kind == "@":
        return f"@{label or name(rest) or rest}"
    if kind == "#":
        return f"#{label or rest}"
    if kind == "!":
        command, _, more = rest.partition("^")
        if command == "date":
            return label or rest
        return f"@{label.lstrip('@') or more or command}"
    return _link(_decoded(token), label)


def _link(target: str, label: str) -> str:
    address = next((target.removeprefix(scheme) for scheme in _ADDRESS_SCHEMES if target.startswith(scheme)), target)
    # Slack makes links of bare domains too; the label is then the address without its scheme.
    if not label or label.rstrip("/") in {target.rstrip("/"), re.sub(r"^\w+:/*", "", target).rstrip("/")}:
        return address
    return f"{label} ({address})"


def _decoded(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPES[match[1]], text)
