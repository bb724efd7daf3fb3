"""Markdown to what Discord shows, in parts that it takes: nothing too long, nothing torn, nothing lost."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.discord import formatting
from adapters.discord.formatting import MAX_UNITS, render
from adapters.splitting import utf16_length


def shown(markdown: str) -> str:
    """The one part of a short answer."""
    (part,) = render(markdown)
    assert part.payload == {}
    return part.plain


def fences(text: str) -> int:
    """How many fence marks a part holds."""
    return text.count("```")


def test_what_discord_knows_stays_as_it_was_written() -> None:
    """Emphasis, lists, quotations, links, code and three headings."""
    text = (
        "# One\n\n## Two\n### Three\n\n**bold** *it* ~~gone~~ `code`\n\n> said\n\n- a\n  - b\n1. c\n\n"
        "[docs](https://example.org/a_b) https://example.org/x_y_z\n\n```python\nx = 1\n```\nafter"
    )
    assert shown(text) == text


def test_deep_headings_become_the_deepest_there_is() -> None:
    """Discord knows three; closing marks are not text."""
    assert shown("#### Four\n###### Six ##\n> ##### quoted") == "### Four\n### Six\n> ### quoted"
    assert shown("####tag is no heading") == "####tag is no heading"


def test_a_narrow_table_becomes_aligned_code() -> None:
    """Columns keep their width, also with wide characters."""
    table = "| Name | Tally |\n|:--|--:|\n| Ann | 4 |\n| 小明 | 42 |"
    assert shown(f"before\n\n{table}\n\nafter") == (
        "before\n\n```\nName | Tally\n-----|------\nAnn  | 4\n小明 | 42\n```\n\nafter"
    )


def test_a_wide_table_or_one_with_links_becomes_a_list() -> None:
    """Code wraps on a telephone, and a link in it is dead."""
    assert shown("| Page | Why |\n|--|--|\n| [a](https://a.example) | b |") == (
        "- **Page**: [a](https://a.example); **Why**: b"
    )
    long = "word " * 20
    assert shown(f"| A | B |\n|--|--|\n| {long} | x |") == f"- **A**: {long.strip()}; **B**: x"


def test_a_table_with_too_many_cells_is_shown_as_it_was_written() -> None:
    """What a table of Markdown would drop must not be lost."""
    table = "| A |\n|--|\n| one | two |"
    assert shown(table) == f"```\n{table}\n```"


def test_code_that_discord_does_not_know_gets_its_fences() -> None:
    """Tildes, indentation, long fences, and one that was never closed."""
    assert shown("~~~py\nx\n~~~") == "```py\nx\n```"
    assert shown("say\n\n    __init__\n    y\n\nend") == "say\n\n```\n__init__\ny\n```\n\nend"
    assert shown("```py\nx = 1") == "```py\nx = 1\n```"
    assert shown("````\na\n```\nb\n````") == "```\na\n`\u200b``\nb\n```"


def test_what_follows_the_language_is_kept_before_the_code() -> None:
    """Discord would show it as the first line of the code, or take it for no language at all."""
    assert shown('```python title="x.py"\nx\n```') == 'title="x.py"\n```python\nx\n```'
    assert shown("```{.r .lines}\nx\n```") == "{.r .lines}\n```\nx\n```"


def test_code_in_lists_and_quotations_stays_there() -> None:
    """The marks of the list or quotation are around it on every line."""
    text = "- item\n  ```sh\n  ls\n  ```\n\n> ```js\n> code\n> ```"
    assert shown(text) == text


def test_images_are_links_and_nothing_is_hidden() -> None:
    """Two bars would hide what stands between them; three arrows would quote the rest of the message."""
    assert shown("![a cat](https://x.example/c.png)") == "[a cat](https://x.example/c.png)"
    assert shown("![](https://x.example/c.png)") == "https://x.example/c.png"
    assert shown("a || b || c") == r"a \|\| b \|\| c"
    assert shown("`a || b || c`") == "`a || b || c`"
    assert shown(">>> print(1)\nmore") == "\\>>> print(1)\nmore"


def test_a_long_block_of_code_is_closed_and_opened_again() -> None:
    """Each part is whole code with its language; put together, not a line is missing."""
    lines = [f"    line_{number} = {number}  # a comment" for number in range(300)]
    parts = [part.plain for part in render("Here:\n\n```python\n" + "\n".join(lines) + "\n```\nThat was it.")]

    assert len(parts) > 4
    assert all(utf16_length(part) <= MAX_UNITS and fences(part) == 2 for part in parts)
    assert all(part.startswith("```python\n") for part in parts[1:])
    assert all(part.endswith("```") for part in parts[:-1])
    code = [line for part in parts for line in part.splitlines() if line.startswith("    line_")]
    assert code == lines
    assert parts[-1].endswith("\nThat was it.")


def test_quoted_code_is_opened_again_inside_the_quotation() -> None:
    """The rest would otherwise stand outside of it."""
    text = "> ```sh\n" + "\n".join(f"> echo {number:04}" for number in range(300)) + "\n> ```"
    parts = [part.plain for part in render(text)]
    assert all(part.startswith("> ```sh\n") and part.endswith("> ```") for part in parts)
    assert [line for part in parts for line in part.splitlines() if "echo" in line] == text.splitlines()[1:-1]


def test_no_part_begins_or_ends_with_an_empty_block() -> None:
    """A cut right behind the opening mark or right before the closing one leaves nothing of it."""
    for fill in range(MAX_UNITS - 60, MAX_UNITS):
        for part in render("a" * fill + "\n```py\nx = 1\n```\n" + "b" * 100):
            assert "```py\n```" not in part.plain
            assert "```py\n\n```" not in part.plain
            assert fences(part.plain) % 2 == 0


@pytest.mark.parametrize(
    "text",
    ["a" * 4095 + "😀", "😀" * 5000, "!" * 4096, "word " * 3000, "👨‍👩‍👧‍👦" * 700, "x" * 1999 + "\n\n" + "y" * 2000],
)
def test_long_texts_are_cut_and_whole(text: str) -> None:
    """No part over the limit in UTF-16 units, no family torn, nothing missing."""
    parts = [part.plain for part in render(text)]
    assert all(0 < utf16_length(part) <= MAX_UNITS for part in parts)
    assert "".join(parts) == text
    if "👦" in text:
        assert all(part.endswith("👦") for part in parts)


def test_links_are_not_cut() -> None:
    """Half an address leads nowhere."""
    link = "[the page](https://example.org/" + "p" * 300 + ")"
    parts = [part.plain for part in render("words " * 330 + link + " more" * 100)]
    assert sum(link in part for part in parts) == 1


def test_an_answer_never_vanishes() -> None:
    """Discord refuses a message without visible text."""
    assert render("") == []
    assert [part.plain for part in render(" \n\t\n")] == ["(empty message)"]
    assert render("a\ud800b")[0].plain == "a\N{REPLACEMENT CHARACTER}b"


def test_what_cannot_be_formatted_goes_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stumbling parser must not keep an answer back."""

    def stumble(source: str) -> None:
        raise RecursionError(source)

    monkeypatch.setattr(formatting, "pieces", stumble)
    assert shown("**kept** #### too") == "**kept** #### too"


