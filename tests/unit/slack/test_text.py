"""Slack's form of text to words and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.slack.text import escape, mentioned, readable, without_mention


def name(user: str) -> str:
    """Know one person."""
    return {"U1": "Ann"}.get(user, "")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("a &lt;b&gt; &amp; c", "a <b> & c"),
        ("&amp;lt;", "&lt;"),
        ("&copy; & &lt", "&copy; & &lt"),
        ("<@U1> and <@U2> and <@U3|carl>", "@Ann and @U2 and @carl"),
        ("<#C1|general> <#C2>", "#general #C2"),
        ("<!here> <!channel|channel> <!everyone|@everyone>", "@here @channel @everyone"),
        ("<!subteam^S1|@ops> <!subteam^S2>", "@ops @S2"),
        ("<!date^1392734382^{date}|Feb 18> <!date^1^{date}>", "Feb 18 date^1^{date}"),
        ("<https://example.org/?a=1&amp;b=2>", "https://example.org/?a=1&b=2"),
        ("<https://example.org/|docs &amp; more>", "docs & more (https://example.org/)"),
        ("<http://example.org|example.org>", "http://example.org"),
        ("<mailto:ann@example.org|ann@example.org>", "ann@example.org"),
        ("<mailto:ann@example.org|Ann>", "Ann (ann@example.org)"),
        ("<tel:+4912|+49 12>", "+49 12 (+4912)"),
        ("<> <", "<> <"),
    ],
)
def test_tokens_become_words(raw: str, words: str) -> None:
    """Readable, and of no effect when it is said again."""
    assert readable(raw, name) == words


@given(st.text())
def test_what_a_person_types_comes_back(text: str) -> None:
    """Slack escapes three characters; undone, it is what was typed, whatever that looks like."""
    assert readable(escape(text), name) == text


def test_a_name_is_not_decoded() -> None:
    """Whatever somebody calls themselves stays what it is."""
    assert readable("<@U9>", lambda _: "&lt;!here&gt;") == "@&lt;!here&gt;"


@pytest.mark.parametrize(
    ("raw", "words", "meant"),
    [
        ("<@UBOT> hello", "hello", True),
        ("  <@UBOT|gatebot>: hello ", "hello", True),
        ("<@UBOT> <@UBOT>, hello", "hello", True),
        ("hello <@UBOT>", "hello", True),
        ("<@UBOT> hello <@UBOT> ", "hello", True),
        ("ask <@UBOT> about it", "ask <@UBOT> about it", True),
        ("<@U1> hello", "<@U1> hello", False),
        ("<@UBOTTLE> hello", "<@UBOTTLE> hello", False),
        ("<@UBOT>", "<@UBOT>", True),
        ("<@UBOT> <@U1>", "<@U1>", True),
        ("", "", False),
    ],
)
def test_the_mention_of_the_bot_goes(raw: str, words: str, *, meant: bool) -> None:
    """At either end; in the middle it is a part of what is said."""
    assert without_mention(raw, "UBOT") == (words, meant)


@given(st.lists(st.sampled_from(["<@UBOT>", "<@UBOT|x>", " ", "word", ",", "<@U1>", "\n"])).map("".join))
def test_words_around_mentions_survive(raw: str) -> None:
    """Nothing but mentions of the bot, and what stands between them and the words, is taken away."""
    words, meant = without_mention(raw, "UBOT")

    assert meant == ("<@UBOT" in raw)
    assert words.count("word") == raw.count("word")
    assert words.count("<@U1>") == raw.count("<@U1>")


def test_who_is_mentioned() -> None:
    """In order, each once."""
    assert mentioned("<@U2> <@U1|ann> <@U2> <!here> <#C1>") == ["U2", "U1"]
