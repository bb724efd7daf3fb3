"""The summary that is made without a model."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.agents.digest import digest

MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "tool", "system", "odd"]),
        "content": st.none()
        | st.text(max_size=400)
        | st.just([{"type": "text", "text": "in parts"}, {"type": "image"}]),
    }
)


def talk(*texts: str) -> list[dict[str, Any]]:
    """Questions, each answered."""
    answered = (({"role": "user", "content": text}, {"role": "assistant", "content": f"re: {text}"}) for text in texts)
    return [message for pair in answered for message in pair]


@given(st.lists(MESSAGE, max_size=40), st.integers(0, 3000), st.none() | st.text(max_size=20))
def test_whatever_was_said_there_is_a_summary_within_the_limit(
    history: list[dict[str, Any]], limit: int, focus: str | None
) -> None:
    """The same each time."""
    summary = digest(history, limit=limit, focus=focus)
    assert summary.strip()
    assert len(summary) <= max(limit, 200)
    assert summary == digest(history, limit=limit, focus=focus)


def test_a_short_conversation_is_there_in_its_own_words() -> None:
    """In order, with who said it; results of tools are not."""
    history = [*talk("tea is in the box"), {"role": "tool", "content": "a long result"}]
    assert digest(history, limit=1000) == "- Asked: tea is in the box\n- Answered: re: tea is in the box"


def test_when_room_is_short_what_the_person_said_last_is_kept_and_the_rest_counted() -> None:
    """Before all answers, and before what was said first."""
    summary = digest(talk(*(f"number {number} is kept" for number in range(50))), limit=400)
    assert "- Asked: number 49 is kept" in summary
    assert "Answered" not in summary
    assert "number 0 " not in summary
    kept = summary.count("- Asked")
    assert summary.startswith(f"({100 - kept} more messages are not repeated here.)")


def test_what_has_the_words_of_the_focus_is_kept_longest() -> None:
    """However old it is."""
    history = talk("the Roses are red", *(f"number {number} is kept" for number in range(50)))
    assert "the Roses are red" in digest(history, limit=400, focus="roses")
    assert "the Roses are red" not in digest(history, limit=400)


def test_a_summary_of_a_summary_is_like_the_summary_of_it_all() -> None:
    """Its lines go on as lines, and what it left out stays counted."""
    texts = [f"number {number} is kept" for number in range(60)]
    first = digest(talk(*texts[:40]), limit=600)
    second = digest([{"role": "system", "content": first}, *talk(*texts[40:])], limit=600)
    assert second == digest(talk(*texts), limit=600)


def test_prose_of_another_agent_is_carried_on_in_half_of_the_room() -> None:
    """It is never pushed out by what came later, and never pushes all of that out."""
    prose = "They plan a garden. " * 40
    summary = digest([{"role": "system", "content": prose}, *talk("the peas are green")], limit=600)
    assert summary.startswith("They plan a garden.")
    assert "- Asked: the peas are green" in summary
