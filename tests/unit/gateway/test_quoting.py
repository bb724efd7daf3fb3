"""Quoted text: it shows as it was written and does nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gateway import phrases
from gateway.agents.quoting import block, excerpt, inert
from gateway.phrases import one_line

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
UNSHOWN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\\s"
)

marked_text = st.text(st.sampled_from("`*_{}[]()#+-.!|<>~&;$=:\\/\"'\n\n \tab1"), max_size=40)
any_text = st.text(st.characters(codec=None), max_size=30)


def shown(markdown: str) -> tuple[str, set[str]]:
    """The text that a reader of the Markdown sees, and the kinds of things in it."""
    text, kinds = "", set[str]()
    for token in PARSER.parse(markdown):
        kinds.add(token.type)
        for child in token.children or ():
            kinds.add(child.type)
            text += child.content
    return text, kinds


PLAIN = {"paragraph_open", "inline", "text", "text_special", "softbreak", "hardbreak", "paragraph_close"}
QUOTED = PLAIN | {"blockquote_open", "blockquote_close"}


@given(marked_text | any_text)
def test_inert_text_is_only_text(text: str) -> None:
    """Whatever is written becomes paragraphs of text, and all that can be shown is shown."""
    seen, kinds = shown(inert(text))
    assert kinds <= PLAIN
    assert UNSHOWN.sub("", seen) == UNSHOWN.sub("", text)


@given(marked_text | any_text)
def test_a_text_inside_a_sentence_leaves_the_sentence_as_it_is(text: str) -> None:
    """Whatever else is marked there: its own signs act, the text's do not, and the text is seen as it is."""
    line = one_line(text, 40)
    seen, kinds = shown(f"- {phrases.inert(line)} **“{phrases.inert(line)}”** and _this_ `code`")
    assert kinds <= PLAIN | {
        *("bullet_list_open", "list_item_open", "list_item_close", "bullet_list_close"),
        *("strong_open", "strong_close", "em_open", "em_close", "code_inline"),
    }
    wanted = f"{line}“{line}”andthiscode"
    assert UNSHOWN.sub("", seen).replace("\u2060", "") == UNSHOWN.sub("", wanted).replace("\u2060", "")


@given(marked_text | any_text)
def test_a_quote_cannot_be_left_or_formatted(text: str) -> None:
    """A block quote holds its text and its source as text; nothing inside closes it or formats."""
    seen, kinds = shown(f"before\n\n{block(text, 'the source')}\n\nafter")
    assert kinds <= QUOTED
    assert seen.startswith("before")
    assert seen.endswith("the sourceafter")


def test_a_quote_is_exactly_one_block() -> None:
    """Fences, rules and headings in the text leave one block quote, with the source as its last paragraph."""
    tokens = PARSER.parse(block("```py\nx = 1\n# head\n---\n\n> nested\n- item\n1. one", "src"))
    assert [token.type for token in tokens].count("blockquote_open") == 1
    assert [token.content for token in tokens if token.type == "inline"][-1] == "src"


@pytest.mark.parametrize(
    "text",
    [
        "/opt/my_scripts/deploy-prod.sh --force",
        r"C:\tmp\x",
        "~/bin/run, please",
        "a.b@example.org (Ana) costs $5 = 5 USD",
        "1.5 or 2-3 things, AT&T & Co #123",
        "if a[0] == b[1]: x | y  # 5 * 3 < 20",
    ],
)
def test_paths_and_prose_stay_readable_unrendered(text: str) -> None:
    """What would do nothing anyway is not escaped, so that it can be copied from a plain terminal."""
    assert inert(text) == text


def test_line_breaks_and_indentation_are_kept() -> None:
    """Lines stay lines, with hard breaks; indentation does not become a code block."""
    assert block("def f():\n    pass\n\nend") == "> def f():  \n> \u00a0\u00a0\u00a0\u00a0pass  \n>\n> end"


def test_writing_direction_and_control_characters_are_taken_out() -> None:
    """Nothing invisible turns the text that follows the quote."""
    assert inert("a\u202eb\x00c\x1b[31m\u2066d") == "abc[31md"


def test_many_lines_are_cut() -> None:
    """A quote shows at most fifteen lines and says that there were more."""
    lines = block("\n".join(f"line {number}" for number in range(40))).split("\n")
    assert lines[14] == "> line 14  "
    assert lines[15:] == ["> …"]


def test_an_excerpt_lies_around_the_words() -> None:
    """A long text is cut before and after the first word that matters, between words."""
    text = "lorem ipsum " * 100 + "the Deploy script is here " + "dolor sit " * 100
    cut = excerpt(text, ["deploy", "absent"], 200)
    assert len(cut) <= 200
    assert "the Deploy script is here" in cut
    assert cut.startswith("…")
    assert cut.endswith("…")
    assert set(cut.strip("…").split()) <= set(text.split())


def test_a_short_text_is_its_own_excerpt() -> None:
    """What fits is not touched."""
    assert excerpt("short enough", ["x"], 200) == "short enough"


@given(text=any_text | marked_text, words=st.lists(any_text, max_size=3), limit=st.integers(1, 40))
def test_excerpts_keep_their_limit(text: str, words: list[str], limit: int) -> None:
    """Neither an excerpt nor a line is longer than asked for, and a line is one line."""
    assert len(excerpt(text, words, limit)) <= limit
    line = one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1
