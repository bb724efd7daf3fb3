"""Small wording: total, and without anything that acts on a terminal."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.output import as_json
from gateway.phrases import age, amount, clock, entrance, folded, harmless, inert, one_line, plural

ANY_TEXT = st.text(st.characters())
ANY_VALUE = st.recursive(
    ANY_TEXT | st.none() | st.booleans() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
)
TURNING = {"\u061c", "\u200e", "\u200f", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}


def acts(character: str) -> bool:
    """Whether a terminal or its reader would be misled by a character."""
    return character in TURNING or (unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t")


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1500, "2 KB"),
        (999_499, "999 KB"),
        (999_500, "1.0 MB"),
        (20_000_000, "20.0 MB"),
        (999_960_000, "1.0 GB"),
        (82_248_500_000, "82.2 GB"),
    ],
)
def test_amounts_of_bytes_have_a_unit_that_fits(size: int, words: str) -> None:
    """No free disk is counted in tens of thousands of megabytes."""
    assert amount(size) == words


@given(ANY_TEXT)
def test_nothing_harmless_acts(text: str) -> None:
    """Whatever was said; and once is enough."""
    shown = harmless(text)

    assert not any(acts(character) for character in shown)
    assert harmless(shown) == shown


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])))
def test_plain_text_stays_as_it_is(text: str) -> None:
    """In every script."""
    assert harmless(text) == text


def test_line_ends_of_every_kind_become_newlines() -> None:
    """So that no line can hide another."""
    assert harmless("a\r\nb\rc\x0bd\x0ce\x85f\u2028g\u2029h\ti") == "a\nb\nc\nd\ne\nf\ng\nh\ti"


@given(
    st.recursive(
        ANY_TEXT | st.none() | st.booleans() | st.integers(), lambda of: st.lists(of) | st.dictionaries(ANY_TEXT, of)
    )
)
def test_json_is_valid_and_harmless(value: object) -> None:
    """It means the same, and no character in it acts but those that JSON writes as escapes itself."""
    text = as_json(value)

    assert json.loads(text) == json.loads(json.dumps(value))
    assert not any(acts(character) for character in text if unicodedata.category(character) != "Cs")


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_times_always_have_words(then: float, now: float) -> None:
    """A clock that stepped back, a time that no calendar knows."""
    assert age(min(then, 1e300), max(now, -1e300)) if abs(now - then) < float("inf") else True
    assert clock(then)


def test_ages_are_words() -> None:
    """Now, minutes, hours; the future is now."""
    assert [age(1000 - ago, 1000) for ago in (0, -50, 120, 7200)] == ["now", "now", "2 minutes ago", "2 hours ago"]


@given(ANY_TEXT, st.integers(min_value=2, max_value=80))
def test_one_line_is_one_short_line(text: str, limit: int) -> None:
    """Cut with an ellipsis."""
    line = one_line(text, limit)

    assert len(line) <= limit
    assert "\n" not in line


def test_counts_and_tools() -> None:
    """Singular, plural, names once with their number."""
    assert (plural(1, "message"), plural(2, "message")) == ("1 message", "2 messages")
    assert folded(["look", "find", "look"]) == "3 tool calls: look x2, find"
    assert folded(["look"]) == "1 tool call: look"


def test_inert_text_neither_formats_nor_mentions() -> None:
    """Each sign that could act beside others is escaped, also at the beginning of an item in a list."""
    assert inert("*a* [b](c) @d") == r"\*a\* \[b\](c) @" + "\u2060d"
    assert [inert(text) for text in ("# a", "- a", "+ a", "> a", "1. a")] == [
        r"\# a",
        r"\- a",
        r"\+ a",
        r"\> a",
        r"1\. a",
    ]


def test_inert_text_stays_readable_unrendered() -> None:
    """What cannot act is as it was written: a plain terminal shows it so."""
    for text in ("Garden #2", "deploy_prod.sh {now}", "2 > 1 - 0", "-v", "1.5 or 2)"):
        assert inert(text) == text


def test_entrances_have_the_names_that_people_use() -> None:
    """Ours are words, platforms are names."""
    assert [entrance(source) for source in ("cli", "web", "email", "telegram")] == [
        "terminal",
        "web",
        "e-mail",
        "Telegram",
    ]
