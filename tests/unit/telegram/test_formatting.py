"""Markdown to Telegram messages: complete, short enough, entities in range."""

from __future__ import annotations

from collections import Counter
from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adapters.telegram.formatting as formatting_module
from adapters.base import OutboundPart
from adapters.telegram.formatting import MAX_UNITS, render

PIECES = st.one_of(
    st.sampled_from(
        [
            "**bold** ",
            "*it*",
            "`code`",
            "\n\n",
            "\n",
            "# Head\n",
            "> quote\n",
            "- item\n",
            "1. one\n1. two\n",
            "- [x] done\n",
            "```python\nif a < b:\n    pass\n```\n",
            "| a | b |\n|---|---|\n| 1 | [l](https://e.org) |\n",
            "[link](https://example.org/a?b=1&c=2)",
            "[](https://example.org/empty)",
            "[dead](docs/a.md)",
            "[note]: words",
            "![picture](https://example.org/p.png)",
            "<div>x</div>\n",
            "List<T>",
            "a || b && $HOME/$PATH",
            "~~gone~~",
            "&amp; &lt;",
            "$x^2$",
            "\\(\\alpha\\)",
            "---\n",
            "😀",
            "👨\u200d👩\u200d👧",
            "汉字",
            "\ud83d",
            "\x00",
            "\ufeff",
        ]
    ),
    st.text(max_size=30),
    st.characters().map(lambda character: character * 700),
)
MARKDOWN = st.lists(PIECES, max_size=12).map("".join)


def units(text: str) -> int:
    """Count as Telegram counts."""
    return len(text.encode("utf-16-le")) // 2


def shown(part: OutboundPart) -> str:
    """Return the text that the entities of a part belong to."""
    text = part.payload.get("text", part.plain)
    assert isinstance(text, str)
    return text


def words(text: str) -> Counter[str]:
    """Count the letters and symbols that must not get lost.

    An x may be the mark of a done task, and lone surrogates are no characters that could be sent.
    """
    return Counter(
        character
        for character in text
        if (character.isalpha() or not character.isascii())
        and not character.isspace()
        and character not in "xX"
        and category(character) != "Cs"
    )


@given(MARKDOWN)
@settings(max_examples=300)
def test_every_part_can_be_sent(markdown: str) -> None:
    """No part is blank or too long, with and without formatting; entities lie inside and cut no character."""
    for part in render(markdown):
        assert part.plain.strip()
        assert units(part.plain) <= MAX_UNITS
        text = shown(part)
        assert text.strip()
        assert units(text) <= MAX_UNITS
        for entity in part.payload.get("entities", []):
            assert entity["length"] > 0
            assert 0 <= entity["offset"] <= entity["offset"] + entity["length"] <= units(text)
            inside = text.encode("utf-16-le")[entity["offset"] * 2 : (entity["offset"] + entity["length"]) * 2]
            assert units(inside.decode("utf-16-le")) == entity["length"]


@given(MARKDOWN)
@settings(max_examples=300)
def test_no_word_gets_lost(markdown: str) -> None:
    """Every letter and symbol that was written is in the plain form of some part."""
    parts = render(markdown)

    assert bool(parts) == bool(markdown)
    assert words(markdown) <= words("".join(part.plain for part in parts) + languages(parts))


def languages(parts: list[OutboundPart]) -> str:
    """Return the languages named for code blocks, which are shown beside the text."""
    return "".join(entity.get("language", "") for part in parts for entity in part.payload.get("entities", []))


@given(st.text(alphabet=st.sampled_from("ab é汉😀\n"), min_size=1, max_size=9000))
def test_plain_words_come_through_in_order(text: str) -> None:
    """Joined parts are the text; only white space may differ."""
    parts = render(text)

    assert "".join("".join(part.plain for part in parts).split()) == "".join(text.split()) or not text.strip()


@given(MARKDOWN)
def test_rendering_is_deterministic(markdown: str) -> None:
    """The same answer always gives the same parts, also after a restart between two of them."""
    assert render(markdown) == render(markdown)


