"""Routes: where a key leads, and from where a conversation is reached."""

from __future__ import annotations

from session_store.models import NewMessage, StartSession
from session_store.sessions import end_session_row, insert_session
from tests.unit.queues.bench import GROUP, HOME, Bench, fence

KEY = "agent:main:telegram:dm:42"


async def test_an_unknown_key_leads_nowhere(bench: Bench) -> None:
    """There is no session before the first message."""
    assert await bench.routes.session_for(KEY) is None
    assert await bench.routes.of_session("unknown") == []


async def test_a_key_leads_to_the_live_tip(bench: Bench) -> None:
    """Also when compression has moved the conversation on without touching the route."""
    await bench.turns.finish(fence(await bench.claimed()), NewMessage("assistant", "hi"))
    bench.apply(lambda tx: end_session_row(tx, "session-t1", "compression"))
    bench.apply(lambda tx: insert_session(tx, "child", "telegram", parent_session_id="session-t1"))
    session = await bench.routes.session_for(KEY)
    assert session is not None
    assert session["id"] == "child"
    assert [route["session_key"] for route in await bench.routes.of_session("child")] == [KEY]


async def test_an_ended_session_is_still_where_the_key_leads(bench: Bench) -> None:
    """A thread that was answered once has a route, whatever became of its session."""
    await bench.claimed()
    bench.apply(lambda tx: end_session_row(tx, "session-t1", "idle"))
    session = await bench.routes.session_for(KEY)
    assert session is not None
    assert session["end_reason"] == "idle"


async def test_a_session_deleted_by_another_tool_leaves_no_dead_end(bench: Bench) -> None:
    """Most tools do not enforce foreign keys: the route stays, and the next message at the place begins anew."""
    await bench.turns.finish(fence(await bench.claimed()), NewMessage("assistant", "hi"))
    bench.connection.execute("PRAGMA foreign_keys = OFF")
    bench.connection.execute("DELETE FROM sessions WHERE id = 'session-t1'")
    bench.connection.execute("PRAGMA foreign_keys = ON")
    assert await bench.routes.session_for(KEY) is None
    claim = await bench.claimed("m:2", "t2")
    assert (claim.session_id, claim.created) == ("session-t2", True)
    session = await bench.routes.session_for(KEY)
    assert session is not None
    assert session["id"] == "session-t2"


async def test_a_conversation_knows_all_keys_that_lead_to_it(bench: Bench) -> None:
    """With the places to answer at."""
    await bench.effects.apply([StartSession("one", HOME, "telegram", "owner", "s1")])
    bench.apply(
        lambda tx: tx.run(
            "INSERT INTO places (id, platform, account, chat_type, chat, name, created_at)"
            " VALUES (9, 'telegram', 'main', 'group', '-7', 'The group', 0)"
        )
    )
    bench.apply(lambda tx: tx.run("INSERT INTO routes VALUES ('two', 's1', 9, NULL, 4e9, 4e9, 0)"))
    found = await bench.routes.of_session("s1")
    assert [(route["session_key"], route["chat"]) for route in found] == [("one", HOME.chat), ("two", GROUP.chat)]
