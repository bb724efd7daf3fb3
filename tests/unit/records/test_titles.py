"""The rules of titles: what is kept, what is removed, what counts as equal and as a number."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_store import InvalidArgument
from session_store.titles import MAX_TITLE, clean_title, numbered_title, one_line, split_number, title_key

ANY_TEXT = st.text(st.characters(codec=None), max_size=80)


@pytest.mark.parametrize(
    ("given_title", "stored"),
    [
        ("  Fix the build  ", "Fix the build"),
        ("two   words\tand\nlines\r\nhere", "two words and lines here"),
        (None, None),
        ("", None),
        (" \t\n ", None),
        ("a\x00b\x07c\x1bd\x7fe", "abcde"),
        ("a\u0085b", "a b"),
        ("zero\u200bwidth\u2060joined\ufeff", "zerowidthjoined"),
        ("\u202eevil\u202c \u200fmarks\u2066\u2069\u061c", "evil marks"),
        ("a\u2028b\u2029c", "abc"),
        ("object\ufffc note\ufff9\ufffa\ufffb", "object note"),
        ("\x00\u200b\u202e", None),
        ("Deploy 🚀 中文 — naïve «x» #1 50%_", "Deploy 🚀 中文 — naïve «x» #1 50%_"),
        ("lone \ud83d half", "lone \ufffd half"),
        ("x" * 100, "x" * 100),
    ],
)
def test_a_title_is_one_visible_line(given_title: str | None, stored: str | None) -> None:
    """Ends trimmed, whitespace collapsed, what cannot be seen removed, everything else kept."""
    assert clean_title(given_title) == stored


def test_a_title_of_more_than_100_characters_is_refused_with_its_length() -> None:
    """The sentence names both numbers; invisible characters do not count."""
    with pytest.raises(InvalidArgument, match="101 characters; at most 100"):
        clean_title("x" * 101)
    assert clean_title("x" * 100 + "\u200b" * 50) == "x" * 100


@given(ANY_TEXT)
def test_cleaning_is_stable_and_leaves_nothing_invisible(text: str) -> None:
    """A cleaned line is its own cleaned form, storable, on one line and without edge whitespace."""
    line = one_line(text)
    assert one_line(line) == line
    assert line == line.strip()
    assert "  " not in line
    line.encode("utf-8")
    assert not any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in line)


@given(ANY_TEXT)
def test_spelling_form_and_letter_case_make_no_other_title(text: str) -> None:
    """The key is the same for the composed, decomposed, upper- and lower-case forms, and for the key itself."""
    line = one_line(text)
    key = title_key(line)
    assert title_key(unicodedata.normalize("NFD", line)) == key
    assert title_key(unicodedata.normalize("NFC", line)) == key
    assert title_key(key) == key
    assert title_key(line.casefold()) == key


@pytest.mark.parametrize(
    ("title", "parts"),
    [
        ("X #2", ("X", 2)),
        ("X #10", ("X", 10)),
        ("X #2 #3", ("X #2", 3)),
        ("X", ("X", None)),
        ("X #notes", ("X #notes", None)),
        ("X#2", ("X#2", None)),
        ("X # 2", ("X # 2", None)),
        ("X #2b", ("X #2b", None)),
        ("X #٣", ("X #٣", None)),
        ("#2", ("#2", None)),
        ("X #-1", ("X #-1", None)),
    ],
)
def test_only_a_space_a_hash_and_digits_at_the_end_are_a_number(title: str, parts: tuple[str, int | None]) -> None:
    """Everything else belongs to the title."""
    assert split_number(title) == parts


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=MAX_TITLE), st.integers(2, 999_999_999))
def test_a_numbered_title_is_a_title_and_can_be_split_again(text: str, number: int) -> None:
    """It fits the limit, cleaning changes nothing, and it gives its number back."""
    base = clean_title(text)
    if base is None:
        return
    title = numbered_title(base, number)
    assert clean_title(title) == title
    kept, found = split_number(title)
    assert found == number
    assert base.startswith(kept)
