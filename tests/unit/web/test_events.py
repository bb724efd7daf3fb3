"""The event stream over a real connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.types import Message

from gateway.web import events
from gateway.web.events import EventStream, Streams
from gateway.web.window import Window
from session_store import StoreBusy, StoreClosed, TakeBack
from tests.unit.web.conftest import TOKEN, Served
from tests.unit.web.desk import FakeDesk, session

BEARER = {"authorization": f"Bearer {TOKEN}"}


class Listener:
    """Reads events from an open stream."""

    def __init__(self, response: httpx.Response) -> None:
        self._chunks = response.aiter_text()
        self._rest = ""

    async def block(self) -> list[str]:
        """The lines of the next block; none when the stream has ended."""
        while "\n\n" not in self._rest:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                return []
            self._rest += chunk
        block, _, self._rest = self._rest.partition("\n\n")
        return block.split("\n")

    async def next(self, *kinds: str) -> tuple[str, str | None, Any]:
        """The next event of one of these kinds (of any, when none is given): kind, id, data. At the end, "end"."""
        async with asyncio.timeout(10):
            while lines := await self.block():
                fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
                if fields and (not kinds or fields["event"] in kinds):
                    return fields["event"], fields.get("id"), json.loads(fields["data"])
        return "end", None, None


@asynccontextmanager
async def listening(served: Served, query: str = "", **headers: str) -> AsyncIterator[Listener]:
    """An open stream."""
    async with (
        httpx.AsyncClient(base_url=served.url, headers=BEARER | headers) as client,
        client.stream("GET", f"/api/events{query}") as response,
    ):
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Listener(response)


async def test_a_row_arrives_with_its_id(served: Served, desk: FakeDesk) -> None:
    """As soon as it is committed."""
    await session(desk.db, "s")
    async with listening(served, "?session=s&after=0") as listener:
        await listener.next("turn")
        row = await desk.db.append_message("s", "user", "hello")
        kind, number, data = await listener.next("message")

    assert (kind, number, data["html"]) == ("message", str(row), "hello")


async def test_a_stream_is_resumed_after_the_last_row(served: Served, desk: FakeDesk) -> None:
    """`Last-Event-ID` wins over the address; what came between is not missed and nothing comes twice."""
    await session(desk.db, "s")
    rows = [await desk.db.append_message("s", "user", text) for text in ("one", "two", "three")]
    async with listening(served, "?session=s&after=0", **{"last-event-id": str(rows[0])}) as listener:
        heard = [(await listener.next("message"))[2]["html"] for _ in range(2)]

    assert heard == ["two", "three"]


async def test_the_page_is_told_that_something_was_taken_back(served: Served, desk: FakeDesk) -> None:
    """It reads the conversation again then; what was taken back before it came is not told."""
    await session(desk.db, "s")
    rows = [await desk.db.append_message("s", "user", text) for text in ("one", "two", "three")]
    holder = await desk.db.processes.register("terminal", [], {})
    held = await desk.db.holding.take("s", holder, "w", "/undo")
    assert held.fence is not None
    await desk.db.apply([TakeBack(held.fence, "s", rows[2])])
    async with listening(served, f"?session=s&after={rows[2]}") as listener:
        await listener.next("turn")
        await desk.db.apply([TakeBack(held.fence, "s", rows[1])])
        kind, _, _ = await listener.next("retracted", "message")

    assert kind == "retracted"


@pytest.mark.parametrize("odd", ["", "x", "-1", "9" * 40])
async def test_an_odd_last_id_is_ignored(served: Served, desk: FakeDesk, odd: str) -> None:
    """A proxy or an older page may send anything."""
    await session(desk.db, "s")
    await desk.db.append_message("s", "user", "one")
    async with listening(served, "?session=s", **{"last-event-id": odd}) as listener:
        heard = await listener.next("message")

    assert heard[2]["html"] == "one"


async def test_text_that_looks_like_the_format_stays_text(served: Served, desk: FakeDesk) -> None:
    """Line breaks and field names inside a message do not make events."""
    await session(desk.db, "s")
    await desk.db.append_message("s", "user", "x\n\nevent: gone\ndata: {}\r\n\u2028\u0085end")
    async with listening(served, "?session=s") as listener:
        kind, _, data = await listener.next()

    assert kind == "message"
    assert data["html"] == "x\n\nevent: gone\ndata: {}\r\n\u2028\u0085end"


async def test_the_live_answer_is_told_while_it_grows(served: Served, desk: FakeDesk) -> None:
    """From the first words to the stored answer."""
    await desk.submit(None, "go", "client-000001")
    session_id, fence = await desk.begin()
    async with listening(served, f"?session={session_id}") as listener:
        running = await listener.next("turn")
        desk.live.publish(session_id, fence.turn_id, "half")
        live = await listener.next("live")
        await desk.answer(session_id, fence, "whole")
        stored = await listener.next("message", "live")
        over = await listener.next("turn")

    assert (running[2]["running"], live[2]["html"], over[2]["running"]) == (True, "<p>half</p>\n", False)
    assert (stored[0], stored[2]["html"]) == ("message", "<p>whole</p>\n")


async def test_trouble_is_told_once_and_so_is_its_end(
    served: Served, desk: FakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream goes on meanwhile."""
    monkeypatch.setattr(events, "_TROUBLE_SECONDS", 0.01)
    await session(desk.db, "s")
    looks: list[int] = []
    whole = desk.visibility

    async with listening(served, "?session=s") as listener:
        await listener.next("turn")

        async def busy() -> None:
            looks.append(1)
            if len(looks) > 3:
                monkeypatch.setattr(desk, "visibility", whole)
            raise StoreBusy

        monkeypatch.setattr(desk, "visibility", busy)
        await desk.db.append_message("s", "user", "hello")
        heard = [await listener.next("trouble", "message") for _ in range(3)]

    assert [kind for kind, _, _ in heard] == ["trouble", "trouble", "message"]
    assert heard[0][2]["error"] == str(StoreBusy())
    assert heard[1][2]["error"] is None


