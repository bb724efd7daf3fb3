"""`threadline chat -q` and input from pipes and files: what scripts rely on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.conftest import Elsewhere
from tests.terminals import COMMAND, SLOW_COMMAND, at_a_terminal, environment, eventually, threadline

SAID = "SELECT session_id, content FROM messages WHERE role = 'user' ORDER BY id"


def test_the_answer_alone_goes_to_stdout(home: Path) -> None:
    """Nothing else, no colours, exit code 0."""
    done = threadline(home, "chat", "-q", "the key is under the mat")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"Kept: the key is under the mat\n", b"")


def test_a_command_that_asks_for_a_turn_and_gets_none_says_why(home: Path) -> None:
    """It was taken for an answer that somebody had stopped."""
    threadline(home, "chat", "-q", "the key is under the mat")
    threadline(home, "chat", "-c", "-q", "/undo")
    done = threadline(home, "chat", "-c", "-q", "/retry")

    assert done.stdout == b"There is nothing here that could be answered again. Say something first.\n"
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_answer_on_a_terminal_is_rendered(home: Path) -> None:
    """A person sees it as in the chat."""
    threadline(home, "chat", "-q", "the key is under the mat")

    with at_a_terminal(home, "chat", "-q", "where is the key?") as person:
        assert person.ends() == 0
        assert "▌ the key is under the mat" in person.everything


def test_a_file_as_input_is_the_message(home: Path, tmp_path: Path, elsewhere: Elsewhere) -> None:
    """`threadline < file`, with or without the mark that some editors put in front."""
    file = tmp_path / "note.txt"
    file.write_text("from a file", encoding="utf-8-sig")

    with file.open("rb") as stdin:
        done = subprocess.run(  # noqa: S603 - our own interpreter and script
            COMMAND, stdin=stdin, capture_output=True, env=environment(home), timeout=60, check=False
        )

    assert (done.returncode, done.stdout) == (0, b"Kept: from a file\n")
    assert [row["content"] for row in elsewhere(SAID)] == ["from a file"]


def test_an_agent_that_fails_is_told_by_the_exit_code(home: Path) -> None:
    """Its sentence goes to stderr: what reads the answer gets none."""
    done = threadline(home, "chat", "-q", "broken", command=SLOW_COMMAND)

    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr == b"The agent is broken today.\n"


def started(home: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """A question that waits for its agent."""
    return subprocess.Popen(  # noqa: S603 - our own interpreter and script
        [*SLOW_COMMAND, "chat", "-q", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
    )


def test_ctrl_c_stops_the_turn_for_good(home: Path, elsewhere: Elsewhere) -> None:
    """What the agent had said is printed and stored; the exit code is that of an interrupted command."""
    with started(home, "hello") as process:
        eventually((home / "begun").exists, "the agent works")
        process.send_signal(signal.SIGINT)
        out, problem = process.communicate(timeout=30)

    assert process.returncode == 130
    assert out == b"thinking about hello\n"
    assert problem == b"Stopped. What you said is kept.\n"
    assert elsewhere("SELECT state FROM turns") == [{"state": "interrupted"}]


def test_sigterm_leaves_the_turn_to_the_next(home: Path, elsewhere: Elsewhere) -> None:
    """`-c` answers both the old question and the new one."""
    with started(home, "hello") as process:
        eventually((home / "begun").exists, "the agent works")
        process.send_signal(signal.SIGTERM)
        out, problem = process.communicate(timeout=30)
    assert (process.returncode, out) == (143, b"")
    assert problem == b"What you said is kept; `threadline -c` goes on with it.\n"
    (home / "gate").touch()

    done = threadline(home, "chat", "-c", "-q", "and?", command=SLOW_COMMAND)

    assert (done.returncode, done.stdout) == (0, b"answer to and?\n")
    assert done.stderr == b"Cut off earlier in this session, comes first: 1 message.\n"
    answers = elsewhere("SELECT content FROM messages WHERE finish_reason = 'stop' ORDER BY id")
    assert [row["content"] for row in answers] == ["answer to hello", "answer to and?"]


def test_a_conversation_in_use_is_waited_for(home: Path) -> None:
    """It says so on stderr, and the answer comes in its turn."""
    with started(home, "hello") as first:
        eventually((home / "begun").exists, "the agent works")
        with started(home, "me too", "-c") as second:
            assert second.stderr is not None
            assert b"Another process works this conversation" in second.stderr.readline()
            (home / "gate").touch()
            assert second.communicate(timeout=30)[0] == b"answer to me too\n"
        assert first.communicate(timeout=30)[0] == b"answer to hello\n"


def test_a_reader_that_goes_away_is_no_trouble(home: Path) -> None:
    """`| head` ends it without a word."""
    threadline(home, "chat", "-q", "hello")
    listing = subprocess.Popen(  # noqa: S603 - our own interpreter and script
        [*COMMAND, "sessions", "export", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
    )
    assert listing.stdout is not None
    listing.stdout.close()
    _, problem = listing.communicate(timeout=30)

    assert problem == b""


def test_output_that_cannot_be_written_is_told(home: Path) -> None:
    """A full disk behind stdout is a failure, not a traceback."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(  # noqa: S603 - our own interpreter and script
            [*COMMAND, "sessions", "list"], stdout=full, stderr=subprocess.PIPE, env=environment(home), check=False
        )

    assert done.returncode == 1
    assert done.stderr == b"The output could not be written: No space left on device.\n"


def test_closed_streams_are_no_trouble(home: Path) -> None:
    """As some supervisors start programs."""
    done = subprocess.run(  # noqa: S603 - our own interpreter and script
        ["/bin/sh", "-c", '"$@" >&- 2>&- <&-', "sh", *COMMAND, "chat", "-q", "said into the void"],
        env=environment(home),
        timeout=60,
        check=False,
    )

    assert done.returncode == 0
    listed = threadline(home, "sessions", "list", "--json")
    assert [row["preview"] for row in json.loads(listed.stdout)] == ["said into the void"]


def test_a_question_loads_nothing_that_it_does_not_need(home: Path) -> None:
    """No prompt, no web server, no platform: a question in a script does not wait for their imports."""
    look = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
        "from gateway.cli.main import run\n"
        "sys.argv = ['threadline', 'chat', '-q', 'hello']\n"
        "run()"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and script
        [sys.executable, "-c", look],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(home),
        timeout=60,
        check=True,
    )

    loaded = set(json.loads(done.stderr))
    assert done.stdout == b"Kept: hello\n"
    assert "gateway.terminal" in loaded
    for heavy in ("prompt_toolkit", "rich.markdown", "starlette", "uvicorn", "telegram", "httpx", "pyte"):
        assert heavy not in loaded, heavy
    assert not any(
        name.startswith(("gateway.web", "gateway.daemon", "adapters.")) for name in loaded - {"adapters.base"}
    )


def test_version_and_help_answer(home: Path) -> None:
    """Without a home, and without making one."""
    home.rmdir()

    assert threadline(home, "--version").stdout.startswith(b"threadline ")
    assert b"Without a command: chat in the terminal." in threadline(home, "-h").stdout
    assert not os.path.lexists(home / "state.db")
