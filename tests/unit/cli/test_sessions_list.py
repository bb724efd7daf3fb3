"""`threadline sessions list|show|stats`: what there is, as people and as programs read it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from session_store import SessionDB, Usage
from tests.unit.cli.conftest import Fill, Threadline

KEYS = {
    *("id", "title", "source", "preview", "last_active"),
    *("started_at", "ended_at", "message_count", "model", "person"),
}


async def session(db: SessionDB, session_id: str, said: str = "hello", *, ago: float = 0, **facts: Any) -> None:
    """Make a session of the owner with one message, so many seconds ago."""
    then = time.time() - ago
    source = facts.pop("source", "cli")
    owner = facts.pop("owner", "owner")
    await db.create_session(session_id, source, owner=owner, started_at=then, **facts)
    await db.append_message(session_id, "user", said, timestamp=then)


def test_an_empty_home_has_no_sessions(threadline: Threadline) -> None:
    """In words, and as an empty array."""
    assert threadline("sessions", "list").stdout == "No sessions.\n"
    assert json.loads(threadline("sessions", "list", "--json").stdout) == []


def test_the_json_has_exactly_these_keys(threadline: Threadline, fill: Fill) -> None:
    """An array of objects, newest activity first."""

    async def work(db: SessionDB) -> None:
        await session(db, "older", "first line\nsecond line", ago=100, title="A title")
        await session(db, "newer")

    fill(work)

    rows = json.loads(threadline("sessions", "list", "--json").stdout)

    assert [row["id"] for row in rows] == ["newer", "older"]
    assert all(set(row) == KEYS for row in rows)
    assert (rows[1]["title"], rows[1]["preview"], rows[1]["message_count"]) == ("A title", "first line second line", 1)


def test_the_table_has_title_preview_age_and_id(threadline: Threadline, fill: Fill) -> None:
    """Without colours and without cutting where no terminal is."""

    async def work(db: SessionDB) -> None:
        await session(db, "20261129_120000_abcdef", "Where are we?", ago=7200, title="Über 日本")

    fill(work)

    printed = threadline("sessions", "list").stdout
    heading, row = printed.splitlines()

    assert not any(line.endswith(" ") for line in printed.splitlines())
    assert heading.split() == ["Title", "Preview", "Last", "active", "Id"]
    assert row.split("  ") == ["Über 日本", "Where are we?", "2 hours ago", "20261129_120000_abcdef"]


@pytest.mark.parametrize("columns", [60, 90, 100, 120, 160])
@pytest.mark.parametrize("more", [(), ("--all",)])
def test_no_width_of_a_terminal_cuts_an_id_or_a_time(
    threadline: Threadline, fill: Fill, monkeypatch: pytest.MonkeyPatch, columns: int, more: tuple[str, ...]
) -> None:
    """Title and preview give way; where that is not enough, a session takes two lines. Whose it is stays."""

    async def work(db: SessionDB) -> None:
        await session(db, "20261129_120000_abcdef01", "a long beginning " * 9, ago=59 * 60, title="Long title " * 9)

    fill(work)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("gateway.cli.sessions.listing.on_a_terminal", lambda: True)

    printed = threadline("sessions", "list", *more).stdout

    assert max(map(len, printed.splitlines())) <= columns
    assert "59 minutes ago" in printed
    assert "20261129_120000_abcdef01" in printed
    assert ("nobody" in printed) == bool(more)


def test_filters_come_before_the_limit(threadline: Threadline, fill: Fill) -> None:
    """The newest of the wanted ones, however many others are newer."""

    async def work(db: SessionDB) -> None:
        await session(db, "wanted", source="telegram", ago=50)
        for number in range(3):
            await session(db, f"other{number}")

    fill(work)

    rows = json.loads(threadline("sessions", "list", "--json", "--source", "telegram", "--limit", "1").stdout)

    assert [row["id"] for row in rows] == ["wanted"]


def test_other_peoples_sessions_are_not_listed(threadline: Threadline, fill: Fill) -> None:
    """The terminal is the owner's, and sees what the owner may see."""

    async def work(db: SessionDB) -> None:
        await session(db, "mine")
        await session(db, "theirs", owner="p2", title="Private")

    fill(work)

    assert [row["id"] for row in json.loads(threadline("sessions", "list", "--json").stdout)] == ["mine"]
    done = threadline("sessions", "show", "theirs")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("There is no session “theirs”.")


def test_show_prints_the_whole_talk(threadline: Threadline, fill: Fill) -> None:
    """Calls folded to count and names, results in short, nothing that acts."""

    async def work(db: SessionDB) -> None:
        await session(db, "s1", "evil \x1b[31mred\x07\nsecond", title="The title")
        calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
        await db.append_message("s1", "assistant", tool_calls=[*calls, *calls])
        await db.append_message("s1", "tool", "found\nit \x1b[2J" + "x" * 200, tool_name="look", tool_call_id="c1")
        await db.append_message("s1", "assistant", "There.")

    fill(work)

    shown = threadline("sessions", "show", "s1").stdout

    assert shown.startswith("The title\ns1, cli, begun 20")
    assert "user:\nevil [31mred\nsecond\n" in shown
    assert "assistant:\n[2 tool calls: look x2]\n" in shown
    assert "result of look: found it [2Jxxx" in shown
    assert shown.endswith("assistant:\nThere.\n")
    assert not {"\x1b", "\x07"} & set(shown)


