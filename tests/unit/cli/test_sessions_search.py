"""`threadline sessions search`: words, orders and what comes closest, as people and as programs read it."""

from __future__ import annotations

import json

import pytest

from session_store import SessionDB
from tests.unit.cli.conftest import Fill, Threadline


async def talk(db: SessionDB) -> None:
    """Two sessions of the owner, one of somebody else, and a result of a tool."""
    for session_id, owner, title in (("s1", "owner", "Deploy"), ("s2", "owner", None), ("s3", "p2", None)):
        await db.create_session(session_id, "cli", owner=owner, title=title)
    await db.append_message("s1", "user", "the deploy script is in ops/deploy.sh \x1b[31m")
    await db.append_message("s1", "tool", "deploy: done", tool_name="run", tool_call_id="c1")
    await db.append_message("s2", "assistant", "we talked about another deploy")
    await db.append_message("s3", "user", "their secret deploy")


def test_every_word_must_be_there(threadline: Threadline, fill: Fill) -> None:
    """Title, entrance, role, age and id, then the place with the match marked."""
    fill(talk)

    lines = threadline("sessions", "search", "deploy", "script").stdout.splitlines()

    assert lines == ["Deploy  (cli, user, now, s1)", "  the >>>deploy<<< >>>script<<< is in ops/>>>deploy<<<.sh [31m"]


def test_the_newest_come_first_and_only_what_the_owner_may_see(threadline: Threadline, fill: Fill) -> None:
    """Results of tools only when asked for."""
    fill(talk)

    def found(*more: str) -> list[tuple[str, str]]:
        hits = json.loads(threadline("sessions", "search", "deploy", "--json", *more).stdout)
        return [(hit["session_id"], hit["role"]) for hit in hits]

    assert found() == [("s2", "assistant"), ("s1", "user")]
    assert found("--role", "tool") == [("s1", "tool")]
    assert found("--limit", "1") == [("s2", "assistant")]
    assert found("--source", "web") == []


def test_what_the_agent_looked_for_is_not_in_the_way_of_what_was_said(threadline: Threadline, fill: Fill) -> None:
    """A call of the search tool repeats a question: it is found, but behind what states something."""

    async def asked(db: SessionDB) -> None:
        await talk(db)
        function = {"name": "session_search", "arguments": json.dumps({"query": "deploy script", "limit": 10})}
        for text in (None, "Let me look."):
            call = {"id": "c2", "type": "function", "function": function}
            await db.append_message("s2", "assistant", text, tool_calls=[call])
        await db.append_message("s2", "assistant", "The deploy script is the tool session_search\nby name.")

    fill(asked)

    hits = json.loads(threadline("search", "deploy", "script", "--json").stdout)

    assert [hit["snippet"].splitlines()[0] for hit in hits if hit["complete"]] == [
        "The >>>deploy<<< >>>script<<< is the tool session_search",
        "the >>>deploy<<< >>>script<<< is in ops/>>>deploy<<<.sh \x1b[31m",
        "Let me look.",
        "session_search",
    ]


def test_nothing_found_is_said(threadline: Threadline, fill: Fill) -> None:
    """With exit code 0: it is an answer."""
    fill(talk)

    done = threadline("sessions", "search", "unheard")

    assert (done.exit_code, done.stdout) == (0, "Nothing found.\n")


@pytest.mark.parametrize("query", ["", "   ", "AND"])
def test_a_query_without_words_is_wrong_usage(threadline: Threadline, fill: Fill, query: str) -> None:
    """Never an empty result."""
    fill(talk)

    done = threadline("sessions", "search", query)

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr


def test_what_comes_closest_is_shown_when_nothing_has_all_words(threadline: Threadline, fill: Fill) -> None:
    """Said before it; a program is told with each hit."""
    fill(talk)

    done = threadline("search", "deploying", "kubernetes")

    assert done.stdout.startswith("Nothing has all these words; these come closest:\n")
    assert ">>>deploy<<<" in done.stdout
    hits = json.loads(threadline("search", "deploying", "kubernetes", "--json").stdout)
    assert {hit["complete"] for hit in hits} == {False}
    assert [hit["complete"] for hit in json.loads(threadline("search", "script", "--json").stdout)] == [True]


def test_the_order_can_be_chosen(threadline: Threadline, fill: Fill) -> None:
    """Newest first by default."""
    fill(talk)

    def found(*more: str) -> list[str]:
        return [hit["session_id"] for hit in json.loads(threadline("search", "deploy", "--json", *more).stdout)]

    assert found() == found("--sort", "newest") == ["s2", "s1"]
    assert found("--sort", "oldest") == ["s1", "s2"]
    assert threadline("search", "deploy", "--sort", "worst").exit_code == 2
