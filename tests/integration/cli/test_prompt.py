"""The interactive chat on a real terminal: what is typed, what is shown, how it is left."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.conftest import Elsewhere
from tests.terminals import SLOW_COMMAND, Person, at_a_terminal, eventually

PROMPT = "\n>"


def said(elsewhere: Elsewhere) -> list[str]:
    """What people said, as stored, oldest first."""
    return [row["content"] for row in elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")]


def test_an_answer_is_rendered_below_its_question(home: Path) -> None:
    """Tool calls are one line with count and names; Markdown is rendered, not shown."""
    with at_a_terminal(home) as person:
        person.sees(PROMPT)
        person.enter("The deploy script is in *ops*/deploy.sh")
        person.sees("Kept: The deploy script is in *ops*/deploy.sh")
        person.enter("where is the deploy script?")

        shown = person.sees("I found this:", "▌ The deploy script is in *ops*/deploy.sh")

        assert "> where is the deploy script?\n  1 tool call: session_search\n" in shown
        assert person.leave() == 0


def test_the_answer_grows_while_it_is_made(home: Path) -> None:
    """The live text stands above the prompt and makes room for the stored answer."""
    with at_a_terminal(home, command=SLOW_COMMAND) as person:
        person.sees(PROMPT)
        person.enter("hello")
        person.sees("thinking about hello", "(Ctrl-C stops)")

        (home / "gate").touch()

        shown = person.sees("answer to hello")
        assert "1 tool call: look" in shown
        person.sees_no_more("thinking about")
        assert person.screen.count("answer to hello") == 1


def test_one_may_type_on_while_an_answer_is_made(home: Path) -> None:
    """Further messages wait, each for a turn of its own, and are answered in order."""
    with at_a_terminal(home, command=SLOW_COMMAND) as person:
        person.sees(PROMPT)
        person.enter("first")
        person.sees("thinking about first")
        person.enter("second")
        person.enter("third")
        person.sees("> second (waits)", "> third (waits)")

        (home / "gate").touch()

        shown = person.sees("answer to third")
        order = [shown.index(text) for text in ("answer to first", "> second", "answer to second", "> third")]
        assert order == sorted(order)


def test_ctrl_c_ends_the_turn_and_loses_nothing(home: Path, elsewhere: Elsewhere) -> None:
    """The question, the half answer and what is being typed all stay."""
    with at_a_terminal(home, command=SLOW_COMMAND) as person:
        person.sees(PROMPT)
        person.enter("a long one")
        person.sees("thinking about a long one")
        person.type("half typed")
        person.sees("> half typed")

        person.press("ctrl-c")

        person.sees("Stopped. What was said so far is kept.", "> half typed")
        (home / "gate").touch()
        person.press("enter")
        person.sees("answer to half typed")
    turns = elsewhere("SELECT state, reason FROM turns ORDER BY rowid")
    assert turns == [{"state": "interrupted", "reason": "stopped"}, {"state": "done", "reason": None}]
    assert said(elsewhere) == ["a long one", "half typed"]
    stopped = elsewhere("SELECT content FROM messages WHERE finish_reason = 'stopped'")
    assert stopped == [{"content": "thinking about a long one"}]


def test_a_second_ctrl_c_leaves_at_once(home: Path, elsewhere: Elsewhere) -> None:
    """Also when the agent does not stop; what was said is kept for the next terminal."""
    with at_a_terminal(home, command=SLOW_COMMAND) as person:
        person.sees(PROMPT)
        person.enter("stubborn question")
        person.sees("thinking about stubborn question")
        person.press("ctrl-c")

        person.press("ctrl-c")

        assert person.ends() == 0
        assert "`threadline -c` takes it up again" in person.everything
    assert said(elsewhere) == ["stubborn question"]


def test_ctrl_c_without_a_turn_takes_the_text_away_and_then_leaves(home: Path) -> None:
    """The text goes into the history; with an empty line the first press tells, the second leaves."""
    with at_a_terminal(home) as person:
        person.sees(PROMPT)
        person.type("not meant")
        person.sees("> not meant")
        person.press("ctrl-c")
        person.sees_no_more("not meant")
        person.press("up")
        person.sees("> not meant")
        person.press("ctrl-c")
        person.sees_no_more("not meant")
        person.press("ctrl-c")
        person.sees("Ctrl-C again or Ctrl-D leaves.")

        person.press("ctrl-c")

        assert person.ends() == 0


def test_ctrl_d_leaves_and_ends_the_session(home: Path, elsewhere: Elsewhere) -> None:
    """The id to go on with is told; a prune can find the session later."""
    with at_a_terminal(home) as person:
        person.sees(PROMPT)
        person.enter("remember this")
        person.sees("Kept: remember this")

        assert person.leave() == 0

        (session,) = elsewhere("SELECT id, source, ended_at, end_reason FROM sessions")
        assert f"Kept as {session['id']}." in person.everything
        assert re.fullmatch(r"\d{8}_\d{6}_[0-9a-f]{6}", session["id"])
    assert (session["source"], session["end_reason"]) == ("cli", "user_exit")
    assert session["ended_at"] is not None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_order(home: Path, elsewhere: Elsewhere, number: signal.Signals) -> None:
    """The terminal is as before, the running turn is left to the next one, the exit code names the signal."""
    with at_a_terminal(home, command=SLOW_COMMAND) as person:
        person.sees(PROMPT)
        person.enter("hello")
        person.sees("thinking about hello")

        assert person.kill(number) == 128 + number

        assert_restored(person)
    assert elsewhere("SELECT state, reason FROM turns") == [{"state": "running", "reason": "shutdown"}]
    assert elsewhere("SELECT * FROM processes") == []


def assert_restored(person: Person) -> None:
    """The last word on each mode of the terminal is the one that it began with."""
    modes = dict(re.findall(rb"\x1b\[\?(\d+)([hl])", person.raw))
    assert modes[b"2004"] == b"l"  # pasted text is not marked
    assert modes[b"25"] == b"h"  # the cursor shows
    assert modes[b"7"] == b"h"  # lines wrap


def test_the_terminal_is_restored_when_one_leaves(home: Path) -> None:
    """No mode stays on."""
    with at_a_terminal(home) as person:
        person.sees(PROMPT)
        person.leave()

        assert_restored(person)


def test_what_is_pasted_is_one_message(home: Path, elsewhere: Elsewhere) -> None:
    """Lines, indentation and empty lines stay as they were; Enter sends."""
    text = "first line\n    indented\n\nlast: 日本語 שלום 🎉"
    with at_a_terminal(home) as person:
        person.sees(PROMPT)
        person.paste(text)
        person.sees("last: ")
        person.press("enter")
        person.sees("Kept: first line")
    assert said(elsewhere) == [text]


def test_alt_enter_makes_a_new_line(home: Path, elsewhere: Elsewhere) -> None:
    """A message of several lines can be typed."""
    with at_a_terminal(home) as person:
        person.sees(PROMPT)
        person.type("one")
        person.press("alt-enter")
        person.type("two")
        person.sees("> one\n  two")
        person.press("enter")
        person.sees("Kept: one two")
    assert said(elsewhere) == ["one\ntwo"]


def test_a_very_long_line_is_stored_whole(home: Path, elsewhere: Elsewhere) -> None:
    """Whatever the width of the terminal; of its echo only the beginning is shown."""
    text = "x" * 5000 + "長い" * 500 + " end"
    with at_a_terminal(home, columns=50, rows=20) as person:
        person.sees(PROMPT)
        person.paste(text)
        person.sees("長い end")
        person.press("enter")
        person.sees("(6,004 characters)", "Kept:")
    assert said(elsewhere) == [text]


def test_slash_commands_are_completed_and_suggested(home: Path) -> None:
    """A menu shows what begins so; a wrong name is answered with the nearest one."""
    with at_a_terminal(home) as person:
        person.sees(PROMPT)
        person.type("/se")
        person.sees("/sessions", "/search", "find what was said")
        person.press("tab")
        person.press("tab")
        person.sees("> /search")
        person.press("ctrl-c")
        person.enter("/sesions")

        person.sees("There is no command /sesions. Did you mean /sessions?")


def test_new_and_title_move_and_name_the_session(home: Path, elsewhere: Elsewhere) -> None:
    """The status line shows where one is."""
    with at_a_terminal(home) as person:
        person.sees(PROMPT)
        person.enter("in the first")
        person.sees("Kept: in the first")
        person.enter("/new Second one")
        person.sees("A new session begins.")
        person.enter("in the second")
        person.sees("Kept: in the second", "Second one (")
    rows = elsewhere(
        "SELECT s.title, s.end_reason, m.content FROM sessions s JOIN messages m ON m.session_id = s.id "
        "WHERE m.role = 'user' ORDER BY m.id"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("in the first", "new_command", "in the first"),
        ("Second one", None, "in the second"),
    ]


def test_new_while_an_answer_is_made_leaves_it_to_the_former_session(home: Path, elsewhere: Elsewhere) -> None:
    """It is not lost, and nothing claims that it was stopped."""
    with at_a_terminal(home, command=SLOW_COMMAND) as person:
        person.sees(PROMPT)
        person.enter("in the first")
        person.sees("thinking about in the first")
        person.enter("/new")
        person.sees("A new session begins.", "The answer that is still made goes into ")
        person.enter("in the second")
        person.sees("thinking about in the second")

        (home / "gate").touch()

        shown = person.sees("answer to in the second")
        assert "Stopped" not in shown
        assert "answer to in the first" not in shown
        eventually(lambda: elsewhere("SELECT 1 FROM messages WHERE content = 'answer to in the first'"), "stored")


def test_a_failure_of_the_agent_is_its_sentence(home: Path) -> None:
    """The chat goes on."""
    with at_a_terminal(home, command=SLOW_COMMAND) as person:
        (home / "gate").touch()
        person.sees(PROMPT)
        person.enter("broken question")
        person.sees("The agent is broken today.")
        person.enter("and now?")
        person.sees("answer to and now?")


def test_a_narrow_terminal_shows_everything(home: Path) -> None:
    """Also while its size changes."""
    with at_a_terminal(home, columns=22, rows=10) as person:
        person.sees(PROMPT)
        person.enter("短い画面でも読める")
        person.sees("Kept:")
        person.resize(70, 20)
        person.enter("and now a wider one")
        person.sees("Kept: and now a wider one")
        assert person.leave() == 0


def test_no_color_means_none(home: Path) -> None:
    """Weight may stay, colours go."""
    with at_a_terminal(home, variables={"NO_COLOR": "1"}, command=SLOW_COMMAND) as person:
        (home / "gate").touch()
        person.sees(PROMPT)
        person.enter("broken")
        person.sees("The agent is broken today.")
        person.enter("/help")
        person.sees("list the commands")
        person.leave()
        colours = [code for code in re.findall(rb"\x1b\[([\d;]*)m", person.raw) if re.search(rb"(^|;)[349][0-8]", code)]
        assert colours == []