def test_show_reads_whatever_the_length(threadline: Threadline, fill: Fill) -> None:
    """Page by page, each message once."""

    async def work(db: SessionDB) -> None:
        await db.create_session("long", "cli", owner="owner")
        for number in range(450):
            await db.append_message("long", "user", f"number {number}.")

    fill(work)

    lines = threadline("sessions", "show", "long").stdout.splitlines()

    assert [line for line in lines if line.startswith("number")] == [f"number {number}." for number in range(450)]


def test_show_json_is_the_export_object(threadline: Threadline, fill: Fill) -> None:
    """Valid JSON in which nothing acts, with the messages as they are."""
    said = "evil \x1b[31m \x9b31m \u202egnol \u2028 \x7f 日本"

    async def work(db: SessionDB) -> None:
        await session(db, "s1", said)

    fill(work)

    text = threadline("sessions", "show", "s1", "--json").stdout

    exported = json.loads(text)
    assert exported["id"] == "s1"
    assert [message["content"] for message in exported["messages"]] == [said]
    assert "日本" in text
    assert not {"\x1b", "\x9b", "\u202e", "\u2028", "\x7f"} & set(text)


@pytest.mark.parametrize("command", [("show",), ("rename", ""), ("delete", "--yes"), ("export", "-", "--session")])
def test_an_id_may_be_a_unique_beginning_or_a_title(
    threadline: Threadline, fill: Fill, command: tuple[str, ...]
) -> None:
    """Everywhere; an ambiguous one lists the candidates, an unknown one is a sentence: exit code 1."""

    async def work(db: SessionDB) -> None:
        await session(db, "20261129_100000_aaaaaa", title="First")
        await session(db, "20261129_110000_bbbbbb", title="Second")

    fill(work)
    name, *rest = command

    def call(ref: str) -> tuple[int, str, str]:
        arguments = [*rest, ref] if name == "export" else [ref, *rest]
        done = threadline("sessions", name, *arguments)
        return done.exit_code, done.stdout, done.stderr

    code, output, problem = call("20261129")
    assert (code, output) == (1, "")
    assert "may be any of these" in problem
    assert "20261129_100000_aaaaaa  First" in problem
    assert "20261129_110000_bbbbbb  Second" in problem
    code, output, problem = call("nothing like it")
    assert (code, output) == (1, "")
    assert problem == "There is no session “nothing like it”. `threadline sessions list` shows them.\n"
    code, output, _ = call("20261129_11")
    assert code == 0
    assert "20261129_110000_bbbbbb" in output
    code, output, _ = call("first")
    assert code == 0
    assert "20261129_100000_aaaaaa" in output


def test_stats_count_everything(threadline: Threadline, fill: Fill) -> None:
    """Totals, by entrance, size; the same as JSON."""

    async def work(db: SessionDB) -> None:
        await session(db, "a")
        await session(db, "b")
        await session(db, "c", source="telegram", owner="p2")

    fill(work)

    lines = threadline("sessions", "stats").stdout.splitlines()
    data = json.loads(threadline("sessions", "stats", "--json").stdout)

    assert lines[:-1] == [
        "Total sessions: 3",
        "Total messages: 3",
        "  cli: 2 sessions",
        "  telegram: 1 session",
        "Search index: ok",
    ]
    assert lines[-1].startswith("Database size: ")
    assert data.pop("size_bytes") > 0
    assert data.pop("usage")["calls"] == 0
    assert data == {"sessions": 3, "messages": 3, "by_source": {"cli": 2, "telegram": 1}, "search_index": "ok"}


def test_what_models_cost_is_shown_with_a_session_and_in_the_totals(threadline: Threadline, fill: Fill) -> None:
    """Over the whole conversation, reasoning inside what was written."""

    async def work(db: SessionDB) -> None:
        await session(db, "a")
        await db.usage.record("a", [Usage("r1", "m", 1000, 100, reasoning_tokens=40)], "turn")
        await db.end_session("a", "compression")
        await db.create_session("b", "cli", parent_session_id="a")
        await db.usage.record("b", [Usage("r2", "m", 1500, 200, cache_read_tokens=500)], "turn")

    fill(work)

    sentence = "2 calls of a model, 3,300 tokens: 3,000 read (500 of them from the cache), 300 written (40 of them "
    assert sentence + "reasoning)." in threadline("sessions", "show", "b").stdout.splitlines()
    assert sentence + "reasoning)." in threadline("sessions", "stats").stdout.splitlines()
    assert [row["request_id"] for row in json.loads(threadline("sessions", "show", "b", "--json").stdout)["usage"]] == [
        "r2"
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--limit", "0"),
        ("list", "--limit", "many"),
        ("list", "extra"),
        ("list", "--unknown"),
        ("show",),
        ("search",),
        ("rename", "only-an-id"),
        ("export",),
        ("prune", "--older-than", "-1"),
        ("lst",),
    ],
)
def test_wrong_usage_is_exit_code_2(threadline: Threadline, home: Path, arguments: tuple[str, ...]) -> None:
    """With a word on stderr, nothing on stdout, and nothing made."""
    done = threadline("sessions", *arguments)

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr
    assert list(home.iterdir()) == []
