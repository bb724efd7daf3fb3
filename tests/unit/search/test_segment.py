"""What the index makes of texts: one token per unspaced character, broken runs, and nothing that sticks to words."""

# ruff: noqa: RUF001 - characters that look like others are what is tested

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_store.segment import BREAK, SEGMENTATION, aligned, cap, normal, segment, words
from tests.unit.search.bench import Bench

TOKENIZE = "CREATE VIRTUAL TABLE temp.tokens USING fts5(content, content='', tokenize='unicode61 remove_diacritics 2')"
TERMS = "CREATE VIRTUAL TABLE temp.terms USING fts5vocab(temp, tokens, instance)"

#: Letters, marks, punctuation and symbols that behave differently in tokenizers, in normalising or in case folding.
ALPHABET = st.one_of(
    st.sampled_from("abAB12 _-.,'é\u0301ñßİıΣςσйЙё"),
    st.sampled_from("部署脚本用，。・ーｱﾞアがか\u3099한글한\u30a0々〇"),
    st.sampled_from("กิน\u0e33ລາວခ\u1031ខ្មែរ\u17d2"),
    st.sampled_from("\0\x01\n\t\u00ad\u200b\u200d\ufe0f\ufeff\ue000\uf8ff🤔😀🦄₿①ﬁＡ％…“’"),
    st.characters(exclude_categories=["Cs", "Cn"]),
)
TEXT = st.text(ALPHABET, max_size=40)


class Tokenizer:
    """The index's tokenizer, asked directly."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        bench.foreign(TOKENIZE)
        bench.foreign(TERMS)

    def __call__(self, text: str) -> list[str]:
        """The tokens of a text."""
        connection = self.bench.connection
        connection.execute("INSERT INTO temp.tokens (tokens) VALUES ('delete-all')")
        connection.execute("INSERT INTO temp.tokens (rowid, content) VALUES (1, ?)", (text,))
        rows = connection.execute("SELECT term, offset FROM temp.terms ORDER BY offset").fetchall()
        return [row["term"] for row in rows]


@pytest.fixture(scope="module")
def tokens() -> Iterator[Tokenizer]:
    """The tokenizer."""
    bench = Bench()
    yield Tokenizer(bench)
    bench.close()


def test_unspaced_runs_become_characters_and_a_break(tokens: Tokenizer) -> None:
    """Other scripts stay words; a break stands after each run."""
    assert tokens(segment("用docker部署，好")) == ["用", BREAK, "docker", "部", "署", BREAK, "好", BREAK]


@pytest.mark.parametrize("separator", ["，", "・", " ", "-", "\u30a0", "\u0e34"])
def test_a_phrase_does_not_cross_what_separates(tokens: Tokenizer, separator: str) -> None:
    """Two runs are never taken for one."""
    assert tokens(segment(f"前{separator}後")) == ["前", BREAK, "後", BREAK]


@given(TEXT)
def test_no_text_brings_in_the_break(text: str) -> None:
    """As many breaks as runs, whatever private-use characters a text has."""
    segmented = segment(text)
    pieces = segment(text.replace(BREAK, " "))
    assert segmented == pieces


@given(TEXT)
def test_normalised_text_has_the_same_tokens(tokens: Tokenizer, text: str) -> None:
    """The short way for plain text gives what the long way gives."""
    assert tokens(segment(text)) == tokens(segment(unicodedata.normalize("NFKC", text)))


@given(st.text(st.sampled_from("aé1 部署ア・ーกิน한ñß-'_\u0301\u0323"), max_size=40))
def test_words_are_the_tokens_of_the_index(tokens: Tokenizer, text: str) -> None:
    """So that a text can be judged before the index has it."""
    assert words(text).split() == tokens(segment(text))


@given(TEXT)
def test_segmenting_keeps_nothing_that_the_tokenizer_would_cut_short(text: str) -> None:
    """NUL ends texts in places; the index never sees one."""
    assert "\0" not in segment(text)


def test_every_character_of_unspaced_scripts_is_one_token(tokens: Tokenizer) -> None:
    """Samples of all blocks, the rare planes included."""
    blocks = [(0x3041, 0x3096), (0x30A1, 0x30FA), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3)]
    blocks += [(0x20000, 0x2A6DF), (0x30000, 0x3134A), (0x0E01, 0x0E30), (0x1780, 0x17A2), (0x1000, 0x1020)]
    for first, last in blocks:
        sample = [chr(code) for code in range(first, last + 1, 97)]
        assert tokens(segment("".join(sample))) == [*sample, BREAK]


@given(TEXT, TEXT, TEXT)
def test_folding_a_part_folds_like_the_whole(before: str, part: str, after: str) -> None:
    """A literal is found in its text: nothing folds by looking at its neighbours, short of composing with them."""
    joined = unicodedata.normalize("NFKC", f"{before} {part} {after}")
    assert normal(part).strip() in normal(joined)


@given(TEXT)
def test_aligned_text_keeps_its_positions(text: str) -> None:
    """Each character folds to one character in its place."""
    if aligned(text):
        assert normal(text) == "".join(normal(character) for character in text)
        assert len(normal(text)) == len(text)


def test_case_width_and_typographic_variants_are_one(tokens: Tokenizer) -> None:
    """What looks the same is the same."""
    assert normal("ＤＯＣＫＥＲ") == normal("docker") == "docker"
    assert normal("ﾃｽﾄ") == "テスト"
    assert normal("ΟΔΟΣ") == normal("οδος") == normal("οδοσ")
    assert normal("İstanbul") == "istanbul"
    assert tokens(segment("Café")) == tokens(segment("Cafe\u0301")) == ["cafe"]
    assert tokens(segment("за\u0301мок")) == ["замок"]


def test_long_text_keeps_head_and_tail() -> None:
    """Cutting takes the middle."""
    assert cap("x" * 10, 6, 4) == "x" * 10
    assert cap("head" + "-" * 100 + "tail", 4, 4) == "head\ntail"


def test_the_segmentation_is_what_it_was() -> None:
    """A change of these tokens needs a new SEGMENTATION, or indexes in the field could no longer forget."""
    sample = "Ünïcode ２０２６ 用docker部署，OK。ﾃｽﾄ・アプリ 한글 กิน don't src/main.py"
    odd = " 🤔great ①ﬁ\0x\u00ady\ue000z за\u0301мок"
    assert SEGMENTATION == 1
    assert segment(sample + odd) == (
        "Ünïcode 2026  用 \ue000 docker 部 署 \ue000 ,OK。 テ ス ト \ue000 ・ ア プ リ \ue000   한 글 \ue000   ก "
        "\ue000 ิ น \ue000  don't src/main.py  great 1fi xy z за\u0301мок"
    )
