"""What a follower of a conversation is told, and when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.web import follow
from gateway.web.follow import BATCH, Event, Follower
from gateway.web.window import Window
from session_store import StoreBusy, Visibility
from tests.conftest import Elsewhere
from tests.unit.web.desk import OWNER, FakeDesk, session


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the list of sessions every time."""
    monkeypatch.setattr(follow, "_LIST_SECONDS", 0.0)


def following(
    desk: FakeDesk, session_id: str | None, after: int = 0, wake: Callable[[], None] = lambda: None
) -> Follower:
    """A follower of one session."""
    return Follower(desk, Window(desk), wake, session_id=session_id, after=after)


def brief(events: list[Event]) -> list[tuple[str, object]]:
    """Events in a form that is easy to compare."""
    values: dict[str, Callable[[Event], object]] = {
        "message": lambda event: event.data["html"],
        "live": lambda event: event.data["html"],
        "turn": lambda event: event.data["running"],
        "notice": lambda event: event.data["html"],
    }
    return [(event.kind, values[event.kind](event) if event.kind in values else None) for event in events]


async def test_rows_come_once_and_in_order(desk: FakeDesk) -> None:
    """Those after the id that the reader has, then only what is new."""
    await session(desk.db, "s")
    first = await desk.db.append_message("s", "user", "one")
    await desk.db.append_message("s", "user", "two")
    with following(desk, "s", after=first) as follower:
        begin = await follower.look()
        await desk.db.append_message("s", "user", "three")
        then = await follower.look()
        nothing = await follower.look()

    assert brief(begin) == [("message", "two"), ("turn", False), ("sessions", None)]
    assert brief(then) == [("message", "three"), ("sessions", None)]
    assert nothing == []


async def test_rows_of_other_processes_are_seen(desk: FakeDesk, elsewhere: Elsewhere) -> None:
    """Whoever commits to the conversation is heard."""
    await session(desk.db, "s")
    with following(desk, "s") as follower:
        await follower.look()
        elsewhere("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'from afar', 1.0)")
        events = await follower.look()

    assert ("message", "from afar") in brief(events)


async def test_a_long_backlog_comes_in_pieces(desk: FakeDesk) -> None:
    """One look reads a bounded number of rows and asks to be called again at once."""
    await session(desk.db, "s")
    for number in range(BATCH + 1):
        await desk.db.append_message("s", "user", str(number))
    with following(desk, "s") as follower:
        first = await follower.look()
        again = follower.due
        second = await follower.look()

    assert [event.data["html"] for event in first + second if event.kind == "message"] == [
        str(number) for number in range(BATCH + 1)
    ]
    assert again == 0.0


async def test_the_live_text_gives_way_to_the_stored_answer(desk: FakeDesk) -> None:
    """Text grows while the turn runs; once the answer is stored the old text is never told again."""
    await desk.submit(None, "go", "client-000001")
    session_id, fence = await desk.begin()
    with following(desk, session_id) as follower:
        begin = await follower.look()
        desk.live.publish(session_id, fence.turn_id, "*ha*")
        some = await follower.look()
        desk.live.publish(session_id, fence.turn_id, "half")
        desk.live.publish(session_id, fence.turn_id, "half an")
        more = await follower.look()
        desk.live.publish(session_id, fence.turn_id, "half an answer")
        finish = desk.live.finish
        desk.live.finish = lambda *_: None  # type: ignore[method-assign]
        await desk.answer(session_id, fence, "the answer")
        stored = await follower.look()
        finish(session_id, fence.turn_id)
        after = await follower.look()

    assert brief(begin) == [("message", "go"), ("turn", True), ("sessions", None)]
    assert brief(some) == [("live", "<p><em>ha</em></p>\n")]
    assert brief(more) == [("live", "<p>half an</p>\n")]
    assert brief(stored) == [
        ("message", "<p>the answer</p>\n"),
        ("turn", False),
        ("live", ""),
        ("sessions", None),
    ]
    assert after == []


async def test_a_page_opened_in_the_middle_sees_what_runs(desk: FakeDesk) -> None:
    """Turn and unfinished text are state: a late reader gets them at once."""
    await desk.submit(None, "go", "client-000001")
    session_id, fence = await desk.begin()
    desk.live.publish(session_id, fence.turn_id, "half")
    with following(desk, session_id) as follower:
        events = await follower.look()

    assert brief(events) == [("message", "go"), ("turn", True), ("live", "<p>half</p>\n"), ("sessions", None)]


