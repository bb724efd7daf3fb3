"""Snippets: the place of the match, marked, on the text as it was written."""

# ruff: noqa: RUF001 - characters that look like others are what is tested

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_store.query import parse
from session_store.segment import normal
from session_store.snippet import TOKENS, snippet


def cut(text: str, query: str) -> str:
    """The snippet of a text for a query."""
    return snippet(text, parse(query).wanted)


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("the deploy script", "deploy", "the >>>deploy<<< script"),
        ("the deploy script", "script the", ">>>the<<< deploy >>>script<<<"),
        ("Deploy, DEPLOY!", "deploy", ">>>Deploy<<<, >>>DEPLOY<<<!"),
        ("上次的部署脚本在哪", "部署", "上次的>>>部署<<<脚本在哪"),
        ("用docker部署", "docker部署", "用>>>docker部署<<<"),
        ("用 docker 部署", "docker部署", "用 >>>docker 部署<<<"),
        ("ＤＯＣＫＥＲで動く", "docker", ">>>ＤＯＣＫＥＲ<<<で動く"),
        ("これはﾃﾞｰﾀです", "データ", "これは>>>ﾃﾞｰﾀ<<<です"),
        ("a cafe\u0301 here", "cafe", "a >>>cafe\u0301<<< here"),
        ("a café here", "cafe", "a >>>café<<< here"),
        ("a cafe here", "café", "a >>>cafe<<< here"),
        ("x ﬁne y", "fine", "x >>>ﬁne<<< y"),
        ("wait… docker… ok", "docker", "wait… >>>docker<<<… ok"),
        ("see src/main.py:12", "src/main.py", "see >>>src/main.py<<<:12"),
        ("150% and 50%", "50%", "150% and >>>50%<<<"),
        ("catalog of logs and a log", "log", "catalog of logs and a >>>log<<<"),
        ("deployments deploy", "deplo*", ">>>deployments<<< >>>deploy<<<"),
        ("the redeployment", "deploy", "the re>>>deploy<<<ment"),
        ("one two\nthree", '"two three"', "one >>>two\nthree<<<"),
        ("alpha\0omega", "omega", "alpha\0>>>omega<<<"),
        ("İstanbul and istanbul", "istanbul", ">>>İstanbul<<< and >>>istanbul<<<"),
        ("no such thing", "docker", "no such thing"),
        ("", "docker", ""),
        ("🤔🤔 hm 🦄", "🦄", "🤔🤔 hm >>>🦄<<<"),
        ("กินข้าว", "ข้าว", "กิน>>>ข้าว<<<"),
    ],
)
def test_the_match_is_marked_where_it_stands(text: str, query: str, expected: str) -> None:
    """In any script, width, case and composition."""
    assert cut(text, query) == expected


def test_long_text_is_cut_around_the_match() -> None:
    """About forty words, and both cuts are shown."""
    words = [f"w{number}" for number in range(1000)]
    shown = cut(" ".join(words), "w500")
    assert shown.startswith("…w")
    assert shown.endswith("…")
    assert " >>>w500<<< " in shown
    assert len(shown.split()) == TOKENS


def test_long_unspaced_text_is_cut_by_characters() -> None:
    """Forty characters, not forty runs."""
    shown = cut("前" * 500 + "部署" + "後" * 500, "部署")
    assert shown == f"…{'前' * 14}>>>部署<<<{'後' * (TOKENS - 16)}…"


def test_the_place_with_the_most_terms_is_shown() -> None:
    """Not merely the first."""
    text = "docker " + "x " * 300 + "the docker deploy script " + "y " * 300 + "script"
    assert ">>>docker<<< >>>deploy<<< >>>script<<<" in cut(text, "script docker deploy")


def test_one_endless_word_does_not_make_an_endless_snippet() -> None:
    """Lines of hashes and the like."""
    assert len(cut("a" * 50_000 + " docker " + "b" * 50_000, "docker")) < 1500
    assert len(cut("部" * 5000, f'"{"部" * 2000}"')) < 1500


@pytest.mark.parametrize(
    "filling", ["plain words ", "ｗｉｄｅ　ｗｏｒｄｓ　", "部署，脚本……", "e\u0301ﬁ ", "🦄\ufe0f "]
)
@pytest.mark.parametrize("before", [0, 1, 300, 1023, 3000])
def test_a_match_is_found_anywhere_in_a_long_text(filling: str, before: int) -> None:
    """Also where the form that is searched has other positions than the text."""
    text = f"{filling * before}the Ｎｅｅｄｌｅ here{filling * 50}"
    assert ">>>Ｎｅｅｄｌｅ<<<" in cut(text, "needle")


PIECES = st.lists(
    st.sampled_from(
        ["a", "B", " ", "部", "署", "，", "…", "ﬁ", "e\u0301", "ｱﾞ", "\u00ad", "Ａ", "İ", "ß", "🤔", "\0", "\n", "é"]
    ),
    max_size=60,
).map("".join)


@given(before=PIECES, after=PIECES, needle=st.sampled_from(["needle", "部署脚本", "Ｎeedle", "ﾃﾞｰﾀ", "x/y"]))
def test_what_stands_between_the_marks_is_the_needle(before: str, after: str, needle: str) -> None:
    """And the text around it is the text, mark for mark."""
    text = f"{before} {needle} {after}"
    shown = cut(text, f'"{needle}"')
    marked = shown.split(">>>")[1].split("<<<")[0]
    assert normal(marked) == normal(needle)
    assert shown.replace(">>>", "").replace("<<<", "").removeprefix("…").removesuffix("…") in f"…{text}…"
