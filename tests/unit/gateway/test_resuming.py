"""What somebody means who types a name, an id, a piece of one, or something else."""

from __future__ import annotations

import pytest

from gateway.resuming import meant, stripped
from session_store import SessionDB, Visibility

SEES = Visibility(frozenset({"owner", "room1"}))


@pytest.fixture
async def sessions(db: SessionDB) -> SessionDB:
    """Some of the owner's, one of a room, and one of somebody else."""
    await db.create_session("20260101_100000_aaaaaa", "cli", owner="owner", title="Fix the parser", started_at=1)
    await db.create_session("20260101_110000_bbbbbb", "telegram", owner="owner", title="Fix the build", started_at=2)
    await db.create_session(
        "20260102_100000_cccccc", "cli", owner="room1", room_id="room1", title="Deploy", started_at=3
    )
    await db.create_session("20260103_100000_dddddd", "cli", owner="owner", title="deploy", started_at=4)
    await db.create_session("20260104_100000_eeeeee", "cli", owner="p2", title="Secret plans", started_at=5)
    return db


async def ids(db: SessionDB, name: str, here: str | None = None) -> list[str]:
    """The last six characters of what is found."""
    return [row["id"][-6:] for row in (await meant(db, name, SEES, here=here)).found]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Fix the parser", ["aaaaaa"]),
        ("fix THE parser", ["aaaaaa"]),
        ('"Fix the parser"', ["aaaaaa"]),
        ("“Fix the parser”", ["aaaaaa"]),
        ("[20260101_100000_aaaaaa]", ["aaaaaa"]),
        ("`20260101_100000_aaaaaa`", ["aaaaaa"]),
        ("<Fix the p…>", ["aaaaaa"]),
        ("20260103", ["dddddd"]),
        ("20260101", ["bbbbbb", "aaaaaa"]),
        ("Fix the", ["bbbbbb", "aaaaaa"]),
        ("deploy", ["dddddd", "cccccc"]),
        ("latest", ["dddddd"]),
        ("LATEST", ["dddddd"]),
        ("Secret plans", []),
        ("20260104", []),
        ("20260104_100000_eeeeee", []),
        ("%", []),
        ("x" * 101, []),
        ("\u200b\u200b", []),
        ('""', []),
        ("\x1b[31m", []),
    ],
)
async def test_a_name_means_what_the_asker_may_see(sessions: SessionDB, name: str, found: list[str]) -> None:
    """The same title of two owners is ambiguous; what is somebody else's is not there."""
    assert await ids(sessions, name) == found


async def test_the_form_of_the_letters_makes_no_difference(db: SessionDB) -> None:
    """Composed or not, in capitals or not: it is the same title."""
    await db.create_session("s", "cli", owner="owner", title="Caf\u00e9 \u00dcber")
    assert await ids(db, "cafe\u0301 u\u0308ber") == ["s"]


async def test_latest_passes_over_the_session_one_is_in(sessions: SessionDB) -> None:
    """Whichever segment of it is named."""
    await sessions.end_session("20260103_100000_dddddd", "compression")
    await sessions.create_session("20260103_110000_ffffff", "cli", parent_session_id="20260103_100000_dddddd")
    assert await ids(sessions, "latest", here="20260103_100000_dddddd") == ["cccccc"]


async def test_only_compression_is_followed_to_the_tip(db: SessionDB) -> None:
    """Branches and runs of tools are conversations of their own, and so is a child of a session that just ended."""
    await db.create_session("root", "cli", owner="owner", title="Plans")
    await db.create_session("branch", "cli", parent_session_id="root", kind="branch")
    await db.create_session("tool", "tool", parent_session_id="root", kind="tool")
    assert await ids(db, "Plans") == ["root"]
    await db.end_session("root", "user_exit")
    await db.create_session("child", "cli", parent_session_id="root")
    assert await ids(db, "root") == ["root"]
    await db.reopen_session("root")
    await db.end_session("root", "compression")
    await db.create_session("tip", "cli", parent_session_id="root", title="Plans #2")
    await db.end_session("tip", "compression")
    await db.create_session("last", "cli", parent_session_id="tip", title="Plans #3")
    for name in ("root", "tip", "last", "Plans", "Plans #2", "plans #3", "roo"):
        assert await ids(db, name) == ["last"], name


async def test_an_unknown_name_gets_what_comes_close(sessions: SessionDB) -> None:
    """Words within a title, else titles that are written alike; never somebody else's."""
    assert [row["title"] for row in (await meant(sessions, "build", SEES)).similar] == ["Fix the build"]
    assert [row["title"] for row in (await meant(sessions, "Fixx teh bild", SEES)).similar] == ["Fix the build"]
    for name in ("plans", "Secret plan", "Secert plans", "20260104_100000_eeeeef"):
        assert "Secret plans" not in str((await meant(sessions, name, SEES)).similar), name
    assert (await meant(sessions, "something else entirely", SEES)).similar == []


async def test_the_words_name_every_candidate(sessions: SessionDB) -> None:
    """Each as the caller writes it; a name that is ambiguous is told from one that is unknown."""
    write = lambda row: f"- {row['id']}"  # noqa: E731 - short
    ambiguous = (await meant(sessions, "deploy", SEES)).unclear("deploy", write, str)
    assert ambiguous.splitlines() == [
        "“deploy” may be any of these; give more of the title or the id:",
        "- 20260103_100000_dddddd",
        "- 20260102_100000_cccccc",
    ]
    unknown = (await meant(sessions, "Secret plans", SEES)).unclear("Secret plans", write, str)
    never = (await meant(sessions, "Sacred plans", SEES)).unclear("Sacred plans", write, str)
    assert unknown == "There is no session “Secret plans”."
    assert never == "There is no session “Sacred plans”."


@pytest.mark.parametrize(
    ("typed", "name"),
    [("", ""), ('"', '"'), ('""', ""), ("[[x]]", "x"), ("«a»", "a"), ("(a) b", "(a) b"), ("'a' or 'b'", "a' or 'b")],
)
def test_what_stands_around_a_name_is_left_out(typed: str, name: str) -> None:
    """Only pairs that hold the whole."""
    assert stripped(typed) == name
