"""What is rendered: Markdown by our rules, nothing that acts, nothing lost."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.cli.prompt import wrapped
from gateway.cli.recap import show_recap
from gateway.cli.screen import MAX_MARKDOWN, Screen
from gateway.recap import Entry, Recap
from session_store import SessionRow
from tests.unit.cli.test_phrases import acts

Shown = pytest.CaptureFixture[str]


def shown(capsys: Shown, text: str) -> str:
    """A Markdown text as it is printed."""
    Screen().markdown(text)
    return capsys.readouterr().out


def test_markdown_is_rendered(capsys: Shown) -> None:
    """Emphasis, lists, code and quotes lose their signs."""
    text = shown(capsys, "**bold** and `code`\n\n- one\n- two\n\n> quoted\n\n```python\nx = 1\n```")

    assert text.splitlines() == ["bold and code", "", " • one", " • two", "", "▌ quoted", "", "x = 1"]


def test_line_breaks_and_raw_html_stay(capsys: Shown) -> None:
    """What was written is shown."""
    assert shown(capsys, "one\ntwo <b>three</b> <T>\n\n<div>four</div>") == (
        "one\ntwo <b>three</b> <T>\n\n<div>four</div>\n"
    )


def test_where_a_link_leads_is_written_out(capsys: Shown) -> None:
    """No link hides its target."""
    assert shown(capsys, "[the bank](https://evil.example)") == "the bank (https://evil.example)\n"


def test_a_very_long_text_is_shown_as_it_was_written(capsys: Shown) -> None:
    """Parsing it might take for ever."""
    text = "*word* " * (MAX_MARKDOWN // 7 + 1)

    assert "*word*" in shown(capsys, text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters()))
def test_nothing_rendered_acts(capsys: Shown, text: str) -> None:
    """Whatever an answer or a person says, as Markdown spells it or not."""
    Screen().markdown(text)
    Screen().quoted(text, "web")
    Screen().say(text)

    assert not any(acts(character) for character in capsys.readouterr().out)


@pytest.mark.parametrize("spelled", ["&#x202e;x", "&#27;[31m", "&lrm;x", "<span>\x1b]0;t\x07</span>", "`\x9b31m`"])
def test_markdown_cannot_spell_what_acts(capsys: Shown, spelled: str) -> None:
    """Entities are decoded after the first look; the second one finds them."""
    assert not any(acts(character) for character in shown(capsys, spelled))


def test_what_a_person_said_is_cut_for_the_eye(capsys: Shown) -> None:
    """Many lines, and very long ones."""
    Screen().quoted("\n".join(f"line {number}" for number in range(1000)))
    many = capsys.readouterr().out
    Screen().quoted("x" * 5000)
    long = capsys.readouterr().out

    assert many.splitlines()[0] == "> line 0"
    assert "… (1,000 lines)" in many
    assert len(many.splitlines()) <= 31
    assert "… (5,000 characters)" in long


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])), st.integers(min_value=2, max_value=40))
def test_wrapped_lines_fit_and_lose_nothing(text: str, columns: int) -> None:
    """Wide characters count for two columns."""
    lines = list(wrapped(text, columns))

    assert "".join(lines) == text.expandtabs(4)
    assert all(len(line) <= columns for line in lines if line.isascii())


def test_a_recap_is_a_panel_headed_by_what_came_before(capsys: Shown) -> None:
    """What was said, the folded tools, answers in short, the last one rendered."""
    entries = [
        Entry("said", "the question"),
        Entry("answered", "line one\nline two"),
        Entry("tools", "[3 tool calls: look x2, ?]"),
        Entry("answered", "**the answer**", whole=True),
    ]

    show_recap(Screen(), Recap(cast("SessionRow", {}), 46, 42, entries))

    text = capsys.readouterr().out
    assert "... 42 earlier messages" in text
    assert "> the question" in text
    assert "  line two" in text
    assert "[3 tool calls: look x2, ?]" in text
    assert "the answer" in text
    assert "**" not in text


def test_an_empty_recap_shows_nothing(capsys: Shown) -> None:
    """There is nothing to recall."""
    show_recap(Screen(), Recap(cast("SessionRow", {}), 0, 0, []))

    assert capsys.readouterr().out == ""
