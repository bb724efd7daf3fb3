"""Where long texts are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapters.splitting import split_ranges, utf16_costs, utf16_length

FAMILY = "👨\u200d👩\u200d👧"


def cut(text: str, limit: int) -> list[str]:
    """Return the parts of `text` of at most `limit` UTF-16 units."""
    return [text[start:end] for start, end in split_ranges(text, utf16_costs(text), limit)]


def test_a_text_that_fits_stays_whole() -> None:
    """Nothing is cut without need, down to the last unit."""
    assert cut("abcde", 5) == ["abcde"]
    assert cut("", 5) == []


def test_a_paragraph_end_is_preferred() -> None:
    """A cut falls between paragraphs when the part before it is half full."""
    assert cut("one two\n\nthree\nfour", 14) == ["one two\n\n", "three\nfour"]


def test_a_line_end_comes_before_a_word_end() -> None:
    """Without a paragraph end in reach, the line is kept whole."""
    assert cut("one two\nthree four", 14) == ["one two\n", "three four"]


def test_words_are_kept_whole() -> None:
    """Without a line end in reach, the cut falls behind white space."""
    assert cut("alpha beta gamma", 13) == ["alpha beta ", "gamma"]


def test_an_early_break_is_not_taken() -> None:
    """A break that would leave the part nearly empty is worse than a cut word."""
    assert cut("a " + "b" * 20, 12) == ["a " + "b" * 10, "b" * 10]


def test_emoji_sequences_and_accents_stay_together() -> None:
    """What people see as one character is not torn."""
    assert cut("abcd" + FAMILY, 10) == ["abcd", FAMILY]
    assert cut("abcd" + "e\u0301", 5) == ["abcd", "e\u0301"]
    assert cut("🇩🇪🇫🇷", 6) == ["🇩🇪", "🇫🇷"]


def test_a_character_sequence_longer_than_a_part_is_cut_all_the_same() -> None:
    """Endless accents on one letter do not stop the splitting."""
    assert "".join(cut("e" + "\u0301" * 20, 8)) == "e" + "\u0301" * 20


@given(st.text(), st.integers(min_value=2, max_value=50))
def test_parts_are_complete_and_short_enough(text: str, limit: int) -> None:
    """Joined parts are the text, no part is empty or too long."""
    parts = cut(text, limit)

    assert "".join(parts) == text
    assert all(0 < utf16_length(part) <= limit for part in parts)
