"""What is not the asker's does not exist: every way in which sessions are listed, found, read, named or taken up."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.resuming import meant
from gateway.tools.session_search import SessionSearchTool
from session_store import NotFound, PlaceRef, ResumeSession, SessionDB, StartSession, TitleTaken, Visibility
from tests.unit.gateway_core.hall import Hall

#: Who must not be seen: another person, a room where the asker never spoke, nobody, a blank.
FOREIGN = ["p0123456789ab", "r0123456789ab", None, ""]
SEES = Visibility(frozenset({"owner", "r_mine"}))
BLANK = Visibility(frozenset({""}))
NOTHING = Visibility(frozenset())
CHAT = PlaceRef("telegram", "main", "dm", "42")

Look = Callable[[SessionDB, Visibility, str], Awaitable[object]]


async def _list(db: SessionDB, sees: Visibility, _name: str) -> object:
    return await db.list_sessions(visible_to=sees)


async def _list_by_title(db: SessionDB, sees: Visibility, name: str) -> object:
    return await db.list_sessions(visible_to=sees, search=name)


async def _resolve(db: SessionDB, sees: Visibility, name: str) -> object:
    return await db.resolve_session(name, visible_to=sees)


async def _find(db: SessionDB, sees: Visibility, name: str) -> object:
    return await db.find_sessions(name, visible_to=sees)


async def _by_title(db: SessionDB, sees: Visibility, name: str) -> object:
    return await db.resolve_session_by_title(name, visible_to=sees)


async def _meant(db: SessionDB, sees: Visibility, name: str) -> object:
    result = await meant(db, name, sees)
    return [*result.found, *result.similar]


async def _latest(db: SessionDB, sees: Visibility, _name: str) -> object:
    return (await meant(db, "latest", sees)).found


async def _last_used(db: SessionDB, sees: Visibility, _name: str) -> object:
    return await db.last_used_at(CHAT, visible_to=sees)


async def _search(db: SessionDB, sees: Visibility, _name: str) -> object:
    return await db.search_messages("zebra", visible_to=sees)


async def _search_inside_words(db: SessionDB, sees: Visibility, _name: str) -> object:
    return await db.search_messages("ebr", visible_to=sees)


async def _export(db: SessionDB, sees: Visibility, _name: str) -> object:
    return [one["id"] async for one in db.iter_sessions(visible_to=sees)]


async def _prune(db: SessionDB, sees: Visibility, _name: str) -> object:
    return await db.prune_candidates(0, visible_to=sees)


LOOKS: list[Look] = [
    *(_list, _list_by_title, _resolve, _find, _by_title, _meant, _latest, _last_used),
    *(_search, _search_inside_words, _export, _prune),
]
NAMES = ["theirs", "their", "Salary", "SALARY", "Sal", "Salaries"]


@pytest.fixture(params=FOREIGN)
async def foreign(db: SessionDB, request: pytest.FixtureRequest) -> SessionDB:
    """A store with one session that is somebody else's, or nobody's, and ended."""
    await db.create_session("theirs", "telegram", owner=request.param, title="Salary")
    await db.append_message("theirs", "user", "the zebra earns more")
    await db.end_session("theirs", "user_exit")
    return db


@pytest.mark.parametrize("sees", [SEES, BLANK, NOTHING], ids=["somebody", "a blank", "nobody"])
@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.__name__)
async def test_no_query_shows_it(foreign: SessionDB, look: Look, sees: Visibility) -> None:
    """By id, the beginning of it, title, beginning of the title, something like it, and words that were said."""
    for name in NAMES:
        assert not await look(foreign, sees, name)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": "zebra"},
        {"query": "Salary"},
        {"session_id": "theirs"},
        {"session_id": "theirs", "around_message_id": 1},
    ],
    ids=["browse", "discover", "by title", "read", "scroll"],
)
async def test_no_tool_of_an_agent_shows_it(foreign: SessionDB, arguments: dict[str, Any]) -> None:
    """In all its shapes; the answer is that for a session that never was."""
    told = await SessionSearchTool(foreign, SEES, None).call(arguments)
    never = {name: "nevers" if value == "theirs" else value for name, value in arguments.items()}
    assert told.replace("theirs", "nevers") == await SessionSearchTool(foreign, SEES, None).call(never)
    assert not json.loads(told).get("results")
    for word in ("Salary", "earns"):
        assert word not in told.replace(json.dumps(arguments.get("query", "")), "")


async def test_no_effect_reaches_it(foreign: SessionDB) -> None:
    """Taken up by its id, it is not there, and nothing about it has changed."""
    before = await foreign.get_session("theirs")
    with pytest.raises(NotFound) as refused:
        await foreign.apply([ResumeSession("theirs", CHAT, SEES, "key", "owner")])
    with pytest.raises(NotFound) as unknown:
        await foreign.apply([ResumeSession("nevers", CHAT, SEES, "key", "owner")])
    assert str(refused.value) == str(unknown.value)
    assert await foreign.get_session("theirs") == before


async def test_its_title_is_free_for_others(foreign: SessionDB) -> None:
    """Neither a refusal nor a number tells that somebody has it; one's own is named."""
    await foreign.apply([StartSession(None, CHAT, "cli", "owner", "mine", title="Salary")])
    mine = await foreign.get_session("mine")
    assert mine is not None
    assert mine["title"] == "Salary"
    await foreign.create_session("other", "cli", owner="owner")
    assert await foreign.automatic_titles.give("other", "Salary") == "Salary #2"
    with pytest.raises(TitleTaken, match="Session mine already has the title"):
        await foreign.set_session_title("other", "SALARY")


@pytest.mark.parametrize("command", ["/sessions", "/sessions salary", "/search zebra", "/resume", "/resume latest"])
async def test_no_command_shows_it(hall: Hall, command: str) -> None:
    """On a platform, to a person who is served there."""
    async with hall.running():
        await hall.say("/new Salary")
        await hall.say("the zebra earns more")
        await hall.quiet()
        await hall.say("hello", chat="43", user="43")
        await hall.say(command, chat="43", user="43")
        await hall.quiet()
    answer = hall.adapter.texts[-1]
    assert "Salary" not in answer
    assert "earns" not in answer
