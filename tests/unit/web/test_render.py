"""From stored text to HTML that is safe to show."""

from __future__ import annotations

import html
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.web.render import MAX_MARKDOWN, markdown, marked, plain

ALLOWED = {
    *("p", "br", "hr", "blockquote", "pre", "code", "em", "strong", "s", "del", "a", "ul", "ol", "li"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {("a", "href"), ("a", "title"), ("a", "target"), ("a", "rel"), ("ol", "start")} | {
    (tag, "class") for tag in ("code", "td", "th")
}


class _Audit(HTMLParser):
    """Collects what a browser would make of the HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {(tag, name) for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]

    def handle_data(self, data: str) -> None:
        self.text += data


def audit(fragment: str) -> _Audit:
    """Parse a fragment."""
    parser = _Audit()
    parser.feed(fragment)
    parser.close()
    return parser


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "![x](javascript:alert(1))",
    '![x](https://evil.example/pixel.png "t")',
    "<a href='javascript:alert(1)'>x</a>",
    "<javascript:alert(1)>",
    '[x](https://a.example/"onmouseover="alert(1))',
    "```<script>\nalert(1)\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<form action=https://evil.example><input name=token></form>",
    "<base href=https://evil.example>",
    "<!-- --><b onclick=alert(1)>x</b>",
    "[a]: javascript:alert(1)\n\n[a]",
    "[local](/api/sessions)",
    "[hash](#/s/other)",
    "| <script> |\n|---|\n| <img onerror=x> |",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_becomes_harmless(text: str) -> None:
    """No tag, attribute or link beyond the listed ones comes out, whatever goes in."""
    seen = audit(markdown(text))

    assert seen.tags <= ALLOWED
    assert seen.attributes <= ATTRIBUTES
    assert all(link.startswith(("http://", "https://", "mailto:")) for link in seen.links)


PIECES = st.lists(
    st.one_of(st.sampled_from(HOSTILE), st.text(max_size=12), st.sampled_from(list("<>[]()`*_|#\n&\"'\0")))
)


@given(PIECES)
def test_no_combination_gets_through(pieces: list[str]) -> None:
    """The same for anything that can be put together from hostile pieces and odd characters."""
    seen = audit(markdown("".join(pieces)))

    assert seen.tags <= ALLOWED
    assert seen.attributes <= ATTRIBUTES
    assert all(link.startswith(("http://", "https://", "mailto:")) for link in seen.links)


@given(st.text())
@example("a < b && c > d \"quoted\" 'too'")
@example("ok \ud83d end")
def test_plain_text_is_shown_as_it_is(text: str) -> None:
    """What somebody typed is never formatted: unescaped, it is the same text, and it holds no tag."""
    shown = plain(text)

    assert html.unescape(shown) == html.unescape(html.escape(text, quote=False))
    assert "<" not in shown


def test_markdown_is_rendered_as_people_expect() -> None:
    """Headings, emphasis, tables with alignment, code with its language, struck text, line breaks."""
    text = "# T\n\n**b** ~~s~~ `c`\nnext\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```py\nx < 1\n```\n\n3. three"
    shown = markdown(text)

    for expected in (
        "<h1>T</h1>",
        "<strong>b</strong>",
        "<s>s</s>",
        "<code>c</code><br>",
        '<td class="align-right">2</td>',
        '<code class="language-py">x &lt; 1',
        '<ol start="3">',
    ):
        assert expected in shown


def test_images_become_links() -> None:
    """No answer makes the browser fetch something; the description stays readable."""
    shown = markdown("![a chart](https://charts.example/1.png)")

    assert "<img" not in shown
    assert 'href="https://charts.example/1.png"' in shown
    assert ">a chart</a>" in shown


def test_links_open_apart_and_tell_nothing() -> None:
    """A linked page learns neither the address of ours nor gets a handle on it."""
    shown = markdown("see https://docs.example/x, main.py and mail@example.com")

    assert shown.count("<a ") == 1
    assert 'target="_blank"' in shown
    assert "noopener" in shown


def test_a_very_long_text_is_shown_plain() -> None:
    """Above the limit nothing is parsed, and nothing is lost."""
    text = "*" * (MAX_MARKDOWN + 1)

    assert markdown(text) == f"<p>{text}</p>"


def test_matches_are_marked_and_the_rest_is_inert() -> None:
    """The snippet's own markup is text; unpaired markers stay visible."""
    assert marked("<b> >>>hit<<< & >>>two<<<") == "&lt;b&gt; <mark>hit</mark> &amp; <mark>two</mark>"
    assert marked("<i>>>>hit<<<</i>") == "&lt;i&gt;<mark>hit</mark>&lt;/i&gt;"
    assert "<mark>" not in marked("git conflict >>>>>>> theirs")
