"""Every slash command, as somebody types it on a platform and as somebody types it at the terminal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agents.base import AgentContext, AgentEvent, Final
from gateway.commands import Call, Command, CommandContext, CommandRegistry, Reply, default_registry
from gateway.owner import OWNER
from gateway.places import TERMINAL
from session_store import NewOutbox, PlaceRef
from tests.conftest import Elsewhere
from tests.unit.gateway_core.hall import Hall, failing

NAMES = [
    "branch",
    "compress",
    "handoff",
    "help",
    "link",
    "new",
    "resume",
    "retry",
    "search",
    "sessions",
    "sethome",
    "status",
    "stop",
    "title",
    "undo",
    "unlink",
    "usage",
    "whoami",
]


@pytest.fixture
def registry() -> CommandRegistry:
    """All commands."""
    return default_registry()


async def ask(hall: Hall, *texts: str, **how: Any) -> list[str]:
    """What is answered to these, in order."""
    before = len(hall.adapter.sent)
    for text in texts:
        await hall.say(text, **how)
        await hall.quiet()
    return hall.adapter.texts[before:]


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("/new", Call("new", "")),
        ("/new a title", Call("new", "a title")),
        ("  /NEW   a title \n", Call("new", "a title")),
        ("/new@gatebot a title", Call("new", "a title", "gatebot")),
        ("/title two\nlines", Call("title", "two\nlines")),
        ("/no-such_thing2 x", Call("no-such_thing2", "x")),
        ("hello", None),
        ("/", None),
        ("/etc/hosts is gone", None),
        ("/ new", None),
        ("//new", None),
        ("say /new", None),
        ("/new@", None),
        ("/1st", None),
    ],
)
def test_what_is_a_command_and_what_is_not(registry: CommandRegistry, text: str, call: Call | None) -> None:
    """A slash and one word, a bot's name perhaps, and the rest."""
    assert registry.parse(text) == call


@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    """Parsing never fails, and what it finds begins with a slash."""
    call = default_registry().parse(text)
    assert call is None or text.strip().startswith("/")


def test_the_commands_are_these(registry: CommandRegistry) -> None:
    """Each with a usage that names it and a summary."""
    assert sorted(command.name for command in registry.commands) == NAMES
    for command in registry.commands:
        assert command.usage.startswith(f"/{command.name}")
        assert command.summary


@pytest.mark.parametrize(("typed", "meant"), [("statsu", "status"), ("sesions", "sessions"), ("titel", "title")])
async def test_an_unknown_command_is_answered_with_the_nearest(hall: Hall, typed: str, meant: str) -> None:
    """Nothing else happens, and the agent is not asked."""
    async with hall.running():
        (answer,) = await ask(hall, f"/{typed} x")
    assert f"`/{typed}`" in answer
    assert f"`/{meant}`" in answer
    assert hall.agent.asked == []


async def test_an_unknown_command_that_resembles_nothing_names_the_help(hall: Hall) -> None:
    """No guess is better than a wild one."""
    async with hall.running():
        (answer,) = await ask(hall, "/qqqqqqqq")
    assert "/help" in answer


async def test_help_lists_every_command(hall: Hall, registry: CommandRegistry) -> None:
    """Also as /start, which Telegram sends when a chat begins."""
    async with hall.running():
        first, second = await ask(hall, "/help", "/start")
    assert first == second
    for command in registry.commands:
        assert command.usage in first


