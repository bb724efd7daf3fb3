"""Cutting Markdown: complete, within the limit, and no part with half a block of code."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from adapters.slack.fences import LONGEST_MARK, Code, code_ranges, split_markdown
from adapters.splitting import utf16_costs, utf16_length

LIMIT = 1000
PIECES = st.one_of(
    st.sampled_from(
        [
            "word ",
            "\n",
            "\n\n",
            "```\n",
            "```python\n",
            "~~~~ text\n",
            "~~~\n",
            "> ```\n> quoted\n> ```\n",
            "- ```js\n  item()\n  ```\n",
            "    indented\n",
            "`in a line` ",
            "``a ` b``",
            "`",
            "    x = 1\n" * 90,
            "汉😀",
        ]
    ),
    st.text(st.sampled_from("a` \n>~-"), max_size=20),
    st.sampled_from("ab é").map(lambda character: character * 400),
)
MARKDOWN = st.lists(PIECES, max_size=16).map("".join)


def parts_of(text: str, limit: int = LIMIT) -> list[str]:
    """Return the parts as they would be sent."""
    cuts = split_markdown(Code(text), utf16_costs(text), limit)
    assert cuts is not None
    return [f"{cut.before}{text[cut.start : cut.end]}{cut.after}" for cut in cuts]


def fenced(text: str) -> list[str]:
    """Return the contents of the fenced blocks, as CommonMark sees them."""
    return [token.content for token in MarkdownIt("commonmark").parse(text) if token.type == "fence"]


@given(MARKDOWN)
@settings(max_examples=300)
def test_every_part_is_within_the_limit_and_nothing_is_lost(text: str) -> None:
    """The ranges cover the text without gap or overlap."""
    cuts = split_markdown(Code(text), utf16_costs(text), LIMIT)
    if cuts is None:
        assert any(len(line) > LONGEST_MARK for line in text.split("\n"))
        return

    assert "".join(text[cut.start : cut.end] for cut in cuts) == text
    assert [cut.start for cut in cuts[1:]] == [cut.end for cut in cuts[:-1]]
    for cut in cuts:
        assert 0 < utf16_length(f"{cut.before}{text[cut.start : cut.end]}{cut.after}") <= LIMIT


@given(st.lists(st.sampled_from(["code()\n", "x\n" * 300, "long " * 150 + "\n"]), max_size=8).map("".join))
def test_code_stays_code_in_every_part(code: str) -> None:
    """Each part of a block is a block, in its language, and joined they hold the code."""
    parts = parts_of(f"Before.\n\n```python\n{code}```\n\nAfter.\n")

    blocks = [block for part in parts for block in fenced(part)]
    assert "".join(blocks) == code or re.sub(r"\n", "", "".join(blocks)) == re.sub(r"\n", "", code)
    for part in parts:
        assert part.count("```") % 2 == 0
        assert part.count("```python") == part.count("```") // 2


def test_a_long_block_is_cut_at_lines() -> None:
    """Three hundred lines of code come as blocks of whole lines."""
    code = "".join(f"    print({number})\n" for number in range(300))
    parts = parts_of(f"```python\n{code}```", limit=2000)

    assert len(parts) == 3
    assert all(part.startswith("```python\n") and part.endswith("\n```") for part in parts)
    assert "".join("".join(fenced(part)) for part in parts) == code


def test_no_empty_blocks_are_left_at_a_cut() -> None:
    """A cut that would fall right behind the opening or right before the closing line is moved."""
    opening_late = parts_of("word " * 190 + "\n```python\n" + "y = 2\n" * 60 + "```\n")
    closing_late = parts_of("```\n" + "12345678\n" * 109 + "```\nend")

    assert all(block.strip() for part in opening_late + closing_late for block in fenced(part))


def test_a_block_that_is_never_closed_is_closed() -> None:
    """In the last part, too."""
    parts = parts_of("```\n" + "code\n" * 500)

    assert len(parts) > 2
    assert all(part.count("```") == 2 for part in parts)


@pytest.mark.parametrize(
    ("opening", "inside", "closing"),
    [("> ```sh", "> ls -l", "> ```"), ("- ~~~", "  text", "  ~~~"), ("1. ```js", "   f();", "   ```")],
)
def test_blocks_in_quotes_and_lists_go_on_where_they_are(opening: str, inside: str, closing: str) -> None:
    """The lines that are put in carry the same quote marks or room."""
    parts = parts_of(f"{opening}\n" + f"{inside}\n" * 300 + f"{closing}\n")

    assert len(parts) > 2
    for part in parts[1:]:
        first, last = part.splitlines()[0], part.rstrip("\n").splitlines()[-1]
        assert re.sub(r"[-1.]", " ", opening) == first
        assert last == closing


def test_a_mark_that_nobody_wrote_cannot_be_cut() -> None:
    """A line of hundreds of characters that opens a block has no place in every part."""
    text = f"```{'x' * LONGEST_MARK}\ncode\n```"

    assert split_markdown(Code(text), utf16_costs(text), LIMIT) is None


def test_code_is_found_in_all_its_forms() -> None:
    """Fenced, indented and in a line; a lone backtick opens nothing."""
    text = "a `b` ``c ` d`` e ` f\n\n    g\n\n```\nh\n```\ni `j\n\nk` l"

    assert [text[start:end].strip() for start, end in code_ranges(Code(text))] == [
        "`b`",
        "``c ` d``",
        "g",
        "```\nh\n```",
    ]


@given(MARKDOWN)
def test_ranges_of_code_are_in_order_and_apart(text: str) -> None:
    """So that they can be walked through once."""
    edges = [edge for start, end in code_ranges(Code(text)) for edge in (start, end)]

    assert edges == sorted(edges)
    assert all(0 <= edge <= len(text) for edge in edges)
