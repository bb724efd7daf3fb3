"""What a prune tells: what the asker may see of it, and what stays although it is old."""

from __future__ import annotations

import time

from session_store import SessionDB, Visibility

DAY = 86_400.0


async def aged(db: SessionDB, session_id: str, *, owner: str = "owner", ended: bool = True) -> None:
    """Make a session whose last message is a hundred days old."""
    then = time.time() - 100 * DAY
    await db.create_session(session_id, "cli", started_at=then, owner=owner)
    await db.append_message(session_id, "user", "hello", timestamp=then)
    if ended:
        await db.end_session(session_id, "user_exit")


async def test_an_asker_sees_only_their_own_candidates(db: SessionDB) -> None:
    """The number of the others is the difference to what a library caller sees."""
    await aged(db, "mine")
    await aged(db, "theirs", owner="p2")

    mine = await db.prune_candidates(visible_to=Visibility(frozenset({"owner"})))

    assert [row["id"] for row in mine] == ["mine"]
    assert len(await db.prune_candidates()) == 2


async def test_what_is_old_and_stays_is_counted_by_its_reason(db: SessionDB) -> None:
    """Never ended, archived; what is pruned or recent is not among it."""
    await aged(db, "open", ended=False)
    await aged(db, "another open", ended=False)
    await aged(db, "goes")
    await db.create_session("recent", "cli")

    assert await db.prune_kept_back() == {"open": 2, "archived": 0, "in_use": 0}
    assert await db.prune_kept_back(source="web") == {"open": 0, "archived": 0, "in_use": 0}
    assert await db.prune_kept_back(200) == {"open": 0, "archived": 0, "in_use": 0}
