"""The transaction *compress*, on a real store: one child, nothing lost, nothing copied, and lineage as documented."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from session_store import Compress, Fence, FenceLost, NewInbox, PlaceRef, SessionDB, Usage
from tests.conftest import Elsewhere
from tests.gateways import threadline
from tests.unit.queues.bench import incoming, never, request

HOME = PlaceRef("telegram", "main", "dm", "42")

# The two lineage queries that the store's users know, in our words.
ANCESTORS_OR_DESCENDANTS = """
WITH RECURSIVE descendants AS (
    SELECT * FROM sessions WHERE id = ?
    UNION ALL
    SELECT s.* FROM sessions s JOIN descendants d ON s.parent_session_id = d.id
)
SELECT id, title, started_at FROM descendants
"""
UPWARDS = """
WITH RECURSIVE lineage AS (
    SELECT * FROM sessions WHERE id = ?
    UNION ALL
    SELECT s.* FROM sessions s JOIN lineage l ON s.id = l.parent_session_id
)
SELECT id, title, started_at, parent_session_id FROM lineage
"""


@pytest.fixture
async def holder(db: SessionDB) -> AsyncIterator[str]:
    """A living process."""
    token = await db.processes.register("gateway", ["telegram/main"], {})
    yield token
    await db.processes.remove(token)


async def held(db: SessionDB, session_id: str, holder: str, work_id: str = "w1") -> Fence:
    """The conversation, held."""
    taken = await db.holding.take(session_id, holder, work_id, "compression")
    assert taken.fence is not None
    return taken.fence


async def talk(db: SessionDB, session_id: str, *texts: str) -> list[int]:
    """Exchanges; returns the ids of the questions."""
    ids = []
    for text in texts:
        ids.append(await db.append_message(session_id, "user", text))
        await db.append_message(session_id, "assistant", f"re: {text}")
    return ids


async def contents(db: SessionDB, session_id: str) -> list[object]:
    """What is seen of a conversation."""
    return [message["content"] for message in await db.get_messages_as_conversation(session_id)]


async def test_a_compressed_conversation_is_seen_as_summary_and_tail_from_any_of_its_ids(
    db: SessionDB, holder: str, elsewhere: Elsewhere
) -> None:
    """Nothing is copied; appending to the parent goes to the child."""
    await db.create_session("s", "cli", owner="owner", title="Garden", system_prompt="Be kind.", model="m")
    ids = await talk(db, "s", "one", "two", "three")
    fence = await held(db, "s", holder)
    done = await db.compressions.compress(Compress(fence, "s", "s2", "of one and two", ids[2], title="Garden #2"))
    await db.holding.let_go(fence)
    assert (done.session_id, done.title) == ("s2", "Garden #2")
    await db.append_message("s", "user", "four")
    for any_id in ("s", "s2"):
        summary, *tail = await contents(db, any_id)
        assert str(summary).endswith("of one and two")
        assert tail == ["three", "re: three", "four"]
    assert elsewhere("SELECT session_id, COUNT(*) AS n FROM messages GROUP BY session_id ORDER BY session_id") == [
        {"session_id": "s", "n": 6},
        {"session_id": "s2", "n": 2},
    ]
    assert await db.resolve_session_by_title("garden") == "s2"
    assert [row["id"] for row in await db.list_sessions()] == ["s2"]
    exported = await db.export_session("s2")
    assert exported is not None
    assert [message["role"] for message in exported["messages"]] == ["system", "user"]
    assert exported["message_count"] == 2


async def test_show_names_the_summary_as_what_it_is(home: Path, db: SessionDB, holder: str) -> None:
    """Between what was said; it is no word of anybody."""
    await db.people.sync_config({}, {})
    await db.create_session("s", "cli", owner="owner")
    ids = await talk(db, "s", "one", "two")
    fence = await held(db, "s", holder)
    await db.compressions.compress(Compress(fence, "s", "s2", "of one", ids[1]))
    shown = await threadline(home, "sessions", "show", "s2")
    assert "summary of what came before, as the agent sees it:\nof one" in shown.out


async def test_what_is_appended_while_the_summary_is_made_is_seen_in_the_child(db: SessionDB, holder: str) -> None:
    """The mark was made before; whatever came after it is in sight."""
    await db.create_session("s", "cli")
    ids = await talk(db, "s", "one", "two")
    fence = await held(db, "s", holder)
    last = (await db.get_messages("s"))[-1]["id"]
    await db.append_message("s", "user", "meanwhile")
    await db.compressions.compress(Compress(fence, "s", "s2", "everything", last + 1))
    assert (await contents(db, "s2"))[1:] == ["meanwhile"]
    del ids


async def test_the_same_compression_again_changes_nothing(db: SessionDB, holder: str, elsewhere: Elsewhere) -> None:
    """An attempt of which nobody knows whether it was written is simply made again."""
    await db.create_session("s", "cli", title="X")
    ids = await talk(db, "s", "one", "two")
    fence = await held(db, "s", holder)
    spent = Usage("call-1", "m", input_tokens=300, output_tokens=20)
    wanted = Compress(fence, "s", "s2", "one", ids[1], title="X #2", usage=[spent])
    first = await db.compressions.compress(wanted)
    before = elsewhere("SELECT * FROM sessions ORDER BY id"), elsewhere("SELECT * FROM messages ORDER BY id")
    assert await db.compressions.compress(wanted) == first
    assert (elsewhere("SELECT * FROM sessions ORDER BY id"), elsewhere("SELECT * FROM messages ORDER BY id")) == before
    assert (await db.usage.of_conversation("s"))["total_tokens"] == 320


async def test_two_processes_that_compress_at_once_make_one_child(
    db: SessionDB, holder: str, elsewhere: Elsewhere
) -> None:
    """Only one of them holds the conversation; a fence that was lost writes nothing."""
    other = await db.processes.register("terminal", [], {})
    await db.create_session("s", "cli")
    ids = await talk(db, "s", "one", "two")
    both = await asyncio.gather(
        db.holding.take("s", holder, "w1", "compression"), db.holding.take("s", other, "w2", "compression")
    )
    assert sorted(one.status for one in both) == ["busy", "held"]
    won = next(one.fence for one in both if one.fence is not None)
    again = await held(db, "s", won.holder, won.turn_id)
    with pytest.raises(FenceLost):
        await db.compressions.compress(Compress(won, "s", "lost", "one", ids[1]))
    await db.compressions.compress(Compress(again, "s", "s2", "one", ids[1]))
    with pytest.raises(FenceLost):
        await db.compressions.compress(Compress(again, "s", "s3", "one", ids[1]))
    assert elsewhere("SELECT id FROM sessions ORDER BY id") == [{"id": "s"}, {"id": "s2"}]
    await db.processes.remove(other)


async def test_every_route_leads_to_the_child_and_idle_time_goes_on(db: SessionDB, holder: str) -> None:
    """Compression is no activity: the reset policy and the lists see the time of the last message."""
    accepted = await db.inbox.accept(incoming("m:1", "hello", session_key="k", lane="k", received_at=1000.0))
    claim = await db.turns.claim(request([accepted.inbox_id], "t1", holder, session_key="k", lane="k"), never)
    assert claim.fence is not None
    assert claim.session_id is not None
    busy = await db.holding.take(claim.session_id, holder, "w1", "compression")
    assert busy.status == "busy"
    await db.turns.abandon(claim.fence)
    orphaned = await db.holding.take(claim.session_id, holder, "w1", "compression")
    assert (orphaned.status, orphaned.orphan) == ("busy", "t1")
    again = await db.turns.take_over("t1", holder)
    assert again.fence is not None
    await db.turns.interrupt(again.fence, "stopped", ())
    fence = await held(db, claim.session_id, holder)
    await db.compressions.compress(Compress(fence, claim.session_id, "s2", "hello", 10**6))
    session = await db.routes.session_for("k")
    assert session is not None
    assert (session["id"], session["last_active"]) == ("s2", 1000.0)
    assert [route["session_id"] for route in await db.routes.of_session("s2")] == ["s2"]


async def test_the_documented_lineage_queries_are_right_on_compressed_conversations(
    db: SessionDB, holder: str, elsewhere: Elsewhere
) -> None:
    """Down from the first all segments, up from the last all of them again."""
    await db.create_session("s", "cli", owner="owner", title="X")
    for number in (2, 3):
        ids = await talk(db, "s", "one", "two")
        tip = (await db.conversation_of("s"))[-1]
        fence = await held(db, tip, holder)
        title = await db.compressions.wanted_title(tip)
        await db.compressions.compress(Compress(fence, tip, f"s{number}", "one", ids[1], title=title))
        await db.holding.let_go(fence)
    down = elsewhere(ANCESTORS_OR_DESCENDANTS, "s")
    assert [(row["id"], row["title"]) for row in down] == [("s", "X"), ("s2", "X #2"), ("s3", "X #3")]
    up = elsewhere(UPWARDS, "s3")
    assert [(row["id"], row["parent_session_id"]) for row in up] == [("s3", "s2"), ("s2", "s"), ("s", None)]


async def test_a_title_that_was_taken_meanwhile_is_not_taken_away(db: SessionDB, holder: str) -> None:
    """The continuation gets the next free one."""
    await db.create_session("s", "cli", owner="owner", title="X")
    ids = await talk(db, "s", "one", "two")
    await db.create_session("other", "cli", owner="owner", title="X #2")
    fence = await held(db, "s", holder)
    done = await db.compressions.compress(Compress(fence, "s", "s2", "one", ids[1], title="X #2"))
    assert done.title == "X #3"


async def test_an_edit_of_what_only_the_summary_knows_is_still_told(db: SessionDB, holder: str) -> None:
    """With the first question after it, as for any other message."""
    accepted = await db.inbox.accept(incoming("m:1", "at nine", session_key="k", lane="k", received_at=1000.0))
    claim = await db.turns.claim(
        request([accepted.inbox_id], "t1", holder, session_key="k", lane="k", content="at nine"), never
    )
    assert claim.fence is not None
    assert claim.session_id is not None
    await db.turns.interrupt(claim.fence, "stopped", ())
    ids = await talk(db, claim.session_id, "two")
    fence = await held(db, claim.session_id, holder)
    await db.compressions.compress(Compress(fence, claim.session_id, "s2", "at nine", ids[0]))
    await db.holding.let_go(fence)
    await db.append_message("s2", "assistant", "Fine.")
    edit = NewInbox(HOME, "e:1", "edit", "k", 1001.0, {"text": "at ten"}, {"user_id": "42"}, session_key="k")
    assert (await db.changed.edited(edit, "m:1", "at ten")).status == "recorded"
    await db.append_message("s2", "user", "when?")
    view = await db.context_view(
        "s2", annotate=lambda message, _note, changes: [message["content"], [change["now"] for change in changes]]
    )
    assert view.rows[-1]["content"] == ["when?", ["at ten"]]


async def test_a_title_that_was_made_meanwhile_is_that_of_the_child(db: SessionDB, holder: str) -> None:
    """The conversation gets it, not the part of it that has ended."""
    await db.create_session("s", "cli", owner="owner")
    ids = await talk(db, "s", "one", "two")
    fence = await held(db, "s", holder)
    await db.compressions.compress(Compress(fence, "s", "s2", "one", ids[1]))
    assert await db.automatic_titles.give("s", "Garden") == "Garden"
    tip = await db.get_tip("s")
    assert tip is not None
    assert (tip["id"], tip["title"]) == ("s2", "Garden")


async def test_a_pause_does_not_last_longer_because_the_clock_stepped_back(
    db: SessionDB, holder: str, elsewhere: Elsewhere
) -> None:
    """What a wrong clock wrote would keep the conversation from being compressed until that time has come."""
    await db.create_session("s", "cli", owner="owner")
    await talk(db, "s", "one")
    await db.compressions.failed(await held(db, "s", holder), "s", "no", "It failed.")
    assert await db.compressions.paused_until("s") > 0
    elsewhere("UPDATE compression_failures SET next_at = next_at + 30 * 86400")
    assert await db.compressions.paused_until("s") == 0
