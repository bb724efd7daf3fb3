"""Everything that is stored is found by a piece of it: compared with Python's `in`."""

# ruff: noqa: RUF001 - characters that look like others are what is tested

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from session_store.segment import normal
from tests.unit.search.bench import Bench

HAN = "部署脚本用好テスト한글"
WORDS = st.text(st.sampled_from("abcdé"), min_size=1, max_size=4) | st.text(
    st.sampled_from("абвё"), min_size=1, max_size=4
)
RUNS = st.text(st.sampled_from(HAN), min_size=1, max_size=6)
SEPARATORS = st.sampled_from([" ", "，", "・", ", ", " - ", "\n"])
MESSAGE = st.lists(WORDS | RUNS | SEPARATORS, min_size=1, max_size=10).map("".join).filter(lambda text: text.strip())
MESSAGES = st.lists(MESSAGE, min_size=1, max_size=12)


def stored(bench: Bench, messages: list[str]) -> dict[int, str]:
    """The messages by id."""
    bench.session()
    return {bench.add(message): message for message in messages}


@settings(max_examples=60)
@given(messages=MESSAGES, piece=RUNS)
def test_a_piece_of_an_unspaced_run_is_found_exactly(messages: list[str], piece: str) -> None:
    """Neither more nor less than the messages that contain it, for one character as for many."""
    bench = Bench()
    texts = stored(bench, [*messages, f"{piece}。"])
    assert bench.found(piece, limit=100) == [one for one, text in reversed(texts.items()) if piece in text]
    assert not any(hit["approximate"] for hit in bench.search(piece))
    bench.close()


@settings(max_examples=60)
@given(messages=MESSAGES, data=st.data())
def test_any_piece_of_a_message_is_found(messages: list[str], data: st.DataObject) -> None:
    """By the index as words, or by scanning as letters; what is found has the piece."""
    bench = Bench()
    texts = stored(bench, messages)
    message = data.draw(st.sampled_from(messages))
    start = data.draw(st.integers(0, len(message) - 1))
    piece = message[start : data.draw(st.integers(start + 1, len(message)))]
    if piece.strip():
        hits = bench.search(f'"{piece}"', limit=100)
        assert hits
        expected = [one for one, text in reversed(texts.items()) if even(piece) in even(text)]
        if any(hit["approximate"] for hit in hits):
            assert [hit["id"] for hit in hits] == expected
        elif not even(piece).replace(" ", "").isalnum():
            assert {hit["id"] for hit in hits} <= set(expected)
    bench.close()


@settings(max_examples=60)
@given(messages=MESSAGES, data=st.data())
def test_whole_words_of_a_message_find_it(messages: list[str], data: st.DataObject) -> None:
    """Whatever else is stored."""
    bench = Bench()
    texts = stored(bench, messages)
    found = data.draw(st.sampled_from(list(texts)))
    assert found in bench.found(f'"{texts[found]}"', limit=100)
    assert found in bench.found(" ".join(f'"{word}"' for word in texts[found].split()), limit=100)
    bench.close()


def even(text: str) -> str:
    """The normal form with single spaces."""
    return " ".join(normal(text).split())
