"""Pruning: ended conversations without activity; the dry run lists what the prune deletes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from session_store import InvalidArgument, NewMessage, SessionDB
from session_store.engine import Engine, StoreEngine
from session_store.messages import insert_message
from session_store.retention import prune
from session_store.sessions import Sessions
from session_store.tx import Rx, Tx

T = TypeVar("T")

DAY = 86_400.0


async def aged(db: SessionDB, session_id: str, days: float, *, ended: str | None = "user_exit", **columns: Any) -> None:
    """Make a session whose last message is so many days old."""
    then = time.time() - days * DAY
    source = columns.pop("source", "cli")
    await db.create_session(session_id, source, started_at=then - 60, **columns)
    await db.append_message(session_id, "user", session_id, timestamp=then)
    if ended is not None:
        await db.end_session(session_id, ended)


async def pruned(db: SessionDB, days: float, source: str | None = None) -> list[str]:
    """Prune, check that the dry run said the same, and return what went."""
    before = {row["id"] for row in await db.export_all()}
    listed = [row["id"] for row in await db.prune_candidates(days, source)]
    assert await db.prune_sessions(days, source) == len(listed)
    gone = before - {row["id"] for row in await db.export_all()}
    assert set(listed) <= gone
    assert await db.prune_candidates(days, source) == []
    return sorted(gone)


async def test_only_ended_sessions_without_recent_activity_go(db: SessionDB) -> None:
    """Open ones stay however old; the end itself may be recent."""
    await aged(db, "old and ended", 100)
    await aged(db, "old and open", 100, ended=None)
    await aged(db, "recent", 10)
    assert await pruned(db, 90) == ["old and ended"]
    assert await pruned(db, 5) == ["recent"]


async def test_the_default_is_90_days(db: SessionDB) -> None:
    """Both for the dry run and for the prune."""
    await aged(db, "91", 91)
    await aged(db, "89", 89)
    assert [row["id"] for row in await db.prune_candidates()] == ["91"]
    assert await db.prune_sessions() == 1


async def test_one_source_only(db: SessionDB) -> None:
    """The others are not touched."""
    await aged(db, "cli", 50)
    await aged(db, "tele", 50, source="telegram")
    assert await pruned(db, 30, "telegram") == ["tele"]


async def test_a_long_session_with_recent_activity_stays(db: SessionDB) -> None:
    """The start plays no part; nor does a last message whose clock stepped back."""
    await aged(db, "s", 400, ended=None)
    await db.append_message("s", "user", "today")
    await db.append_message("s", "user", "clock stepped back", timestamp=time.time() - 300 * DAY)
    await db.end_session("s", "user_exit")
    assert await pruned(db, 90) == []


async def test_a_chain_goes_as_a_whole_or_not_at_all(db: SessionDB) -> None:
    """Its tip decides; one line in the dry run, all segments gone."""
    for name, tip_age, tip_end in [("old", 100, "user_exit"), ("open", 100, None), ("young", 10, "user_exit")]:
        await aged(db, f"{name} 1", 300, ended="compression")
        await aged(db, f"{name} 2", 200, ended="compression", parent_session_id=f"{name} 1")
        await aged(db, f"{name} 3", tip_age, ended=tip_end, parent_session_id=f"{name} 2")
    assert [row["id"] for row in await db.prune_candidates(90)] == ["old 3"]
    assert await pruned(db, 90) == ["old 1", "old 2", "old 3"]


async def test_children_of_other_kinds_stay_without_a_parent(db: SessionDB) -> None:
    """A recent branch of an old conversation lives on."""
    await aged(db, "old", 100, ended="branched")
    await aged(db, "branch", 1, parent_session_id="old", kind="branch")
    assert await pruned(db, 90) == ["old"]
    row = await db.get_session("branch")
    assert row is not None
    assert row["parent_session_id"] is None


async def test_archived_conversations_are_kept(db: SessionDB, elsewhere: Any) -> None:
    """Also when only an older segment carries the mark."""
    await aged(db, "a", 100)
    await aged(db, "b 1", 200, ended="compression")
    await aged(db, "b 2", 100, parent_session_id="b 1")
    elsewhere("UPDATE sessions SET archived = 1 WHERE id IN ('a', 'b 1')")
    assert await pruned(db, 90) == []


@pytest.mark.parametrize(
    "work",
    [
        """INSERT INTO turns (id, root_id, session_id, lane, state, holder, fence, started_at)
        VALUES ('t', 's 1', 's 1', 'l', 'running', 'h', 1, 0)""",
        """INSERT INTO inbox (platform, account, dedupe_key, kind, place_id, session_id, lane, received_at)
        VALUES ('t', 'm', 'k', 'message', 1, 's 2', 'l', 0)""",
        """INSERT INTO inbox (platform, account, dedupe_key, kind, place_id, session_key, lane, received_at, state)
        VALUES ('t', 'm', 'k', 'message', 1, 'key', 'key', 0, 'taken')""",
        """INSERT INTO inbox (platform, account, dedupe_key, kind, place_id, lane, received_at)
        VALUES ('t', 'm', 'k', 'message', 1, 's 1', 0)""",
    ],
)
async def test_a_conversation_with_work_in_it_is_kept(db: SessionDB, elsewhere: Any, work: str) -> None:
    """A running turn, or accepted input by session, by route or by lane; done work does not count."""
    await aged(db, "s 1", 200, ended="compression")
    await aged(db, "s 2", 100, parent_session_id="s 1")
    elsewhere(
        "INSERT INTO places (id, platform, account, chat_type, chat, created_at) VALUES (1, 't', 'm', 'dm', '1', 0)"
    )
    elsewhere("INSERT INTO routes VALUES ('key', 's 2', 1, NULL, 0, 0, 0)")
    elsewhere(work)
    assert await pruned(db, 90) == []
    elsewhere("UPDATE turns SET state = 'done'")
    elsewhere("UPDATE inbox SET state = 'done'")
    assert await pruned(db, 90) == ["s 1", "s 2"]


async def test_chains_archives_and_work_that_stay_are_counted_once_each(db: SessionDB, elsewhere: Any) -> None:
    """Never ended, archived, at work: nobody wonders why a prune did not reach them. Recent ones do not count."""
    await aged(db, "gone", 100)
    await aged(db, "open", 100, ended=None)
    await aged(db, "open chain 1", 200, ended="compression")
    await aged(db, "open chain 2", 100, ended=None, parent_session_id="open chain 1")
    await aged(db, "archived", 100)
    await aged(db, "at work", 100)
    await aged(db, "recent", 1, ended=None)
    elsewhere("UPDATE sessions SET archived = 1 WHERE id = 'archived'")
    elsewhere(
        """INSERT INTO turns (id, root_id, session_id, lane, state, holder, fence, started_at)
        VALUES ('t', 'at work', 'at work', 'l', 'running', 'h', 1, 0)"""
    )
    assert await db.prune_kept_back(90) == {"open": 2, "archived": 1, "in_use": 1}
    assert await db.prune_kept_back(90, source="slack") == {"open": 0, "archived": 0, "in_use": 0}
    assert await pruned(db, 90) == ["gone"]


async def test_rows_of_other_tools_are_judged_by_their_messages(db: SessionDB, elsewhere: Any) -> None:
    """An old start does not make a recent conversation old."""
    now = time.time()
    for session_id, talked in {"recent": now, "old": now - 200 * DAY}.items():
        elsewhere(
            "INSERT INTO sessions (id, source, started_at, ended_at, end_reason) VALUES (?, 'cli', 1, ?, 'x')",
            session_id,
            now,
        )
        elsewhere("INSERT INTO messages (session_id, role, timestamp) VALUES (?, 'user', ?)", session_id, talked)
    assert await pruned(db, 90) == ["old"]


@pytest.mark.parametrize("days", [-1, float("nan"), float("inf")])
async def test_days_that_are_none_are_refused(db: SessionDB, days: float) -> None:
    """Nothing is deleted by a wrong number."""
    await aged(db, "s", 100)
    with pytest.raises(InvalidArgument, match="no number of days"):
        await db.prune_sessions(days)
    with pytest.raises(InvalidArgument, match="no number of days"):
        await db.prune_candidates(days)
    assert await db.get_session("s") is not None


async def test_what_wakes_up_between_the_dry_run_and_the_prune_is_kept(home: Path) -> None:
    """Each conversation is judged again in the transaction that would delete it."""
    engine = StoreEngine(home / "state.db")
    await engine.open()
    try:
        sessions = Sessions(engine)
        await sessions.create_session("s", "cli", started_at=1)
        await sessions.end_session("s", "user_exit")
        late = Late(engine, lambda tx: insert_message(tx, "s", NewMessage("user", "still here")))
        assert await prune(late, time.time() - DAY, None) == 0
        assert late.candidates == ["s"]
        assert await sessions.get_session("s") is not None
    finally:
        await engine.close()


class Late:
    """An engine in which something happens between a read and the write after it."""

    def __init__(self, engine: Engine, meanwhile: Callable[[Tx], object]) -> None:
        self._engine = engine
        self._meanwhile = meanwhile
        self.candidates: list[str] = []

    async def read(self, query: Callable[[Rx], T], *, timeout: float | None = None) -> T:  # noqa: ASYNC109 - the protocol
        """Remember what was found, then let the other thing happen."""
        found = await self._engine.read(query, timeout=timeout)
        self.candidates += [row["id"] for row in cast("list[dict[str, str]]", found)]
        await self._engine.write(self._meanwhile)
        return found

    async def write(self, op: Callable[[Tx], T], *, size: int = 0) -> T:
        """As always."""
        return await self._engine.write(op, size=size)