async def test_a_turn_of_another_process_is_shown_running(desk: FakeDesk) -> None:
    """It has no live text here; that it runs stands in the store."""
    await desk.submit(None, "go", "client-000001")
    session_id, fence = await desk.begin()
    with following(desk, session_id) as follower:
        events = await follower.look()
        await desk.db.turns.interrupt(fence, "stopped")
        ended = await follower.look()

    assert ("turn", True) in brief(events)
    assert ("turn", False) in brief(ended)


async def test_every_change_of_the_live_text_wakes(desk: FakeDesk) -> None:
    """Without waiting for a commit; and after the follower is closed nothing calls it."""
    await session(desk.db, "s")
    woken: list[int] = []
    with following(desk, "s", wake=lambda: woken.append(1)) as follower:
        await follower.look()
        desk.live.publish("s", "t1", "a")
        desk.live.finish("s", "t1")
    desk.live.publish("s", "t1", "a")

    assert len(woken) == 2


async def test_a_conversation_is_followed_across_compression(desk: FakeDesk) -> None:
    """Rows and live text of the new tip reach the page that opened the old one."""
    await session(desk.db, "root")
    await desk.db.append_message("root", "user", "before")
    with following(desk, "root") as follower:
        await follower.look()
        await desk.db.end_session("root", "compression")
        await desk.db.create_session("tip", "web", owner=OWNER, parent_session_id="root")
        await desk.db.append_message("tip", "user", "after")
        rows = await follower.look()
        desk.live.publish("tip", "t1", "live")
        live = await follower.look()

    assert ("message", "after") in brief(rows)
    assert ("live", "<p>live</p>\n") in brief(live)


async def test_notices_are_told_once(desk: FakeDesk) -> None:
    """The answer to a command comes with the client id that it answers and where it leads."""
    await session(desk.db, "s")
    desk.live.notice("s", "**done**", reply_to="c1", goto="s2")
    with following(desk, "s") as follower:
        events = await follower.look()
        again = await follower.look()
    notice = next(event for event in events if event.kind == "notice")

    assert (notice.data["html"], notice.data["reply_to"], notice.data["goto"]) == (
        "<p><strong>done</strong></p>\n",
        "c1",
        "s2",
    )
    assert again == []


async def test_the_list_of_sessions_is_hinted_when_it_changed(desk: FakeDesk) -> None:
    """A new session, a new title, new activity; a foreign session is no reason."""
    with following(desk, None) as follower:
        first = await follower.look()
        await session(desk.db, "theirs", owner="p0123456789ab")
        foreign = await follower.look()
        await session(desk.db, "mine")
        await desk.db.append_message("mine", "user", "x")
        new = await follower.look()
        await desk.db.set_session_title("mine", "Named")
        named = await follower.look()

    assert brief(first) == [("sessions", None)]
    assert foreign == []
    assert brief(new) == [("sessions", None)]
    assert brief(named) == [("sessions", None)]


async def test_a_session_that_is_lost_ends_the_stream(desk: FakeDesk) -> None:
    """Deleted, or no longer the owner's to see: the page hears it once."""
    await session(desk.db, "deleted")
    await session(desk.db, "moved")
    with following(desk, "deleted") as one, following(desk, "moved") as two:
        await one.look()
        await two.look()
        await desk.db.delete_session("deleted")
        desk.owners = frozenset({"somebody"})
        events = [brief(await one.look()), brief(await two.look())]

    assert events == [[("gone", None)], [("gone", None)]]
    assert one.gone
    assert two.gone


async def test_what_a_failed_look_did_not_tell_is_told_later(desk: FakeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy store loses nothing."""
    await session(desk.db, "s")
    await desk.db.append_message("s", "user", "one")
    with following(desk, "s") as follower:
        with monkeypatch.context() as patch:

            async def busy(_place: int) -> None:
                raise StoreBusy

            async def blind() -> Visibility:
                raise StoreBusy

            patch.setattr(desk.db.places, "get", busy)
            patch.setattr(desk, "visibility", blind)
            with pytest.raises(StoreBusy):
                await follower.look()
        events = await follower.look()

    assert ("message", "one") in brief(events)
