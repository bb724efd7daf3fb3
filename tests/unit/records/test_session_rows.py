"""Session rows: made once, completed later, ended once, opened again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from session_store import InvalidArgument, NotFound, SessionDB, TitleTaken


async def test_what_was_given_at_birth_comes_back(db: SessionDB) -> None:
    """Every documented field; what was not given is null or zero, and the session is open."""
    assert (
        await db.create_session(
            session_id="s1",
            source="cli",
            model="m",
            model_config={"temperatur": "höher", "top_p": 1},
            system_prompt="be kind",
            user_id="u",
            parent_session_id=None,
        )
        == "s1"
    )
    row = await db.get_session("s1")
    assert row is not None
    given = {key: row[key] for key in ("id", "source", "model", "system_prompt", "user_id", "parent_session_id")}
    assert given == {
        "id": "s1",
        "source": "cli",
        "model": "m",
        "system_prompt": "be kind",
        "user_id": "u",
        "parent_session_id": None,
    }
    assert row["model_config"] == '{"temperatur": "höher", "top_p": 1}'
    assert (row["ended_at"], row["end_reason"], row["title"], row["owner"]) == (None, None, None, None)
    assert (row["message_count"], row["tool_call_count"], row["input_tokens"], row["api_call_count"]) == (0, 0, 0, 0)
    assert (row["root_id"], row["kind"], row["archived"]) == ("s1", "live", 0)
    assert row["last_active"] == row["started_at"]


async def test_an_unknown_session_is_none(db: SessionDB) -> None:
    """Not an error: callers ask whether there is one."""
    assert await db.get_session("nothing") is None


async def test_a_second_create_fills_what_is_empty_and_overwrites_nothing(db: SessionDB) -> None:
    """The later call never raises, whatever it brings."""
    await db.create_session("other", "cli", title="taken")
    await db.create_session("s1", "cli", model="first")
    await db.create_session("s1", "web", model="second", system_prompt="prompt", user_id="u", title="taken")
    await db.create_session(
        "s1", "web", system_prompt="another", user_id="v", parent_session_id="not there", place_id=999
    )
    row = await db.get_session("s1")
    assert row is not None
    assert (row["source"], row["model"], row["system_prompt"], row["user_id"]) == ("cli", "first", "prompt", "u")
    assert (row["title"], row["parent_session_id"]) == (None, None)
    await db.create_session("s1", "cli", title="free")
    await db.create_session("s1", "cli", title="later")
    row = await db.get_session("s1")
    assert row is not None
    assert row["title"] == "free"


async def test_many_creates_of_one_id_at_once_make_one_row(db: SessionDB) -> None:
    """No call fails, and each fills its part."""
    await asyncio.gather(
        *(db.create_session("s", "cli") for _ in range(10)),
        db.create_session("s", "cli", model="m"),
        db.create_session("s", "cli", system_prompt="p"),
    )
    row = await db.get_session("s")
    assert row is not None
    assert (row["model"], row["system_prompt"]) == ("m", "p")


async def test_a_parent_can_be_told_later_but_never_makes_a_ring(db: SessionDB) -> None:
    """A descendant, or the session itself, is not taken for a parent."""
    await db.create_session("a", "cli")
    await db.create_session("b", "cli", parent_session_id="a")
    await db.create_session("a", "cli", parent_session_id="b")
    await db.create_session("a", "cli", parent_session_id="a")
    await db.create_session("c", "cli")
    await db.create_session("c", "cli", parent_session_id="b")
    parents = {row["id"]: row["parent_session_id"] for row in await db.export_all()}
    assert parents == {"a": None, "b": "a", "c": "b"}


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"session_id": "", "source": "cli"}, InvalidArgument, "needs an id"),
        ({"session_id": "s", "source": ""}, InvalidArgument, "a source"),
        ({"session_id": "s", "source": "cli", "kind": "odd"}, InvalidArgument, "kind 'odd'.*branch"),
        ({"session_id": "s", "source": "cli", "parent_session_id": "gone"}, NotFound, "no session 'gone'"),
        ({"session_id": "s", "source": "cli", "model_config": {"x": object()}}, InvalidArgument, "JSON"),
        ({"session_id": "s", "source": "cli", "title": "mine"}, TitleTaken, "Session first"),
        ({"session_id": "s", "source": "cli", "place_id": 999}, InvalidArgument, "no place 999"),
    ],
)
async def test_a_create_that_cannot_be_says_why_and_leaves_nothing(
    db: SessionDB, arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    """The sentence names what is wrong; there is no half-made session."""
    await db.create_session("first", "cli", title="mine")
    with pytest.raises(error, match=says):
        await db.create_session(**arguments)
    assert await db.get_session("s") is None


async def test_the_first_end_reason_stays_until_the_session_is_opened_again(db: SessionDB) -> None:
    """A second end changes neither reason nor time."""
    await db.create_session("s", "cli")
    assert await db.end_session("s", end_reason="user_exit")
    ended = await db.get_session("s")
    assert ended is not None
    assert ended["ended_at"] is not None
    assert not await db.end_session("s", "idle")
    assert await db.get_session("s") == ended
    assert await db.reopen_session("s")
    row = await db.get_session("s")
    assert row is not None
    assert (row["ended_at"], row["end_reason"]) == (None, None)
    assert await db.end_session("s", "idle")
    row = await db.get_session("s")
    assert row is not None
    assert row["end_reason"] == "idle"


async def test_ending_and_opening_an_unknown_session_is_false(db: SessionDB) -> None:
    """Nothing to do, nothing raised."""
    assert not await db.end_session("nothing", "x")
    assert not await db.reopen_session("nothing")


async def test_children_inherit_the_owner_and_continuations_key_and_place_too(db: SessionDB, elsewhere: Any) -> None:
    """A tool run belongs to the same person but has no place to reply to; what is given wins."""
    elsewhere(
        """INSERT INTO places (id, platform, account, chat_type, chat, created_at)
        VALUES (7, 'telegram', 'main', 'dm', '1', 0)"""
    )
    await db.create_session("p", "telegram", owner="owner", room_id="r1", session_key="k", place_id=7)
    await db.create_session("branch", "telegram", parent_session_id="p", kind="branch")
    await db.create_session("tool", "tool", parent_session_id="p", kind="tool")
    await db.create_session("given", "telegram", parent_session_id="p", owner="p1", kind="branch", session_key="k2")
    await db.end_session("p", "compression")
    await db.create_session("next", "telegram", parent_session_id="p")
    scopes = {
        row["id"]: (row["owner"], row["room_id"], row["session_key"], row["place_id"], row["root_id"])
        for row in await db.export_all()
    }
    assert scopes == {
        "p": ("owner", "r1", "k", 7, "p"),
        "branch": ("owner", "r1", "k", 7, "branch"),
        "tool": ("owner", "r1", None, None, "tool"),
        "given": ("p1", "r1", "k2", 7, "given"),
        "next": ("owner", "r1", "k", 7, "p"),
    }


async def test_a_row_that_gets_an_owner_keeps_a_title_of_its_own(db: SessionDB) -> None:
    """If the new owner has the title already, the row takes the next number instead of failing."""
    await db.create_session("mine", "cli", owner="p1", title="Plan")
    await db.create_session("made by a library", "cli", title="plan")
    await db.create_session("made by a library", "cli", owner="p1")
    row = await db.get_session("made by a library")
    assert row is not None
    assert (row["owner"], row["title"], row["title_key"]) == ("p1", "plan #2", "plan #2")
