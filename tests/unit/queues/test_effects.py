"""Effects of commands: /new, /title and /stop as the store sees them."""

from __future__ import annotations

import pytest

from session_store.errors import TitleTaken
from session_store.models import RequestStop, Retitle, StartSession
from session_store.sessions import end_session_row, insert_session
from tests.unit.queues.bench import HOME, Bench

KEY = "agent:main:telegram:dm:42"
NEW = StartSession(KEY, HOME, "telegram", "owner", "fresh", person_id="owner", title="Plans", model="m", user_id="42")


async def test_a_fresh_session_takes_the_route_and_ends_the_former_one(bench: Bench) -> None:
    """Both happen at once; the row of the new session is there before its first message."""
    await bench.claimed()
    assert await bench.effects.apply([NEW]) == ["fresh"]
    former, fresh = bench.rows("SELECT * FROM sessions ORDER BY rowid")
    assert (former["id"], former["end_reason"]) == ("session-t1", "new_command")
    assert (fresh["title"], fresh["owner"], fresh["session_key"], fresh["place_id"]) == ("Plans", "owner", KEY, 1)
    session = await bench.routes.session_for(KEY)
    assert session is not None
    assert session["id"] == "fresh"


async def test_a_repeated_start_changes_nothing(bench: Bench) -> None:
    """It is known by the id of the new session."""
    await bench.effects.apply([NEW])
    before = bench.dump()
    assert await bench.effects.apply([NEW]) == ["fresh"]
    assert bench.dump() == before


async def test_a_start_with_a_taken_title_starts_nothing(bench: Bench) -> None:
    """The former session stays as it is and the person is told."""
    await bench.claimed()
    bench.apply(lambda tx: insert_session(tx, "other", "cli", owner="owner", title="plans"))
    before = bench.dump()
    with pytest.raises(TitleTaken):
        await bench.effects.apply([NEW])
    assert bench.dump() == before


async def test_without_a_route_the_named_session_is_left(bench: Bench) -> None:
    """Terminal and web name the session they are in; whichever id they hold, its conversation ends."""
    bench.apply(lambda tx: insert_session(tx, "old", "cli", owner="owner"))
    bench.apply(lambda tx: end_session_row(tx, "old", "compression"))
    bench.apply(lambda tx: insert_session(tx, "tip", "cli", parent_session_id="old"))
    await bench.effects.apply([StartSession(None, HOME, "cli", "owner", "fresh", leaves="old")])
    ended = {row["id"]: row["end_reason"] for row in bench.rows("SELECT id, end_reason FROM sessions")}
    assert ended == {"old": "compression", "tip": "new_command", "fresh": None}
    assert bench.value("SELECT COUNT(*) FROM routes") == 0


async def test_a_start_without_anything_before_it_is_fine(bench: Bench) -> None:
    """The first command of a terminal may be /new."""
    start = StartSession(None, HOME, "cli", "owner", "fresh", leaves="never stored")
    assert await bench.effects.apply([start]) == ["fresh"]


async def test_a_session_that_other_places_share_is_left_and_not_ended(bench: Bench) -> None:
    """/new here does not cut the conversation off elsewhere."""
    await bench.claimed()
    bench.apply(lambda tx: tx.run("INSERT INTO routes VALUES ('elsewhere', 'session-t1', 1, NULL, 0, 0, 0)"))
    await bench.effects.apply([NEW])
    assert bench.value("SELECT end_reason FROM sessions WHERE id = 'session-t1'") is None


async def test_a_title_is_set_and_removed(bench: Bench) -> None:
    """The result is the title as it is stored."""
    await bench.effects.apply([NEW])
    assert await bench.effects.apply([Retitle("fresh", "  Other\u200b  plans ")]) == ["Other plans"]
    assert await bench.effects.apply([Retitle("fresh", None)]) == [None]
    assert bench.value("SELECT title FROM sessions") is None


async def test_one_impossible_effect_undoes_all(bench: Bench) -> None:
    """Effects of one command belong together."""
    bench.apply(lambda tx: insert_session(tx, "other", "cli", owner="owner", title="Taken"))
    before = bench.dump()
    with pytest.raises(TitleTaken):
        await bench.effects.apply([NEW, Retitle("fresh", "taken")])
    assert bench.dump() == before


async def test_stop_says_whether_anything_runs(bench: Bench) -> None:
    """The person is told the truth."""
    assert await bench.effects.apply([RequestStop("session-t1", "owner")]) == [False]
    await bench.claimed()
    assert await bench.effects.apply([RequestStop("session-t1", "owner")]) == [True]
