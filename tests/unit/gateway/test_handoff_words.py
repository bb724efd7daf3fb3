"""Places of conversations in words."""

from __future__ import annotations

import pytest

from gateway.handoff_words import place_words
from session_store import PlaceRef


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (PlaceRef("cli", "main", "dm", "owner"), "the terminal"),
        (PlaceRef("web", "main", "dm", "owner"), "the web chat"),
        (PlaceRef("telegram", "main", "dm", "42", name="Ann"), "a direct chat on Telegram (“Ann”)"),
        (
            PlaceRef("telegram", "main", "dm", "42", "7", name="Deploy #2"),
            "a thread of a direct chat on Telegram (“Deploy #2”)",
        ),
        (PlaceRef("discord", "main", "thread", "9"), "a thread on Discord"),
        (PlaceRef("slack", "main", "group", "T1/C1", "17.1"), "a thread of a group on Slack"),
        (PlaceRef("email", "main", "dm", "ann@example.org", "t1", name="Deploy"), "an e-mail thread (“Deploy”)"),
        (PlaceRef("email", "main", "dm", "ann@example.org"), "e-mail"),
    ],
)
def test_a_place_is_called_as_people_call_it(place: PlaceRef, words: str) -> None:
    """Nobody has a direct chat on e-mail."""
    assert place_words(place) == words
