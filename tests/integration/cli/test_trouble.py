"""The chat while the store cannot be written: a sentence, nothing lost, and it goes on by itself."""

from __future__ import annotations

import resource
from pathlib import Path

from tests.conftest import Elsewhere
from tests.terminals import at_a_terminal, threadline

PROMPT = "\n>"
BACK = "Your message was not stored; it is back at the prompt."


def test_a_lost_store_is_told_and_the_text_comes_back(home: Path, elsewhere: Elsewhere) -> None:
    """Once the file is where it was, Enter sends the text, and it is stored once."""
    with at_a_terminal(home, columns=200) as person:
        person.sees(PROMPT)
        person.enter("before")
        person.sees("Kept: before")
        (home / "state.db").rename(home / "elsewhere.db")
        person.enter("meanwhile")
        person.sees("moved or deleted", BACK, "\n> meanwhile\n")

        (home / "elsewhere.db").rename(home / "state.db")
        person.press("enter")

        person.sees("Kept: meanwhile")
    rows = elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
    assert [row["content"] for row in rows] == ["before", "meanwhile"]


def test_a_full_disk_is_told_and_the_text_comes_back(home: Path) -> None:
    """Freeing space is all that is needed."""
    with at_a_terminal(home, columns=200) as person:
        person.sees(PROMPT)
        person.enter("before")
        person.sees("Kept: before")
        limits = resource.prlimit(person.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(person.pid, resource.RLIMIT_FSIZE, (4096, limits[1]))
        person.enter("meanwhile")
        person.sees(BACK, "\n> meanwhile\n")

        resource.prlimit(person.pid, resource.RLIMIT_FSIZE, limits)
        person.press("enter")

        person.sees("Kept: meanwhile")


def test_what_is_typed_meanwhile_is_not_overwritten(home: Path) -> None:
    """The text that could not be stored is in the history then."""
    with at_a_terminal(home, columns=200) as person:
        person.sees(PROMPT)
        person.enter("before")
        person.sees("Kept: before")
        (home / "state.db").rename(home / "elsewhere.db")
        person.type("refused\rnext thought")
        person.sees(BACK, "\n> next thought")
        person.press("ctrl-u")
        person.sees_no_more("next thought")
        person.press("up")

        person.sees("\n> refused")


def test_terminal_sequences_in_a_message_do_nothing(home: Path) -> None:
    """Shown without what acts: titles, colours, cursor moves, bells, turned lines, also when Markdown spells them."""
    evil = "red \x1b[31mtext\x1b[2J \x1b]0;title\x07 \x9b31m \u202egnol\u202c bell\x07 &#x202e; \\\x1b end"
    assert threadline(home, "chat", "-q", evil).returncode == 0

    with at_a_terminal(home, "-c") as person:
        person.sees("[31mtext[2J", PROMPT)
        person.paste("pasted \x1b[31mtext\x1b]0;title\x07")
        person.sees("> pasted")
        person.press("enter")
        person.sees("Kept: pasted [31mtext]0;title")
        person.enter("/sessions")
        person.sees("(this one)")
        for acting in ("\x1b]0;", "\x1b[31m", "\x07", "\u202e", "\x9b"):
            assert acting.encode() not in person.raw
