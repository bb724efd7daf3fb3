"""/compress, /undo, /retry and /branch at a real terminal: what is shown, and where one is afterwards."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Elsewhere
from tests.terminals import SLOW_COMMAND, at_a_terminal

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


def test_a_conversation_that_grows_too_long_is_compressed_while_one_types_on(home: Path, elsewhere: Elsewhere) -> None:
    """The person is told above the prompt, and the next message goes on in the same conversation."""
    (home / "config.yaml").write_text("agent: {context_tokens: 2000}\n", encoding="utf-8")
    (home / "gate").touch()
    with at_a_terminal(home, command=SLOW_COMMAND) as person:
        person.sees(PROMPT)
        for number in range(4):
            person.type(f"{number} " + "many words that take their room " * 20)
            person.press("enter")
            person.sees(f"answer to {number} many words")
        person.sees("This conversation had grown long: what was said earlier is now a summary")
        person.enter("and now?")
        person.sees("answer to and now?")
        assert person.leave() == 0
    sessions = elsewhere("SELECT id, end_reason FROM sessions ORDER BY rowid")
    assert sessions[0]["end_reason"] == "compression"
    said = elsewhere("SELECT session_id FROM messages WHERE content = 'and now?'")
    assert said == [{"session_id": sessions[-1]["id"]}]
