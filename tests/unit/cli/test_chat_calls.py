"""`threadline chat -q` and input from pipes: what is said, what is answered, what is wrong usage."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Elsewhere
from tests.unit.cli.conftest import Threadline

SAID = "SELECT session_id, content FROM messages WHERE role = 'user' ORDER BY id"


def test_a_pipe_alone_is_the_message(threadline: Threadline, elsewhere: Elsewhere) -> None:
    """Line ends around it are not part of it, what is inside stays."""
    done = threadline(said="\n  two\n\n lines\r\n")

    assert (done.exit_code, done.stderr) == (0, "")
    assert [row["content"] for row in elsewhere(SAID)] == ["  two\n\n lines"]


def test_what_a_pipe_brings_is_added_to_the_question(threadline: Threadline, elsewhere: Elsewhere) -> None:
    """The question first, an empty line between."""
    threadline("chat", "-q", "keep this log", said="line 1\nline 2\n")

    assert [row["content"] for row in elsewhere(SAID)] == ["keep this log\n\nline 1\nline 2"]


def test_bytes_that_are_no_text_are_kept_as_well_as_can_be(threadline: Threadline, elsewhere: Elsewhere) -> None:
    """They are replaced, never a reason to fail."""
    done = threadline(said=b"caf\xe9 \xff\x00 end")

    assert done.exit_code == 0
    assert [row["content"] for row in elsewhere(SAID)] == ["caf\ufffd \ufffd\x00 end"]


def test_nothing_to_say_is_wrong_usage(threadline: Threadline, home: Path) -> None:
    """And makes no session."""
    for arguments in (("chat", "-q", "  "), ("chat",), ()):
        done = threadline(*arguments, said=" \n")

        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr == "There is nothing to say: the question is empty.\n"
    assert not (home / "state.db").exists()


def test_too_much_is_refused_and_never_cut(threadline: Threadline, home: Path) -> None:
    """The limit is told."""
    done = threadline(said="x" * 1_000_001)

    assert (done.exit_code, done.stdout) == (1, "")
    assert "more than 1,000,000 characters" in done.stderr
    assert not (home / "state.db").exists()


def test_each_question_is_a_session_of_its_own_unless_continued(threadline: Threadline, elsewhere: Elsewhere) -> None:
    """`-c` goes on with the last one."""
    for arguments in (["one"], ["two"], ["three", "-c"]):
        assert threadline("chat", "-q", *arguments).exit_code == 0

    one, two, three = [row["session_id"] for row in elsewhere(SAID)]

    assert len({one, two}) == 2
    assert three == two
    assert elsewhere("SELECT DISTINCT end_reason FROM sessions") == [{"end_reason": "user_exit"}]


def test_slash_commands_work(threadline: Threadline) -> None:
    """With the reply on stdout."""
    threadline("chat", "-q", "something to find")

    done = threadline("chat", "-q", "/sessions")

    assert done.exit_code == 0
    assert "something to find" in done.stdout


def test_an_unknown_slash_command_is_wrong_usage(threadline: Threadline) -> None:
    """The nearest one is named on stderr."""
    done = threadline("chat", "-q", "/serach x")

    assert (done.exit_code, done.stdout) == (2, "")
    assert "Did you mean `/search`?" in done.stderr


def test_a_path_is_no_command(threadline: Threadline) -> None:
    """What begins with a slash may be plain text."""
    assert threadline("chat", "-q", "/etc/hosts has changed").stdout == "Kept: /etc/hosts has changed\n"
