"""Going on with a session by name: -c TITLE, -r, and /resume at a terminal."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from gateway.owner import OWNER
from session_store import SessionDB
from tests.conftest import Elsewhere
from tests.terminals import at_a_terminal, threadline

PROMPT = "\n>"


@pytest.fixture
def filled(home: Path) -> Path:
    """A home with sessions of the terminal, of Telegram, in two segments, and of somebody else."""

    async def fill() -> None:
        async with SessionDB(home / "state.db") as db:
            await db.create_session("20260101_100000_aaaaaa", "cli", owner=OWNER, title="Fix the parser")
            await db.append_message("20260101_100000_aaaaaa", "user", "the parser drops the last line")
            await db.append_message("20260101_100000_aaaaaa", "assistant", "Kept: the parser drops the last line")
            await db.end_session("20260101_100000_aaaaaa", "compression")
            await db.create_session(
                "20260101_110000_bbbbbb", "cli", parent_session_id="20260101_100000_aaaaaa", title="Fix the parser #2"
            )
            await db.append_message("20260101_110000_bbbbbb", "user", "it reads too little")
            await db.append_message("20260101_110000_bbbbbb", "assistant", "Kept: it reads too little")
            await db.end_session("20260101_110000_bbbbbb", "user_exit")
            await db.create_session("20260102_100000_cccccc", "telegram", owner=OWNER, title="Fix the build")
            await db.append_message("20260102_100000_cccccc", "user", "the build is red")
            await db.create_session("20260103_100000_dddddd", "cli", owner="p2", title="Salary")
            await db.append_message("20260103_100000_dddddd", "user", "the zebra is secret")

    asyncio.run(fill())
    return home


@pytest.mark.parametrize(
    ("arguments", "went_into"),
    [
        (["-c"], "bbbbbb"),
        (["-c", "fix the PARSER"], "bbbbbb"),
        (["--continue=Fix the parser"], "bbbbbb"),
        (["-r", "20260101_100000_aaaaaa"], "bbbbbb"),
        (["-r", "20260101"], "bbbbbb"),
        (["--resume", "“Fix the parser #2”"], "bbbbbb"),
        (["-r", "latest"], "cccccc"),
        (["-r", "Fix the b"], "cccccc"),
    ],
)
def test_every_name_leads_to_the_live_tip(
    filled: Path, elsewhere: Elsewhere, arguments: list[str], went_into: str
) -> None:
    """Of the conversation that is meant and of no other; it is open again afterwards where it had ended."""
    done = threadline(filled, "chat", *arguments, "-q", "one more thing")
    assert (done.returncode, done.stderr) == (0, b"")
    (row,) = elsewhere("SELECT session_id FROM messages WHERE role = 'user' ORDER BY id DESC LIMIT 1")
    assert row["session_id"][-6:] == went_into


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-r", "Fix the"], 1, ["may be any of these", "20260102_100000_cccccc", "20260101_110000_bbbbbb", "Telegram"]),
        (["-c", "build"], 1, ["There is no session “build”. Did you mean one of these?", "Fix the build"]),
        (["-r", "Salary"], 1, ["There is no session “Salary”. `threadline sessions list` shows them."]),
        (["-r", "20260103"], 1, ["There is no session “20260103”. `threadline sessions list` shows them."]),
        (["-r", ""], 2, ["Say which session"]),
        (["-r", " "], 2, ["Say which session"]),
        (["-c", "-r", "latest"], 2, ["Give either -c or -r, not both."]),
        (["-r", "x" * 300], 1, ["There is no session “" + "x" * 59 + "…”."]),
        (["-r", "\u200b\u200b"], 1, ["There is no session"]),
        (["-r", "\x1b[2J"], 1, ["There is no session “[2J”."]),
        (["-r", "%"], 1, ["There is no session “%”."]),
        (["-r", "'; DROP TABLE sessions; --"], 1, ["There is no session"]),
    ],
)
def test_a_name_that_is_not_clear_ends_with_a_sentence(
    filled: Path, elsewhere: Elsewhere, arguments: list[str], code: int, words: list[str]
) -> None:
    """Nothing is said or stored then; what is somebody else's is not there."""
    before = elsewhere("SELECT COUNT(*) AS messages FROM messages")
    done = threadline(filled, "chat", *arguments, "-q", "one more thing")
    told = done.stderr.decode()
    assert done.returncode == code, told
    for word in words:
        assert word in re.sub(r"\s+", " ", told.replace("│", " ")), told
    assert done.stdout == b""
    assert elsewhere("SELECT COUNT(*) AS messages FROM messages") == before