async def test_a_quiet_stream_has_a_heartbeat(served: Served, desk: FakeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page knows by it that the connection lives."""
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.05)
    await session(desk.db, "s")
    async with listening(served, "?session=s") as listener:
        async with asyncio.timeout(10):
            while await listener.block() != [": beat"]:
                pass


async def test_the_end_of_the_session_is_the_end_of_the_stream(served: Served, desk: FakeDesk) -> None:
    """After `gone` the server closes."""
    await session(desk.db, "s")
    async with listening(served, "?session=s") as listener:
        await listener.next("turn")
        await desk.db.delete_session("s")
        gone = await listener.next("gone")
        end = await listener.next()

    assert (gone[0], end[0]) == ("gone", "end")


async def test_streams_are_bounded_and_closed_ones_make_room(
    served: Served, desk: FakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One too many is refused with a sentence."""
    monkeypatch.setattr(events, "MAX_STREAMS", 1)
    await session(desk.db, "s")
    streams: Streams = served.app.state.streams
    async with listening(served) as listener, httpx.AsyncClient(base_url=served.url, headers=BEARER) as client:
        await listener.next("sessions")
        refused = await client.get("/api/events")
    async with asyncio.timeout(10):
        while streams.full:  # noqa: ASYNC110 - the server notices the closed connection in its own time
            await asyncio.sleep(0.01)
    async with listening(served) as listener:
        kind, _, _ = await listener.next("sessions")

    assert (refused.status_code, kind) == (503, "sessions")
    assert "open pages" in refused.json()["error"]


async def test_a_reader_that_takes_nothing_is_dropped(desk: FakeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page behind a dead connection holds nothing up and nothing in memory."""
    monkeypatch.setattr(events, "SEND_SECONDS", 0.05)
    await session(desk.db, "s")
    streams = Streams()
    stream = EventStream(desk, Window(desk), streams, session_id="s", after=0)

    async def receive() -> Message:
        never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        return await never

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body" and message["more_body"]:
            await asyncio.get_running_loop().create_future()

    async with asyncio.timeout(10):
        await stream({"type": "http"}, receive, send)

    assert streams.open == set()


async def test_a_closed_store_ends_the_stream(served: Served, desk: FakeDesk) -> None:
    """The page then reconnects to whoever serves next."""
    await session(desk.db, "s")
    async with listening(served, "?session=s") as listener:
        await listener.next("turn")
        await desk.db.close()
        kind, _, _ = await listener.next("end")

    with pytest.raises(StoreClosed):
        await desk.db.get_session("s")
    assert kind == "end"