WORDS = st.sampled_from(
    ["word", "a_b", "**bold**", "`code`", "小明", "😀", "||", "[l](https://e.x/y)", "é", "|", "~~~", "#"]
)
BLOCKS = st.one_of(
    st.lists(WORDS, min_size=1, max_size=120).map(" ".join),
    st.lists(WORDS, min_size=1, max_size=60).map("\n".join),
    st.lists(WORDS, max_size=200).map(lambda words: "```python\n" + "\n".join(words) + "\n```"),
    st.lists(WORDS, max_size=30).map(lambda words: "> ```\n" + "".join(f"> {word}\n" for word in words) + "> ```"),
    st.lists(WORDS, max_size=20).map(lambda words: "~~~~\n" + "\n".join(words)),
    st.lists(WORDS, max_size=20).map(
        lambda words: "| A | B |\n|--|--|\n" + "".join(f"| {word} | 1 |\n" for word in words)
    ),
    st.lists(WORDS, max_size=20).map(lambda words: "- item\n\n      " + " ".join(words)),
    st.text(max_size=300),
)


def letters(text: str) -> Counter[str]:
    """The letters and digits of a text."""
    return Counter(character for character in text if character.isalnum())


@given(st.lists(BLOCKS, max_size=8).map("\n\n".join))
def test_parts_fit_and_lose_nothing(markdown: str) -> None:
    """Whatever the answer: each part fits, has whole code, is visible, and no letter is lost on the way."""
    parts = [part.plain for part in render(markdown)]
    assert bool(parts) == bool(markdown)
    assert all(part.strip() and utf16_length(part) <= MAX_UNITS for part in parts)
    assert not letters(markdown) - letters("\n".join(parts))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("line", ["[" * 120_000, "![[" * 40_000, "# a" + " " * 120_000 + "b"])
def test_marks_that_begin_nothing_do_not_stop_the_process(line: str) -> None:
    """Each of them was looked for to the end of the text, which took minutes for what an agent may well repeat."""
    assert "".join(part.plain for part in render(line)).split() == line.split()
