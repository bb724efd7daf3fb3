"""Picking a session: what is typed filters, arrows wrap."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gateway.cli.sessions.browsing import Picker
from session_store import SessionListRow
from tests.unit.cli.conftest import Threadline


def row(session_id: str, title: str | None, preview: str = "", source: str = "cli") -> SessionListRow:
    """One line of a list."""
    facts: dict[str, Any] = {"id": session_id, "title": title, "preview": preview, "source": source, "last_active": 0.0}
    return cast("SessionListRow", facts)


@pytest.fixture
def picker() -> Picker:
    """Three sessions."""
    red = row("20260102_b", None, "the build is red", "telegram")
    return Picker([row("20260103_c", "Caf\u00e9 plans"), red, row("20260101_a", "Build")])


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", ["20260103_c", "20260102_b", "20260101_a"]),
        ("build", ["20260102_b", "20260101_a"]),
        ("RED build", ["20260102_b"]),
        ("cafe\u0301", ["20260103_c"]),
        ("telegram", ["20260102_b"]),
        ("0101", ["20260101_a"]),
        ("%", []),
    ],
)
def test_what_is_typed_filters_by_title_beginning_id_and_entrance(picker: Picker, typed: str, found: list[str]) -> None:
    """Every word must be there, in any order; letter case and the form of accents aside."""
    for character in typed:
        picker.type(character)
    assert [one["id"] for one in picker.matching] == found
    assert picker.chosen == (found[0] if found else None)


def test_arrows_wrap_and_a_changed_filter_begins_at_the_top(picker: Picker) -> None:
    """Also where nothing matches."""
    picker.move(-1)
    assert picker.chosen == "20260101_a"
    picker.move(1)
    assert picker.chosen == "20260103_c"
    picker.move(2)
    picker.type("build")
    assert picker.chosen == "20260102_b"
    picker.type("x")
    picker.move(1)
    assert picker.matching == []
    picker.erase()
    assert picker.chosen == "20260102_b"
    picker.erase(everything=True)
    assert (picker.typed, picker.chosen) == ("", "20260103_c")


def test_without_a_terminal_nothing_can_be_picked(threadline: Threadline) -> None:
    """It says what prints the list instead."""
    done = threadline("sessions", "browse")
    assert done.exit_code == 1
    assert done.stderr == "This needs a terminal. `threadline sessions list` prints the sessions.\n"
