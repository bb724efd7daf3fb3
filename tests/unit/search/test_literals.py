"""Everyday strings with punctuation: each is found by typing it, and near misses are not."""

# ruff: noqa: RUF001, RUF002 - characters that look like others are what is tested

from __future__ import annotations

import pytest

from tests.unit.search.bench import Bench

BATTERY = {
    "#123": "the ticket #123 is open",
    "src/main.py": "look into src/main.py first",
    "don't": "please don't panic",
    "a@b.example": "write to a@b.example today",
    "error:timeout": "it ended with error:timeout twice",
    "chat-send": "the tool chat-send was called",
    r"C:\tmp\x": r"it lies in C:\tmp\x now",
    "50%": "the disk is at 50% by now",
    "脚本": "上次我们讨论的部署脚本在哪里",
    "docker": "우리는docker를씁니다",
    "🦄": "what a day 🦄 indeed",
    "foo,bar": "values foo,bar given",
    "path/to/file": "under path/to/file there",
    "$HOME": "it uses $HOME there",
    "a|b": "the pattern a|b matches",
    "[x]": "the box [x] is ticked",
    "x=1": "with x=1 it works",
    "~/.ssh": "keys in ~/.ssh only",
    "1/2": "take 1/2 of it",
    "C++": "written in C++ mostly",
    "--dry-run": "start it with --dry-run first",
    "snake_case": "name it snake_case please",
    "v1.2.3": "release v1.2.3 is out",
    "main()": "call main() at the end",
    "=>": "the arrow => points",
    "naïve": "a naïve approach",
    "ﾃｽﾄ": "これはテストです",
}
NEAR_MISSES = [
    "123 tickets",
    "src main py",
    "dont, don t",
    "a b example",
    "error timeout",
    "chat send",
    r"C tmp x",
    "50 percent and 150 more",
    "脚。本",
    "dockers",
    "foo bar",
    "path to file",
    "HOME",
    "x 1",
    "ssh",
    "1 2",
    "C",
    "dry run",
    "snake case",
    "v1 2 3",
    "main",
]


@pytest.fixture
def battery(bench: Bench) -> Bench:
    """All strings and their near misses, one message each."""
    bench.session()
    for text in [*BATTERY.values(), *NEAR_MISSES]:
        bench.add(text)
    return bench


@pytest.mark.parametrize("literal", BATTERY)
def test_a_literal_finds_its_message_alone(battery: Bench, literal: str) -> None:
    """Typed as it stands, a string finds the message that has it and none that nearly has it."""
    assert [battery.value("SELECT content FROM messages WHERE id = ?", hit) for hit in battery.found(literal)] == [
        BATTERY[literal]
    ]


@pytest.mark.parametrize("literal", BATTERY)
def test_a_literal_is_found_by_searching_for_its_whole_message(battery: Bench, literal: str) -> None:
    """A whole message in quotes finds itself."""
    message = BATTERY[literal]
    (hit,) = battery.search(f'"{message}"')
    assert hit["snippet"] == f">>>{message}<<<"


def test_what_no_index_can_hold_is_found_by_scanning_and_says_so(battery: Bench) -> None:
    """Emoji and lone punctuation are found in the newest messages; such hits are approximate."""
    assert [hit["approximate"] for hit in battery.search("🦄")] == [True]
    assert [hit["approximate"] for hit in battery.search("=>")] == [True]
    assert [hit["approximate"] for hit in battery.search("src/main.py")] == [False]


def test_a_word_beside_an_emoji_needs_both(battery: Bench) -> None:
    """The index answers for the word, the text for the emoji."""
    (unicorn,) = battery.found("🦄")
    assert battery.found("day 🦄") == [unicorn]
    assert battery.found("today 🦄") == []
    assert unicorn not in battery.found("day NOT 🦄")


def test_a_word_is_found_with_an_emoji_stuck_to_it(bench: Bench) -> None:
    """Symbols are no letters, also those that are younger than the tokenizer."""
    bench.session()
    ids = [bench.add(f"great{symbol}") for symbol in ("🤔", "\uf8ff", "⭐", "🫠", "₿")]
    assert bench.found("great") == ids[::-1]


def test_typographic_quotes_are_the_same_as_typed_ones(bench: Bench) -> None:
    """Telephones write don’t and “phrase”, keyboards don't and "phrase"."""
    bench.session()
    curly, straight = bench.add("we don’t know"), bench.add("we don't know")
    assert bench.found("don't") == bench.found("don’t") == [straight, curly]
    assert bench.found("“we don't”") == [straight, curly]


def test_invisible_characters_do_not_hide_a_word(bench: Bench) -> None:
    """Soft hyphens, zero-width spaces and the like are not typed by who searches."""
    bench.session()
    found = bench.add("the de\u00adploy\u200bment \ufeffscript")
    assert bench.found("deployment script") == [found]
    assert bench.search("deployment")[0]["snippet"] == "the >>>de\u00adploy\u200bment<<< \ufeffscript"


def test_a_part_of_a_word_is_found_when_nothing_has_the_word(bench: Bench) -> None:
    """Where the index has no answer the newest messages are scanned, and the hits say so."""
    bench.session()
    inside = bench.add("the redeployment went well")
    (hit,) = bench.search("deploy")
    assert (hit["id"], hit["approximate"], hit["snippet"]) == (inside, True, "the re>>>deploy<<<ment went well")
    word = bench.add("deploy it")
    assert [(hit["id"], hit["approximate"]) for hit in bench.search("deploy")] == [(word, False)]
