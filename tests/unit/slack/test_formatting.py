"""Markdown to Slack messages: complete, short enough, whole blocks of code, nobody mentioned."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adapters.slack.formatting as formatting_module
from adapters.base import OutboundPart
from adapters.slack.formatting import MAX_CHARACTERS, MAX_PLAIN, pieces, render

TOKENS = ["<!channel>", "<!here|here>", "<@U123ABC>", "<#C123ABC|general>", "<!subteam^S1>", "<https://evil|good>"]
PIECES = st.one_of(
    st.sampled_from(
        [
            *TOKENS,
            *(f"`{token}` " for token in TOKENS),
            "**bold** ",
            "\n\n",
            "> quote\n",
            "```python\nif a < b:\n    pass\n```\n",
            "```\n<!channel> <@U123ABC>\n```\n",
            "```\n",
            "| a | b |\n|---|---|\n| 1 | 2 |\n",
            "[link](https://example.org/a?b=1&c=2)",
            "<https://example.org/x>",
            "List<T> & co &amp; &lt;",
            "    indented <@U123ABC>\n",
            "😀汉",
            "\ud83d\x00",
            "\r\n",
        ]
    ),
    st.text(max_size=30),
    st.characters().map(lambda character: character * 2500),
)
MARKDOWN = st.lists(PIECES, max_size=14).map("".join)
#: What Slack would take for more than text.
LIVE = re.compile(r"<(?:@[UWB][A-Z0-9]|#[CDG][A-Z0-9]|!(?:here|channel|everyone|subteam|date)\b)")


def shown(text: str) -> str:
    """Return what people see of what is sent: references as characters, joiners as nothing."""
    return unescape(text).replace("\N{WORD JOINER}", "")


def essence(text: str) -> str:
    """Return the visible characters; those that no message can carry are shown as replacements."""
    return re.sub(r"\s", "", re.sub("[\x00\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text))


@given(MARKDOWN)
@settings(max_examples=300)
def test_every_part_can_be_sent(markdown: str) -> None:
    """No part is blank or too long in either form, and none mentions anybody."""
    for part in render(markdown):
        assert part.plain.strip()
        sent = part.payload.get("markdown", "x")
        assert sent.strip()
        assert len(sent.encode("utf-16-le")) // 2 <= MAX_CHARACTERS
        assert LIVE.search(sent) is None
        for piece in pieces(part.plain):
            assert piece.strip()
            assert len(piece.encode("utf-16-le")) // 2 <= MAX_PLAIN
            assert "<" not in piece
            assert ">" not in piece


@given(MARKDOWN)
@settings(max_examples=300)
def test_nothing_gets_lost(markdown: str) -> None:
    """The plain forms are the answer, and so are the pieces that they are sent in."""
    parts = render(markdown)

    assert bool(parts) == bool(markdown)
    if markdown.strip():
        assert essence("".join(part.plain for part in parts)) == essence(markdown)
        for part in parts:
            whole = "".join(pieces(part.plain))
            back = whole.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
            assert essence(back) == essence(part.plain)


@given(st.text(alphabet=st.sampled_from("ab é汉😀<&\n"), min_size=1, max_size=30_000))
@settings(max_examples=30)
def test_plain_words_come_through_in_order(text: str) -> None:
    """What is shown of the formatted parts, joined, is the text; only white space may differ."""
    parts = render(text)

    if text.strip():
        assert essence("".join(shown(part.payload["markdown"]) for part in parts)) == essence(text)


@given(MARKDOWN)
def test_rendering_is_deterministic(markdown: str) -> None:
    """The same answer always gives the same parts, also after a restart between two of them."""
    assert render(markdown) == render(markdown)


def test_a_long_text_with_brackets_and_ampersands_is_split_after_formatting() -> None:
    """Fourteen thousand characters; the limit holds for what is sent, which is longer than what was written."""
    text = "if a < b && c > d: print(e) " * 500
    parts = render(text)

    assert len(parts) == 2
    assert all(len(part.payload["markdown"]) <= MAX_CHARACTERS for part in parts)
    assert "".join(part.plain for part in parts) == text
    assert "".join(shown(part.payload["markdown"]) for part in parts) == text


def test_a_long_block_of_code_is_a_block_in_every_part() -> None:
    """With its language, and complete."""
    code = "".join(f"    print('{number:050}')\n" for number in range(500))
    parts = render(f"Look:\n\n```python\n{code}```\n")

    assert len(parts) > 2
    assert all(part.payload["markdown"].count("```") == 2 for part in parts)
    assert sum(part.payload["markdown"].count("```python\n") for part in parts) == len(parts)
    assert sum(part.payload["markdown"].count("print(") for part in parts) == 500


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_of_slack_are_shown_as_written(token: str) -> None:
    """An answer that quotes somebody pings nobody, and shows where a link leads."""
    (part,) = render(f"You said {token} yesterday.")

    assert part.payload["markdown"] == f"You said {token.replace('<', '&lt;')} yesterday."
    assert pieces(part.plain) == [f"You said {token.replace('<', '&lt;').replace('>', '&gt;')} yesterday."]


def test_code_is_changed_only_where_it_would_ping() -> None:
    """Markup, comparisons and generics in code stay as they are, so that they can be copied."""
    (part,) = render("`a < b` and `<!DOCTYPE html>` &c.\n\n```\nList<T> &amp; <!channel>\n```\n")

    assert part.payload["markdown"] == (
        "`a < b` and `<!DOCTYPE html>` &c.\n\n```\nList<T> &amp; <\N{WORD JOINER}!channel>\n```\n"
    )


def test_references_and_addresses_in_brackets() -> None:
    """A reference is shown as it was written; an address in angle brackets is a link in Slack without them."""
    (part,) = render("AT&amp;T & co: <https://example.org/?a=1&b=2>")

    assert part.payload["markdown"] == "AT&amp;amp;T & co: https://example.org/?a=1&b=2"


def test_white_space_is_answered_visibly() -> None:
    """An answer without a visible character still arrives; no text at all gives no part."""
    assert [part.plain for part in render(" \n\t ")] == ["(empty message)"]
    assert render("") == []


def test_what_no_markdown_can_carry_goes_as_plain_text() -> None:
    """A block whose first line is longer than any language's name cannot be opened again."""
    text = f"```{'x' * 13_000}\ncode\n```"
    parts = render(text)

    assert len(parts) == 2
    assert all(part.payload == {} for part in parts)
    assert "".join(part.plain for part in parts) == text


def test_a_short_answer_is_one_part() -> None:
    """As it was written."""
    assert render("**Done.** See [it](https://example.org/a?b=1&c=2)") == [
        OutboundPart(
            plain="**Done.** See [it](https://example.org/a?b=1&c=2)",
            payload={"markdown": "**Done.** See [it](https://example.org/a?b=1&c=2)"},
        )
    ]


def test_failing_formatter_sends_what_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the parser does, the answer goes out."""

    def broken(_: str) -> None:
        raise IndexError("parser")

    monkeypatch.setattr(formatting_module, "Code", broken)

    assert render("**still here**") == [OutboundPart(plain="**still here**")]
