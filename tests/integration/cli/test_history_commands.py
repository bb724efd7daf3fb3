"""/compress, /undo, /retry and /branch at a real terminal: what is shown, and where one is afterwards."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Elsewhere
from tests.terminals import at_a_terminal

PROMPT = "\n>"


def test_a_conversation_is_compressed_taken_back_branched_and_answered_again(home: Path, elsewhere: Elsewhere) -> None:
    """Each tells in a sentence what has happened, the prompt names the session that one is in, nothing is lost."""
    with at_a_terminal(home) as person:
        person.sees(PROMPT)
        person.enter("/title Garden")
        person.sees("no session here yet")
        for text in ("The roses are red", "The tulips are yellow", "The peas are green"):
            person.enter(text)
            person.sees(f"Kept: {text}")
        person.enter("/title Garden")
        person.sees("is now called “Garden”")

        person.enter("/compress the colours")
        person.sees("The conversation goes on as “Garden #2”", "Garden #2 (")
        person.enter("/status")
        person.sees("tokens", "Garden #2")

        person.enter("/undo")
        person.sees("Taken back: 1 exchange, from “The peas are green” on.")
        person.enter("The beans are green")
        person.sees("Kept: The beans are green")

        person.enter("/retry")
        person.sees("> /retry")
        person.until(lambda: person.screen.count("Kept: The beans are green") == 2)

        person.enter("/branch Balcony")
        person.sees("This is a branch now, “Balcony”", "Balcony (")
        person.enter("The box is blue")
        person.sees("Kept: The box is blue")
        assert person.leave() == 0

    titles = elsewhere("SELECT title, kind, end_reason FROM sessions ORDER BY rowid")
    assert [row["title"] for row in titles] == ["Garden", "Garden #2", "Balcony"]
    assert titles[0]["end_reason"] == "compression"
    assert titles[2]["kind"] == "branch"
