"""Markdown to the two forms of a mail."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.email.formatting import MAX_CHARACTERS, render

TAGS = {
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


class Tags(HTMLParser):
    """Collects elements and where they lead."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.leads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.names.add(tag)
        self.leads += [f"{name}={value}" for name, value in attrs if name != "start"]


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**b** *i* `c` ~~s~~", "<p><strong>b</strong> <em>i</em> <code>c</code> <s>s</s></p>"),
        ("# h\n- a\n- b", "<h1>h</h1>\n<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("one\ntwo", "<p>one<br>\ntwo</p>"),
        ("[x](https://e.org)", '<p><a href="https://e.org">x</a></p>'),
        ("https://e.org main.py", '<p><a href="https://e.org">https://e.org</a> main.py</p>'),
        ("<b>raw</b>", "<p>&lt;b&gt;raw&lt;/b&gt;</p>"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
    ],
)
def test_markdown_is_formatted(markdown: str, html: str) -> None:
    """As elsewhere; raw markup is shown."""
    (part,) = render(markdown)

    assert part.plain == markdown
    assert part.payload["html"] == html


@given(st.text(min_size=1))
def test_no_word_is_lost_and_the_same_text_looks_the_same(text: str) -> None:
    """The plain form is what was written."""
    parts = render(text)

    assert "".join(part.plain for part in parts) == text
    assert render(text) == parts


@given(st.text(alphabet="<>\"'&![](): \nhtps/javscrion=alert*_`|-#"))
def test_a_formatted_answer_holds_only_harmless_markup(text: str) -> None:
    """Nothing is fetched and nothing runs when the mail is opened."""
    tags = Tags()
    for part in render(f"{text} ![i](https://e.org/i.png) <script>x</script>"):
        tags.feed(part.payload.get("html", ""))

    assert tags.names <= TAGS
    assert all(lead.startswith(("href=http://", "href=https://", "href=mailto:")) for lead in tags.leads)


def test_only_very_long_answers_are_split() -> None:
    """They go as plain text, and lose nothing; lone surrogates cannot be sent."""
    text = "words and more\n\n" * 20_000
    parts = render(text)

    assert "".join(part.plain for part in parts) == text
    assert all(len(part.plain) <= MAX_CHARACTERS and not part.payload for part in parts)
    assert [part.plain for part in render("a\ud800b")] == ["a\ufffdb"]