def test_before_a_command_they_are_refused_and_not_passed_over(filled: Path, elsewhere: Elsewhere) -> None:
    """Else a new session would begin in silence."""
    before = elsewhere("SELECT COUNT(*) AS messages FROM messages")
    done = threadline(filled, "-r", "latest", "chat", "-q", "hello")
    assert done.returncode == 2
    assert "`threadline chat -r SESSION`" in done.stderr.decode()
    assert elsewhere("SELECT COUNT(*) AS messages FROM messages") == before


def test_latest_without_any_session_is_told(home: Path) -> None:
    """There is nothing to go on with."""
    done = threadline(home, "chat", "-r", "latest", "-q", "hello")
    assert done.returncode == 1
    assert done.stderr.decode() == "There is no session yet. `threadline` alone begins one.\n"


def test_the_last_one_used_in_a_terminal_counts_wherever_it_was_begun(filled: Path, elsewhere: Elsewhere) -> None:
    """What was begun on Telegram and taken up here is what -c takes up next."""
    threadline(filled, "chat", "-c", "-q", "a word to the parser")
    threadline(filled, "chat", "-r", "Fix the build", "-q", "a word from the terminal")
    with at_a_terminal(filled, "-c") as person:
        person.sees("Going on with “Fix the build”: 3 messages", "> a word from the terminal", PROMPT)
    moves = elsewhere(
        "SELECT h.how, p.platform, h.person_id FROM place_history h JOIN places p ON p.id = h.place_id "
        "WHERE h.root_id = '20260102_100000_cccccc'"
    )
    assert moves == [{"how": "resume", "platform": "cli", "person_id": OWNER}]


def test_resume_at_the_prompt_shows_where_one_was_and_goes_on_there(filled: Path, elsewhere: Elsewhere) -> None:
    """A list with numbers, the panel of the chosen one, and nothing of it is shown twice."""
    with at_a_terminal(filled) as person:
        person.sees(PROMPT)
        person.enter("something of today")
        person.sees("Kept: something of today", "something of today (2")
        person.enter("/resume")
        person.sees("2 Fix the build: Telegram", "3 Fix the parser #2: terminal", "goes on with one")
        person.enter("/resume 3")
        shown = person.sees("Going on with “Fix the parser #2”: 4 messages", "╯")
        panel = shown[shown.index("Going on with “Fix the parser") :]
        assert "│ > the parser drops the last line" in panel
        assert "Kept: it reads too little" in panel
        person.enter("and one byte more")
        shown = person.sees("Kept: and one byte more")
        assert shown.count("Kept: it reads too little") == 1
        assert person.leave() == 0
    (row,) = elsewhere("SELECT session_id FROM messages WHERE content = 'and one byte more'")
    assert row["session_id"] == "20260101_110000_bbbbbb"
    (left,) = elsewhere("SELECT end_reason FROM sessions WHERE source = 'cli' ORDER BY rowid DESC LIMIT 1")
    assert left["end_reason"] == "resumed_other"


def test_resume_at_the_prompt_without_the_panel(filled: Path) -> None:
    """As the setting says: one line."""
    (filled / "config.yaml").write_text("display: {resume_display: minimal}\n", encoding="utf-8")
    with at_a_terminal(filled) as person:
        person.sees(PROMPT)
        person.enter("/resume fix the parser")
        shown = person.sees("Going on with “Fix the parser #2”: 4 messages", PROMPT)
        assert "it reads too little" not in shown