@pytest.mark.parametrize(
    ("markdown", "lengths"),
    [
        ("a" * 4095 + "😀", [4095, 2]),
        ("😀" * 5000, [4096, 4096, 1808]),
        ("!" * 4096, [4096]),
        ("!" * 4097, [4096, 1]),
    ],
)
def test_the_limit_counts_utf16_units_after_formatting(markdown: str, lengths: list[int]) -> None:
    """Neither emoji nor characters that a mark-up would escape make a part too long or too short."""
    parts = render(markdown)

    assert [units(part.plain) for part in parts] == lengths
    assert "".join(part.plain for part in parts) == markdown


def test_formatting_goes_on_in_the_next_part() -> None:
    """A bold text longer than one message is bold in all of them."""
    parts = render("**" + "bold words " * 600 + "end**")

    assert len(parts) == 2
    for part in parts:
        (entity,) = part.payload["entities"]
        assert entity == {"type": "bold", "offset": 0, "length": units(part.plain)}


def test_code_keeps_its_language_over_parts() -> None:
    """A long code block is a code block of its language in each part, and complete."""
    code = "".join(f"    print({number})\n" for number in range(400)).rstrip()
    parts = render(f"```python\n{code}\n```")

    assert len(parts) > 1
    assert "".join(part.plain for part in parts) == code
    assert {(entity["type"], entity["language"]) for part in parts for entity in part.payload["entities"]} == {
        ("pre", "python")
    }


def test_marks_become_entities() -> None:
    """Emphasis is shown, not its marks; offsets are UTF-16 units."""
    (part,) = render("😀 **bold** and `code`")

    assert part.plain == "😀 bold and code"
    assert part.payload == {
        "entities": [{"type": "bold", "offset": 3, "length": 4}, {"type": "code", "offset": 12, "length": 4}]
    }


def test_a_link_keeps_its_address_in_the_plain_form() -> None:
    """The formatted text hides the address, the plain form writes it out."""
    (part,) = render("See [the docs](https://example.org/?a=1&b=2).")

    assert part.payload["text"] == "See the docs."
    assert part.payload["entities"][0]["url"] == "https://example.org/?a=1&b=2"
    assert part.plain == "See the docs (https://example.org/?a=1&b=2)."


def test_addresses_count_for_the_plain_form() -> None:
    """Many links make no plain part too long."""
    address = "https://example.org/" + "p" * 60
    parts = render(f"[word]({address}) " * 90)

    assert len(parts) > 1
    assert all(units(part.plain) <= MAX_UNITS for part in parts)
    assert sum(part.plain.count(address) for part in parts) == 90


@pytest.mark.parametrize(
    "text",
    [
        "vector<int> and <div>shown</div>",
        "cmd || other && export A=$HOME/$PATH",
        "AT&amp;T",
        "[file](src/a.py)",
        "[note]: not a reference",
        "[](https://example.org)",
    ],
)
def test_what_only_looks_like_markup_is_shown(text: str) -> None:
    """Code and links that lead nowhere are words of the answer."""
    (part,) = render(text)

    assert part.plain == text


def test_white_space_is_answered_visibly() -> None:
    """An answer without a visible character still arrives; no text at all gives no part."""
    assert [part.plain for part in render(" \n\t ")] == ["(empty message)"]
    assert render("") == []


def test_more_entities_than_telegram_reads_make_the_part_plain() -> None:
    """Formatting that Telegram would ignore half of is left out as a whole."""
    (part,) = render("**b** c " * 101)

    assert part.payload == {}
    assert part.plain.startswith("b c b c")


def test_failing_formatter_sends_what_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the formatter does, the answer goes out."""

    def broken(*_: object, **__: object) -> None:
        raise IndexError("formatter")

    monkeypatch.setattr(formatting_module, "convert", broken)

    assert render("**still here**") == [OutboundPart(plain="**still here**")]
