"""From what is stored to HTML that is safe to show.

Contract: every function returns HTML that holds only the tags and attributes listed here, whatever the input; `plain`
and `marked` show every character as it is. Pure, deterministic, no network. Raw HTML in Markdown is text; images
become links, so that no answer can make the browser fetch something.
Limits: text above `MAX_MARKDOWN` characters is shown as plain text (parsing is not linear in the worst case).
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Final

import nh3
from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence
    from typing import Any

    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token
    from markdown_it.utils import OptionsDict

__all__ = ["MAX_MARKDOWN", "markdown", "marked", "plain"]

MAX_MARKDOWN: Final = 60_000

_CLASS = re.compile(r"language-[A-Za-z0-9+#._-]{1,30}|align-(?:left|center|right)")
_MATCH = re.compile(r"&gt;&gt;&gt;(?!&gt;)(.*?)&lt;&lt;&lt;", re.DOTALL)  # a match is words: it begins with no ">"
_START_DIGITS: Final = 9

_TAGS: Final = (
    *("p", "br", "hr", "blockquote", "pre", "code", "em", "strong", "s", "del", "a", "ul", "ol", "li"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
)


def _allowed_value(tag: str, attribute: str, value: str) -> str | None:
    if attribute == "class":
        return value if _CLASS.fullmatch(value) else None
    if (tag, attribute) == ("ol", "start"):
        return value if value.isdecimal() and len(value) <= _START_DIGITS else None
    return value


_CLEANER = nh3.Cleaner(
    tags=set(_TAGS),
    attributes={"a": {"href", "title"}, "code": {"class"}, "ol": {"start"}, "td": {"class"}, "th": {"class"}},
    attribute_filter=_allowed_value,
    set_tag_attribute_values={"a": {"target": "_blank"}},
    link_rel="noopener noreferrer nofollow",
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
)


def markdown(text: str) -> str:
    """HTML of a Markdown text: CommonMark with tables, strikethrough and bare links."""
    if len(text) > MAX_MARKDOWN:
        return f"<p>{plain(text)}</p>"
    return _CLEANER.clean(_MARKDOWN.render(text))


def plain(text: str) -> str:
    """HTML that shows `text` exactly; the page keeps its line breaks and spaces by style."""
    return html.escape(text, quote=False)


def marked(snippet: str) -> str:
    """HTML of a search snippet, whose matches stand between >>> and <<<."""
    return _MATCH.sub(r"<mark>\1</mark>", plain(snippet))


def _image_as_link(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    token = tokens[index]
    source = str(token.attrs.get("src", ""))
    words = renderer.renderInlineAsText(token.children or [], options, env) or source
    return f'<a href="{html.escape(source)}">{html.escape(words)}</a>'


def _align_by_class(state: StateCore) -> None:
    """The page's policy forbids style attributes; column alignment becomes a class."""
    for token in state.tokens:
        style = str(token.attrs.pop("style", ""))
        if style.startswith("text-align:"):
            token.attrSet("class", "align-" + style.removeprefix("text-align:"))


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": True, "breaks": True})
    parser.enable(["table", "strikethrough", "linkify"])
    if parser.linkify is not None:  # only links with a scheme: `main.py` is a file, not a host in Paraguay
        parser.linkify.set({"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False})
    parser.add_render_rule("image", _image_as_link)
    parser.core.ruler.push("align_by_class", _align_by_class)
    return parser


_MARKDOWN = _parser()
