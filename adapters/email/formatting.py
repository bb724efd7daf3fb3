"""Markdown to the two forms of a mail.

Contract: joined, the plain forms of the parts are the whole answer as it was written: Markdown reads well as it stands.
The formatted form holds only harmless markup, whatever the answer says: no raw HTML, no images, nothing that is fetched
when the mail is opened. Only very long answers are split; then they go as plain text, since a table or a listing that
is torn in two cannot be formatted.
Limits: `MAX_CHARACTERS` per part; answers above `MAX_MARKDOWN` characters are not formatted. Pure and synchronous.

A part's payload: `html`, the formatted form, if there is one.
"""

from __future__ import annotations

import re
from typing import Final

import nh3
import structlog
from markdown_it import MarkdownIt

from adapters.base import OutboundPart
from adapters.splitting import split_ranges

__all__ = ["MAX_CHARACTERS", "render"]

MAX_CHARACTERS: Final = 100_000
MAX_MARKDOWN: Final = 60_000

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_TAGS: Final = frozenset(
    {
        "p",
        "br",
        "hr",
        "blockquote",
        "pre",
        "code",
        "em",
        "strong",
        "s",
        "del",
        "a",
        "ul",
        "ol",
        "li",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
)

_log = structlog.get_logger(__name__)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": True, "breaks": True})
    parser.enable(["table", "strikethrough", "linkify"])
    parser.disable("image")
    if parser.linkify is not None:  # only links with a scheme: `main.py` is a file, not a host
        parser.linkify.set({"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False})
    return parser


_MARKDOWN: Final = _parser()
_CLEANER: Final = nh3.Cleaner(
    tags=set(_TAGS),
    attributes={"a": {"href"}, "ol": {"start"}},
    link_rel=None,
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
)


def render(markdown: str) -> list[OutboundPart]:
    """Return the parts of an answer, in order; none only for empty text."""
    if not markdown:
        return []
    source = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", markdown)
    if len(source) > MAX_CHARACTERS:
        return [
            OutboundPart(source[start:end]) for start, end in split_ranges(source, [1] * len(source), MAX_CHARACTERS)
        ]
    html = _formatted(source)
    return [OutboundPart(source, {"html": html} if html else {})]


def _formatted(source: str) -> str | None:
    if len(source) > MAX_MARKDOWN:
        return None
    try:
        return _CLEANER.clean(_MARKDOWN.render(source)).strip() or None
    except Exception as error:  # noqa: BLE001  (whatever the formatter stumbles over, the answer must go out)
        _log.warning("email_formatting_failed", length=len(source), error=repr(error))
        return None
