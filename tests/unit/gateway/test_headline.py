"""Titles made from the words of a conversation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.headline import headline, tidied
from session_store.titles import MAX_TITLE, clean_title, one_line

# ruff: noqa: RUF001 - titles in other scripts


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("The deploy script lives in ops/deploy.sh and needs STAGE=prod", "The deploy script lives in ops/deploy.sh"),
        ("hi", "hi"),
        ("Release notes are missing. Please add them.", "Release notes are missing"),
        ("Why? The build of yesterday is red and nobody knows it", "Why? The build of yesterday is red"),
        ("上次那个 Docker 部署问题继续一下，怎么办？", "上次那个 Docker 部署问题继续一下"),
        ("東京の天気はどうですか。明日は？", "東京の天気はどうですか"),
        ("Почему не собирается проект после обновления?", "Почему не собирается проект после обновления"),
        ("```python\nx = 1\n```\nwhy does this fail?", "why does this fail"),
        ("```python\nx = 1\n```", "python"),
        ("# Heading\n\n- first\n- second", "Heading"),
        ("[the page](https://example.com/x) does not load", "the page does not load"),
        ("see https://example.com/a/b/c for what is wrong", "see for what is wrong"),
        ("https://example.com/a", "https://example.com/a"),
        ("v1.2.3 does not start on a Mac", "v1.2.3 does not start on a Mac"),
        ("😀😀", "😀😀"),
        ("\u200b\u200b", ""),
        ("", ""),
        ("a" * 500, "a" * 60),
    ],
)
def test_the_first_words_that_say_something(text: str, title: str) -> None:
    """In their own language, without code, marks and addresses, and no word at the end that only leads on."""
    assert headline(text) == title


@given(st.text(max_size=300))
def test_any_text_gives_a_title_that_can_be_stored(text: str) -> None:
    """Or none, if nothing in it is visible."""
    title = headline(text)
    assert len(title) <= MAX_TITLE
    assert title == title.strip()
    assert bool(clean_title(title)) == bool(one_line(text))
    assert len(tidied(text)) <= MAX_TITLE


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ('"Fixing the Parser."', "Fixing the Parser"),
        ("Title: Fixing the parser\n\nThis title says", "Fixing the parser"),
        ("\n\n**Fixing the parser**", "Fixing the parser"),
        ("标题：修复解析器。", "修复解析器"),
        ("one two " * 30, ("one two " * 10).strip()),
        ("x" * 200, "x" * 80),
        ("...", ""),
        ("", ""),
    ],
)
def test_what_a_model_writes_is_made_a_title(written: str, title: str) -> None:
    """One line, no quotes, no label, not too long."""
    assert tidied(written) == title
