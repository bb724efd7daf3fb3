"""Search against Python's `in`: pieces of messages in many scripts, cut at random, find what contains them.

What is compared: the normal form of text (letter case, width, invisible characters; see segment.py), every white space
as one. A piece without letters, or one that stands inside words, is looked for by scanning, which has to agree exactly.
A piece that the index finds has to find its own message, and nothing that does not contain its words.
"""

# ruff: noqa: RUF001 - characters that look like others are what is tested

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from session_store.query import Haystack, parse
from session_store.segment import normal
from tests.unit.search.bench import Bench

SCRIPTS = (
    "the deploy script's path, naïve café Straße",
    "部署脚本的路径是这样。我们用docker部署，上海",
    "テスト・コードを書くアプリ、ﾃｽﾄ",
    "배포 스크립트를 실행하세요",
    "скрипт развёртывания лежит здесь ёж",
    "النص البرمجي للنشر",
    "סקריפט הפריסה",
    "สคริปต์อยู่ที่นี่",
    "स्क्रिप्ट यहाँ है",
    "σενάριο ανάπτυξης ΟΔΟΣ οδός",
    "ＦＵＬＬ　ｗｉｄｔｈ １２３ ①②",
    "e\u0301 a\u0308 zero\u200bwidth \u202eright to left\u202c so\u00adft",
    "😀👩‍👩‍👧 🇩🇪 ✅ → ±",
    "src/main.py #123 a@b.example 50% C:\\tmp\\x foo_bar.baz() error:timeout don't chat-send",
)
PIECE = st.sampled_from(SCRIPTS).flatmap(
    lambda text: st.tuples(st.integers(0, len(text) - 1), st.integers(1, 14)).map(lambda cut: text[cut[0] : sum(cut)])
)
MESSAGE = st.lists(PIECE | st.sampled_from([" ", "\n", ", ", "。", " - "]), min_size=1, max_size=6).map("".join)
MESSAGES = st.lists(MESSAGE.filter(lambda text: text.strip()), min_size=1, max_size=10)


@pytest.fixture(scope="module")
def shared() -> Iterator[Bench]:
    """One database for all examples: making one takes longer than a search."""
    bench = Bench()
    bench.session()
    yield bench
    bench.close()


def even(text: str) -> str:
    """The normal form with single spaces."""
    return " ".join(normal(text).split())


def check(bench: Bench, messages: list[str], data: st.DataObject) -> None:
    """Look for a piece of one of the messages."""
    bench.apply(lambda tx: tx.run("DELETE FROM messages"))
    bench.write(lambda _: None)
    ids = {bench.add(message): message for message in messages}
    own = data.draw(st.sampled_from(list(ids)))
    text = ids[own]
    start = data.draw(st.integers(0, len(text) - 1))
    piece = text[start : data.draw(st.integers(start + 1, len(text)))].replace('"', "")
    if not even(piece):
        return
    hits = bench.search(f'"{piece}"', limit=100)
    assume(not hits.stopped)  # a machine that is busy enough stops any search
    found = {hit["id"] for hit in hits}
    containing = {one for one, message in ids.items() if even(piece) in even(message)}
    (term,) = parse(f'"{piece}"').wanted
    if any(hit["approximate"] for hit in hits):
        assert found == containing
        return
    # A piece that ends before a combining mark is contained nowhere once the text is composed.
    assert found or not containing
    for one in found:
        haystack = Haystack(ids[one])
        assert term.holds(haystack) or one in containing
    # As words it stands nowhere else; where it stands as words, it is found.
    assert {one for one, message in ids.items() if term.holds(Haystack(message))} == found


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=MESSAGES, data=st.data())
def test_search_agrees_with_python(shared: Bench, messages: list[str], data: st.DataObject) -> None:
    """Some hundred cases; the long run has more."""
    check(shared, messages, data)


@pytest.mark.soak
@settings(max_examples=10_000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=MESSAGES, data=st.data())
def test_search_agrees_with_python_for_long(shared: Bench, messages: list[str], data: st.DataObject) -> None:
    """Ten thousand cases."""
    check(shared, messages, data)


UNSPACED = st.text(st.sampled_from("部署脚本的路径用我上海テスト배포สคร"), min_size=1, max_size=5)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=MESSAGES, piece=UNSPACED)
def test_scripts_without_spaces_agree_exactly(shared: Bench, messages: list[str], piece: str) -> None:
    """Any run of characters, found by the index, is exactly what `in` finds."""
    shared.apply(lambda tx: tx.run("DELETE FROM messages"))
    shared.write(lambda _: None)
    ids = {shared.add(message): message for message in messages}
    found = {hit["id"] for hit in shared.search(piece, limit=100)}
    assert found == {one for one, message in ids.items() if even(piece) in even(message)}