async def test_help_begins_with_what_may_be_done_here(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that is shown the history is talked with; one that is not is a notebook."""
    async with hall.running():
        (talk,) = await ask(hall, "/help")
        monkeypatch.setattr(hall.workshop.contexts, "history", False)
        (notebook,) = await ask(hall, "/help")
    assert talk.startswith("Just write, and I answer.")
    assert notebook.startswith("Tell me something and I keep it")


async def test_new_begins_a_session_and_keeps_the_former(hall: Hall, elsewhere: Elsewhere) -> None:
    """The next message goes to the new one, which has the title."""
    async with hall.running():
        await ask(hall, "before")
        old = await hall.session()
        (answer,) = await ask(hall, "/new  The  *next* chapter")
        new = await hall.session()
        await ask(hall, "after")
    assert "The \\*next\\* chapter" in answer
    assert new["title"] == "The *next* chapter"
    assert (new["owner"], new["source"], new["session_key"]) == ("owner", "telegram", "agent:main:telegram:dm:42")
    ended = await hall.db.get_session(old["id"])
    assert ended is not None
    assert (ended["end_reason"], ended["message_count"]) == ("new_command", 2)
    assert await hall.transcript() == [("user", "after"), ("assistant", "re: after")]
    assert len(elsewhere("SELECT id FROM sessions")) == 2


async def test_new_before_the_first_message(hall: Hall) -> None:
    """There is nothing to end."""
    async with hall.running():
        await ask(hall, "/new chapter one", "hello")
    session = await hall.session()
    assert (session["title"], session["message_count"]) == ("chapter one", 2)


async def test_a_title_that_another_session_has_changes_nothing(hall: Hall) -> None:
    """Neither /new nor /title; the answer names the title's holder."""
    async with hall.running():
        await ask(hall, "/new Chapter One", "hello")
        first = await hall.session()
        await ask(hall, "/new two", "hello")
        second = await hall.session()
        clash, again = await ask(hall, "/title chapter one", "/new CHAPTER ONE")
    assert first["id"] in clash.replace("\\", "")
    assert first["id"] in again.replace("\\", "")
    assert (await hall.session())["id"] == second["id"]
    assert (await hall.session())["title"] == "two"


async def test_title_shows_and_sets(hall: Hall) -> None:
    """The reply names what is stored, cleaned and without effect as Markdown."""
    async with hall.running():
        (none,) = await ask(hall, "/title")
        _, unnamed, named, shown = await ask(hall, "hello", "/title", "/title  My \u200b **plan** ", "/title")
    assert "no session" in none
    assert "no title" in unnamed
    assert "My \\*\\*plan\\*\\*" in named
    assert "My \\*\\*plan\\*\\*" in shown
    assert (await hall.session())["title"] == "My **plan**"


async def test_a_title_that_is_too_long_is_told(hall: Hall) -> None:
    """With its length and the limit."""
    async with hall.running():
        _, answer = await ask(hall, "hello", "/title " + "x" * 101)
    assert "101" in answer
    assert "100" in answer
    assert (await hall.session())["title"] is None


async def test_sessions_lists_those_one_may_see_newest_first(hall: Hall) -> None:
    """Not those of others; the current one is marked."""
    async with hall.running():
        await ask(hall, "mine alone", chat="43", user="43")
        await ask(hall, "/new first", "hello", "/new second", "hello")
        (answer,) = await ask(hall, "/sessions")
        (filtered,) = await ask(hall, "/sessions first")
        (nothing,) = await ask(hall, "/sessions qqq")
    lines = answer.split("\n")
    assert len(lines) == 2
    assert "second (this one)" in lines[0]
    assert "first" in lines[1]
    assert "mine alone" not in answer
    assert "second" not in filtered
    assert nothing == "No session matches."


async def test_search_finds_what_was_said_and_only_what_one_may_see(hall: Hall) -> None:
    """In all own sessions; others' words stay theirs."""
    async with hall.running():
        await ask(hall, "the zebra file is in the attic")
        await ask(hall, "/new other", "hello")
        (found,) = await ask(hall, "/search zebra")
        (foreign,) = await ask(hall, "/search zebra", chat="43", user="43")
        (usage,) = await ask(hall, "/search")
        (odd,) = await ask(hall, "/search *")
    assert "attic" in found
    assert foreign.startswith("Nothing found")
    assert "/search" in usage
    assert odd


async def test_status_tells_the_session_and_what_runs(hall: Hall) -> None:
    """The gateway's accounts are the owner's business, in private."""
    async with hall.running():
        (before,) = await ask(hall, "/status")
        await ask(hall, "/new plan", "hello")
        (after,) = await ask(hall, "/status")
        (other,) = await ask(hall, "/status", chat="43", user="43")
        (room,) = await ask(hall, "/status", chat="-5", chat_type="group")
    assert "No session here yet" in before
    assert "“plan”" in after
    assert "2 messages" in after
    assert "No turn is running" in after
    assert "telegram/main" in after
    assert "telegram/main" not in other
    assert "telegram/main" not in room


async def test_whoami_tells_person_place_and_sight(hall: Hall) -> None:
    """The owner, a named person, somebody allowed; in private and in a room."""
    async with hall.running():
        (owner,) = await ask(hall, "/whoami")
        (named,) = await ask(hall, "/whoami", chat="43", user="43")
        (guest,) = await ask(hall, "/whoami", chat="44", user="44", name="_Zoë_")
        (room,) = await ask(hall, "/whoami", chat="-5", chat_type="group", thread="17")
    assert owner.splitlines()[0] == "You are the owner (id `42`), in a direct chat on Telegram."
    assert "colleague" in named
    assert "\\_Zoë\\_" in guest
    assert "in a group on Telegram, topic 17." in room
    assert "only what was said in this room" in room


async def test_stop_with_nothing_to_stop(hall: Hall) -> None:
    """Before and after a turn."""
    async with hall.running():
        first, _, second = await ask(hall, "/stop", "hello", "/stop")
    assert first == second == "Nothing is running here."


async def test_replies_go_to_exactly_the_place_of_the_command(hall: Hall) -> None:
    """Topic and group included; in a room as a reply to the message, in private not."""
    async with hall.running():
        await ask(hall, "/whoami", chat="-5", chat_type="group", thread="17", number=7)
        await ask(hall, "/whoami", chat="-5", chat_type="group", number=8)
        await ask(hall, "/whoami", number=9)
    seen = [(one.place.chat, one.place.thread, one.reply_to) for one in hall.adapter.sent]
    assert seen == [("-5", "17", "7"), ("-5", "", "8"), ("42", "", None)]


async def test_a_command_delivered_again_does_nothing_again(hall: Hall, elsewhere: Elsewhere) -> None:
    """/new twice with one message is one new session and one answer."""
    async with hall.running():
        await ask(hall, "/new chapter", number=7)
        await hall.say("/new chapter", number=7)
        await hall.quiet()
    assert len(elsewhere("SELECT id FROM sessions")) == 1
    assert len(hall.adapter.sent) == 1


async def test_a_command_whose_outcome_was_not_known_is_done_once(
    hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error came after the commit: the next try finds it done."""
    monkeypatch.setattr("gateway.lanes.RETRY_SECONDS", 0.01)
    with failing(hall.db.inbox, "complete", 1, after=True):
        async with hall.running():
            await ask(hall, "/new chapter")
    assert len(elsewhere("SELECT id FROM sessions")) == 1
    assert len(hall.adapter.sent) == 1


async def test_a_command_that_breaks_is_set_aside_and_the_person_told(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not silence, and the next command works."""
    monkeypatch.setattr("gateway.lanes.RETRY_SECONDS", 0.01)

    async def broken(_context: CommandContext, _argument: str) -> Reply:
        await asyncio.sleep(0)
        msg = "*oops*"
        raise RuntimeError(msg)

    registry = hall.workshop.commands
    monkeypatch.setitem(registry._by_name, "whoami", Command("whoami", "/whoami", "x", broken))  # noqa: SLF001 - the only way in
    async with hall.running():
        (sorry,) = await ask(hall, "/whoami")
        (status,) = await ask(hall, "/status")
    assert "set aside" in sorry
    assert "\\*oops\\*" in sorry
    assert status
    (row,) = await hall.db.inbox.set_aside_rows()
    assert row["error"] == "RuntimeError: *oops*"


async def test_commands_at_the_terminal_are_the_same(hall: Hall, elsewhere: Elsewhere) -> None:
    """Worked at once, their effects stored, nothing sent anywhere."""
    desk, registry = hall.workshop.desk, hall.workshop.commands

    async def type_in(text: str, session_id: str | None = None) -> Reply:
        call = registry.parse(text)
        assert call is not None
        return await desk.local_command(TERMINAL, OWNER, session_id, call)

    begun = await type_in("/new plan")
    assert begun.session_id is not None
    assert (await type_in("/title other plan", begun.session_id)).text.endswith("“other plan”.")
    session = await hall.db.get_session(begun.session_id)
    assert session is not None
    assert (session["title"], session["source"], session["owner"]) == ("other plan", "cli", "owner")
    clash = await type_in("/new other plan", begun.session_id)
    assert clash.session_id is None
    assert begun.session_id in clash.text.replace("\\", "")
    assert (await type_in("/whoami")).text.startswith("You are the owner, in the terminal chat.")
    assert elsewhere("SELECT * FROM outbox") == []
    assert len(elsewhere("SELECT id FROM sessions")) == 1


async def test_new_behind_a_running_turn_comes_after_its_answer(hall: Hall) -> None:
    """The order of a chat is kept: answer first, then the new session."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        begun.set()
        await go_on.wait()
        yield Final(f"re: {context.text}")

    hall.agent.play = play
    async with hall.running():
        await hall.say("question")
        async with asyncio.timeout(20):
            await begun.wait()
        await hall.say("/new chapter")
        go_on.set()
        answer, reply = await hall.sent(2)
    assert answer == "re: question"
    assert "chapter" in reply
    assert (await hall.session())["message_count"] == 0


async def test_status_tells_what_is_on_its_way_and_why_it_is_late(hall: Hall) -> None:
    """A part that is tried again with its reason and time, what waits behind it, and what of late was lost."""
    async with hall.running():
        await hall.say("hello")
        await hall.sent(1)
    session = (await hall.session())["id"]
    here = PlaceRef("telegram", "main", "dm", "42")
    first, second, _ = await hall.db.outbox.add(
        [NewOutbox(here, "answer", text) for text in ("lost", "late", "behind")], session_id=session
    )
    await hall.db.outbox.begin(first, hall.holder)
    await hall.db.outbox.fail(first, "The chat has *blocked* us.")
    await hall.db.outbox.begin(second, hall.holder)
    await hall.db.outbox.retry(second, 3600.0, "Too many requests.")
    lines = (await status_of(hall)).splitlines()
    assert "1 part of answers waiting to be sent." in lines
    (again,) = [line for line in lines if "tried again" in line]
    assert again.startswith("A part is tried again (1 attempt so far, next ")
    assert again.endswith("from now): Too many requests.")
    (lost,) = [line for line in lines if "last day" in line]
    assert lost == "1 part of the last day could not be delivered: The chat has \\*blocked\\* us."
    await hall.db.outbox.drop([second])
    assert not any("tried again" in line for line in (await status_of(hall)).splitlines())


async def status_of(hall: Hall) -> str:
    """What /status says in the owner's terminal about the session of the direct chat."""
    session = (await hall.session())["id"]
    call = hall.workshop.commands.parse("/status")
    assert call is not None
    return (await hall.workshop.desk.local_command(TERMINAL, "owner", session, call)).text
