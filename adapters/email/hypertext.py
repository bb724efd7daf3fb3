"""HTML mails as plain text.

Contract: `plain_of` returns the words that a reader would see, one block per line, quotes as `> ` lines, links with
their address behind the words, list items with a dash; what is not shown (styles, scripts, heads) is left out. It never
raises, whatever the markup. Pure and synchronous, linear in the length.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

__all__ = ["plain_of"]

_DEEPEST_QUOTE: Final = 8
_HIDDEN: Final = frozenset({"script", "style", "head", "title", "template", "noscript", "object", "svg"})
_BLOCKS: Final = frozenset(
    {
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "dd",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "html",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    }
)
#: Blocks with an empty line before and after them.
_APART: Final = frozenset({"blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "ol", "p", "pre", "table", "ul"})
_WHITE: Final = re.compile(r"[ \t\n\r\f]+")
_NO_WORDS: Final = {ord(character): None for character in "\u200b\u200c\u2060\ufeff\u00ad"}


def plain_of(html: str) -> str:
    """Return the text of an HTML document or fragment."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.text()


class _Reader(HTMLParser):
    """Collects lines while the parser walks over the markup."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._lines: list[str] = []
        self._words: list[str] = []
        self._hidden = 0
        self._quote = 0
        self._pre = 0
        self._gap = False
        self._links: list[tuple[str, int]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        if tag in _HIDDEN:
            self._hidden += 1
            return
        if tag == "br":
            self._end_line(always=True)
        elif tag in _BLOCKS:
            self._block(tag)
        if tag == "blockquote":
            self._quote += 1
        elif tag == "pre":
            self._pre += 1
        elif tag == "li":
            self._words.append("- ")
        elif tag == "a":
            self._links.append((dict(attrs).get("href") or "", len(self._words)))
        elif tag == "img":
            self._words.append(dict(attrs).get("alt") or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element that is closed at once; only real elements of that kind count."""
        if tag in {"br", "hr", "img"}:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        """Close an element; ends without a beginning do nothing."""
        if tag in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
            return
        if tag == "a" and self._links:
            self._end_link()
        elif tag in _BLOCKS:
            self._block(tag)
        if tag == "blockquote":
            self._quote = max(0, self._quote - 1)
        elif tag == "pre":
            self._pre = max(0, self._pre - 1)

    def handle_data(self, data: str) -> None:
        """Take words."""
        if self._hidden:
            return
        if not self._pre:
            self._words.append(_WHITE.sub(" ", data))
            return
        first, *others = data.split("\n")
        self._words.append(first)
        for line in others:
            self._end_line(always=True)
            self._words.append(line)

    def text(self) -> str:
        """Return what was collected."""
        self._end_line()
        return "\n".join(self._lines).strip("\n")

    def _block(self, tag: str) -> None:
        self._end_line()
        self._gap = self._gap or tag in _APART

    def _end_line(self, *, always: bool = False) -> None:
        words = "".join(self._words).translate(_NO_WORDS).replace("\u00a0", " ")
        words = words.rstrip() if self._pre else re.sub(r" {2,}", " ", words).strip()
        self._words.clear()
        self._links = [(address, 0) for address, _ in self._links]
        if not words and not always:
            return
        mark = "> " * min(self._quote, _DEEPEST_QUOTE)
        if self._gap and self._lines and self._lines[-1].strip("> "):
            self._lines.append(mark.rstrip() if self._lines[-1].startswith(">") else "")
        self._gap = False
        self._lines.append((mark + words).rstrip())

    def _end_link(self) -> None:
        address, start = self._links.pop()
        words = "".join(self._words[start:]).strip()
        if words and address.lower().startswith(("http://", "https://")) and words.rstrip("/") != address.rstrip("/"):
            self._words.append(f" ({address})")
