"""The page's API: what is listed, shown, found and accepted."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from gateway.web import api
from gateway.web.api import MAX_BODY, MAX_TEXT
from gateway.web.transcript import MAX_RESULT
from session_store import Entrant, NewAttachment, NewMessage, NotFound, PlaceRef, SessionDB, StoreBusy, StoreFull
from tests.unit.web.desk import OWNER, FakeDesk, place_id, session

CLIENT_ID = "client-000001"


async def say(db: SessionDB, session_id: str, *texts: str) -> None:
    """Append user messages."""
    for text in texts:
        await db.append_message(session_id, "user", text, person_id=OWNER)


async def messages(owner: httpx.AsyncClient, session_id: str, query: str = "") -> dict[str, Any]:
    """A piece of a conversation."""
    response = await owner.get(f"/api/sessions/{session_id}/messages{query}")
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


# --- lists and access ---------------------------------------------------------------------------------------------


async def test_sessions_are_listed_newest_activity_first(desk: FakeDesk, owner: httpx.AsyncClient) -> None:
    """Each row says title, beginning, source and time; the next page begins where this one ended."""
    for number in range(3):
        await session(desk.db, f"s{number}", source="telegram", title=f"Title {number}")
        await desk.db.append_message(f"s{number}", "user", f"begin {number}", timestamp=1000.0 + number)
    first = (await owner.get("/api/sessions?limit=2")).json()
    second = (await owner.get("/api/sessions?limit=2&offset=2")).json()

    assert [row["id"] for row in first["sessions"]] == ["s2", "s1"]
    assert first["more"] is True
    assert second == {
        "sessions": [
            {
                "id": "s0",
                "title": "Title 0",
                "preview": "begin 0",
                "source": "telegram",
                "last_active": 1000.0,
                "messages": 1,
            }
        ],
        "more": False,
    }


@pytest.mark.parametrize("foreign", [None, "p0123456789ab", "r0123456789ab"])
async def test_what_is_not_the_owners_does_not_exist(
    desk: FakeDesk, owner: httpx.AsyncClient, foreign: str | None
) -> None:
    """A foreign session and an unknown one give the same answer everywhere, and nothing is submitted or stopped."""
    await session(desk.db, "theirs", owner=foreign, title="Their secret")
    await say(desk.db, "theirs", "a secret word")
    body = {"session_id": "theirs", "text": "hello", "client_id": CLIENT_ID}
    answers = [
        (await owner.get("/api/sessions/theirs/messages"), await owner.get("/api/sessions/unknown/messages")),
        (await owner.get("/api/events?session=theirs"), await owner.get("/api/events?session=unknown")),
        (await owner.post("/api/sessions/theirs/stop"), await owner.post("/api/sessions/unknown/stop")),
        (
            await owner.post("/api/messages", json=body),
            await owner.post("/api/messages", json={**body, "session_id": "unknown"}),
        ),
    ]

    assert all(theirs.status_code == unknown.status_code == 404 for theirs, unknown in answers)
    assert all(theirs.text == unknown.text for theirs, unknown in answers)
    assert (await owner.get("/api/sessions")).json()["sessions"] == []
    assert (await owner.get("/api/search?q=secret")).json() == {"sessions": [], "hits": [], "problem": None}
    assert (desk.submitted, desk.stopped) == ([], [])


async def test_a_prefix_or_a_title_is_not_an_id(desk: FakeDesk, owner: httpx.AsyncClient) -> None:
    """What people may type in a terminal does not open a session here: an id is opaque."""
    await session(desk.db, "20260301_aaa", title="Plan")
    answers = [(await owner.get(f"/api/sessions/{ref}/messages")).status_code for ref in ("20260301", "Plan")]

    assert answers == [404, 404]


async def test_a_room_the_owner_spoke_in_is_shown_with_who_spoke(desk: FakeDesk, owner: httpx.AsyncClient) -> None:
    """Somebody else's words carry their name, and each message the place that it came from."""
    room = PlaceRef("telegram", "main", "group", "-100", "7", name="Ops room")
    desk.owners = frozenset({OWNER, "room1"})
    await session(desk.db, "shared", owner="room1", source="telegram")
    place = await place_id(desk.db, room, "shared", Entrant("", "43", "Ada"))
    other, _ = await desk.db.people.person_of("telegram", "", "43") or ("", "")
    await desk.db.append_message("shared", "user", "from ada", person_id=other, place_id=place)
    await desk.db.append_message("shared", "user", "from me", person_id=OWNER, place_id=place, platform_message_id="9")
    rows = (await messages(owner, "shared"))["messages"]

    assert [row.get("who") for row in rows] == ["Ada", None]
    assert rows[0]["place"] == {"platform": "telegram", "name": "Ops room"}
    assert "client_id" not in rows[1]


# --- what a conversation looks like -------------------------------------------------------------------------------


async def test_rows_are_rendered_by_role(desk: FakeDesk, owner: httpx.AsyncClient) -> None:
    """What people typed is plain, answers are Markdown, tool calls are folded to count and names."""
    await desk.submit(None, "<b>find</b>\nit", CLIENT_ID)
    session_id, fence = await desk.begin()
    await desk.tool(fence, "session_search", '{"query": "\\u4e0a\\u6b21"}', '{"hits": []}')
    await desk.answer(session_id, fence, "**Found**")
    body = await messages(owner, session_id)
    user, call, result, answer = body["messages"]

    assert (user["html"], user["client_id"], user["place"]["platform"]) == (
        "&lt;b&gt;find&lt;/b&gt;\nit",
        CLIENT_ID,
        "web",
    )
    assert (call["tools"]["count"], call["tools"]["names"]) == (1, ["session_search"])
    assert call["tools"]["calls"][0]["arguments"] == '{"query": "上次"}'
    assert result["result"] == {
        "call_id": call["tools"]["calls"][0]["id"],
        "name": "session_search",
        "text": '{"hits": []}',
    }
    assert answer["html"] == "<p><strong>Found</strong></p>\n"
    assert {row["turn"] for row in (user, call, result, answer)} == {fence.turn_id}


async def test_long_results_are_cut_for_the_eye_only(desk: FakeDesk, owner: httpx.AsyncClient) -> None:
    """The page says how much is missing; the store keeps it all."""
    await session(desk.db, "s")
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    await desk.db.append_message("s", "assistant", None, tool_calls=[call])
    await desk.db.append_message("s", "tool", "x" * (MAX_RESULT + 5), tool_call_id="c", tool_name="read")
    rows = (await messages(owner, "s"))["messages"]

    assert rows[1]["result"]["text"].endswith("… 5 more characters")
    assert len((await desk.db.get_messages("s"))[1]["content"]) == MAX_RESULT + 5


@pytest.mark.parametrize(
    ("content", "calls"),
    [
        ([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:x"}}], None),
        ("ok \ud83d end\0", None),
        (None, [{"id": 5, "odd": True}, {"function": {"name": None, "arguments": {"a": 1}}}]),
        (None, ["text", 7]),
        ("", None),
    ],
)
async def test_odd_rows_are_shown_and_break_nothing(
    desk: FakeDesk, owner: httpx.AsyncClient, content: object, calls: object
) -> None:
    """Multimodal parts, broken text, calls of other tools' making."""
    await session(desk.db, "s")
    await desk.db.append_message("s", "assistant", content, tool_calls=calls)  # type: ignore[arg-type]
    rows = (await messages(owner, "s"))["messages"]

    assert len(rows) == 1
    if isinstance(content, list):
        assert "look" in rows[0]["html"]
    if isinstance(calls, list):
        assert rows[0]["tools"]["count"] == len(calls)


async def test_system_prompts_are_not_shown(desk: FakeDesk, owner: httpx.AsyncClient) -> None:
    """They are not part of what was said."""
    await session(desk.db, "s")
    await desk.db.append_message("s", "system", "You are")
    await say(desk.db, "s", "hello")
    rows = (await messages(owner, "s"))["messages"]

    assert [row["role"] for row in rows] == ["user"]


async def test_a_conversation_is_read_in_pieces_without_gaps(desk: FakeDesk, owner: httpx.AsyncClient) -> None:
    """The last rows first, then those before; compression makes no seam, and any of its ids opens the whole."""
    await session(desk.db, "root")
    await say(desk.db, "root", "m1", "m2", "m3")
    await desk.db.end_session("root", "compression")
    await desk.db.create_session("tip", "web", owner=OWNER, parent_session_id="root")
    await say(desk.db, "tip", "m4", "m5")
    seen: list[str] = []
    before = ""
    more = True
    while more:
        piece = await messages(owner, "root", f"?limit=2{before}")
        rows = piece["messages"]
        seen = [row["html"] for row in rows] + seen
        before, more = f"&before={piece['first']}", bool(piece["more"])
    after = await messages(owner, "tip", f"?after={(await desk.db.get_messages('root'))[1]['id']}&limit=2")

    assert seen == ["m1", "m2", "m3", "m4", "m5"]
    assert [row["html"] for row in after["messages"]] == ["m3", "m4"]
    assert after["more"] is True
    assert after["session"]["id"] == "tip"


@pytest.mark.parametrize("query", ["?limit=x", "?after=-1", "?before=1e3", "?limit=99999999999999999999"])
async def test_a_number_must_be_one(desk: FakeDesk, owner: httpx.AsyncClient, query: str) -> None:
    """Nonsense in the address is a sentence, not a failure."""
    await session(desk.db, "s")
    response = await owner.get(f"/api/sessions/s/messages{query}")

    assert response.status_code == 400
    assert "whole number" in response.json()["error"]


# --- search -------------------------------------------------------------------------------------------------------


async def test_search_finds_titles_and_messages(desk: FakeDesk, owner: httpx.AsyncClient) -> None:
    """A hit leads to its message; the match is marked, the rest is inert."""
    await session(desk.db, "s1", title="Deploy notes")
    await say(desk.db, "s1", "the <i>deploy</i> script")
    body = (await owner.get("/api/search", params={"q": "deploy"})).json()

    assert [row["id"] for row in body["sessions"]] == ["s1"]
    (hit,) = body["hits"]
    assert (hit["session_id"], hit["id"]) == ("s1", (await desk.db.get_messages("s1"))[0]["id"])
    assert "<mark>deploy</mark>" in hit["html"]
    assert "<i>" not in hit["html"]


async def test_an_odd_query_still_looks_at_titles(desk: FakeDesk, owner: httpx.AsyncClient) -> None:
    """While somebody types, half a query is normal: the reason is said and nothing fails."""
    await session(desk.db, "s1", title="AND so on")
    body = (await owner.get("/api/search", params={"q": "AND"})).json()

    assert [row["id"] for row in body["sessions"]] == ["s1"]
    assert body["problem"]


async def test_an_empty_search_is_an_empty_answer(owner: httpx.AsyncClient) -> None:
    """Blank text searches nothing."""
    assert (await owner.get("/api/search?q=%20")).json() == {"sessions": [], "hits": [], "problem": None}


# --- sending ------------------------------------------------------------------------------------------------------


async def test_a_message_is_durable_when_it_is_accepted(desk: FakeDesk, owner: httpx.AsyncClient) -> None:
    """The answer names the session; a new one opens empty until its turn begins."""
    body = {"session_id": None, "text": "hello", "client_id": CLIENT_ID}
    response = await owner.post("/api/messages", json=body)
    session_id = response.json()["session_id"]
    early = await messages(owner, session_id)
    pending = await desk.db.inbox.pending([("web", "main")], desk.holder)

    assert response.status_code == 202
    assert [row["payload"]["text"] for row in pending] == ["hello"]
    assert (early["messages"], early["session"]["started_at"]) == ([], None)


@pytest.mark.parametrize("text", ["hello", "/new plan"])
async def test_the_same_client_id_sends_once(desk: FakeDesk, owner: httpx.AsyncClient, text: str) -> None:
    """A browser that heard no answer sends again; messages and commands alike happen once."""
    body = {"session_id": None, "text": text, "client_id": CLIENT_ID}
    answers = [(await owner.post("/api/messages", json=body)).json() for _ in range(3)]
    other = await owner.post("/api/messages", json={**body, "client_id": CLIENT_ID + "b"})

    assert answers[0] == answers[1] == answers[2]
    assert other.json() != answers[0]
    assert len(desk.submitted) == 2


async def test_a_repeated_message_is_known_after_a_restart(desk: FakeDesk, app: Starlette) -> None:
    """The store remembers, not only the process: the same session is named and there is one row."""
    body = {"session_id": None, "text": "hello", "client_id": CLIENT_ID}
    headers = {"authorization": "Bearer sesame-1234567890"}
    first = await desk.submit(None, "hello", CLIENT_ID)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8737", headers=headers) as client:
        again = await client.post("/api/messages", json=body)

    assert again.json() == {"session_id": first}
    assert (await desk.db.inbox.counts())["new"] == 1


async def test_what_is_remembered_is_bounded(
    desk: FakeDesk, owner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest client ids are forgotten; the store still knows their messages."""
    monkeypatch.setattr(api, "MAX_ACCEPTED", 2)
    await session(desk.db, "s")
    for number in (1, 2, 3, 3, 2, 1):
        body = {"session_id": "s", "text": "/status", "client_id": f"client-{number:06}"}
        await owner.post("/api/messages", json=body)

    assert [client_id[-1] for _, _, client_id in desk.submitted] == ["1", "2", "3", "1"]


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"text": "x" * (MAX_TEXT + 1)}, 413, "100,001"),
        ({"text": "🦊" * MAX_TEXT}, 202, ""),
        ({"text": " \n "}, 400, "no text"),
        ({"text": None}, 400, "no text"),
        ({"text": ["x"]}, 400, "no text"),
        ({"text": "x", "client_id": "short"}, 400, "client_id"),
        ({"text": "x", "client_id": "with space in it"}, 400, "client_id"),
        ({"text": "x", "client_id": 12345678}, 400, "client_id"),
        ({"text": "x", "session_id": 5}, 404, "no such session"),
        ({"text": "x", "session_id": ""}, 404, "no such session"),
        ({"text": "ok \ud83d end"}, 202, ""),
    ],
)
async def test_what_is_sent_is_checked(
    owner: httpx.AsyncClient, body: dict[str, object], status: int, word: str
) -> None:
    """Each refusal says what is wrong; anything that is text is taken."""
    content = json.dumps({"session_id": None, "client_id": CLIENT_ID, **body})
    response = await owner.post("/api/messages", content=content, headers={"content-type": "application/json"})

    assert response.status_code == status
    assert word in response.text


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{" + b" " * MAX_BODY + b"}", "application/json", 413),
        (b"not json", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"[1]", "application/json; charset=utf-8", 400),
        (b'{"text": "\xff"}', "application/json", 400),
        (b"text=hello", "application/x-www-form-urlencoded", 415),
        (b'{"text":"hello"}', "text/plain", 415),
        (b"", "application/json", 400),
    ],
)
async def test_a_body_must_be_a_small_json_object(
    desk: FakeDesk, owner: httpx.AsyncClient, content: bytes, kind: str, status: int
) -> None:
    """What a form of a foreign page could send is refused by its type; what is too big is not read to its end."""
    response = await owner.post("/api/messages", content=content, headers={"content-type": kind})

    assert response.status_code == status
    assert response.json()["error"]
    assert desk.submitted == []


@pytest.mark.parametrize(
    ("trouble", "status"), [(StoreBusy(), 503), (StoreFull(), 503), (NotFound("There is no such session."), 404)]
)
async def test_trouble_of_the_store_is_its_sentence(
    desk: FakeDesk, owner: httpx.AsyncClient, trouble: StoreBusy, status: int
) -> None:
    """The page shows it and, when it may pass, tries again."""
    desk.trouble = trouble
    response = await owner.post("/api/messages", json={"session_id": None, "text": "x", "client_id": CLIENT_ID})

    assert (response.status_code, response.json()) == (status, {"error": str(trouble)})


async def test_stop_asks_for_the_live_session(desk: FakeDesk, owner: httpx.AsyncClient) -> None:
    """Whatever id of the conversation the page holds."""
    await session(desk.db, "root")
    await desk.db.end_session("root", "compression")
    await desk.db.create_session("tip", "web", owner=OWNER, parent_session_id="root")
    response = await owner.post("/api/sessions/root/stop")

    assert (response.status_code, desk.stopped) == (202, ["tip"])


async def test_commands_are_listed_for_hints(owner: httpx.AsyncClient) -> None:
    """Name, usage and one line each."""
    first = (await owner.get("/api/commands")).json()["commands"][0]

    assert first == {"name": "new", "usage": "/new [title]", "summary": "Begin a new session"}


async def test_a_stopped_answer_says_so(desk: FakeDesk, owner: httpx.AsyncClient) -> None:
    """What was said until then stays, marked."""
    await desk.submit(None, "go", CLIENT_ID)
    session_id, fence = await desk.begin()
    await desk.db.turns.interrupt(
        fence, "stopped", (), NewMessage("assistant", "half", finish_reason="stopped", op_id="f")
    )
    rows = (await messages(owner, session_id))["messages"]

    assert (rows[-1]["html"], rows[-1]["end"]) == ("<p>half</p>\n", "stopped")


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/api/sessions"), ("DELETE", "/api/messages"), ("GET", "/api/x")]
)
async def test_what_is_not_there_is_a_sentence_too(owner: httpx.AsyncClient, method: str, path: str) -> None:
    """Wrong methods and addresses answer in the same form."""
    response = await owner.request(method, path)

    assert response.status_code in {404, 405}
    assert response.json()["error"]


async def test_files_of_sessions_that_one_may_not_see_are_not_there(desk: FakeDesk, owner: httpx.AsyncClient) -> None:
    """A foreign file, one that was not fetched, one whose bytes are gone and none at all give the same answer."""
    async with desk.db.attachments.incoming(100) as incoming:
        await incoming.write(b"private words")
        digest = await incoming.keep()
    file = NewAttachment("пароль.txt", "file", digest, 13, "text/plain")
    numbers = {}
    for session_id, whose, one in [
        ("mine", OWNER, file),
        ("theirs", "p1", file),
        ("unfetched", OWNER, NewAttachment("a", "file", problem="it took too long")),
        ("gone", OWNER, NewAttachment("a", "file", "0" * 64, 1, "text/plain")),
    ]:
        await session(desk.db, session_id, owner=whose)
        numbers[session_id] = await desk.db.append_message(session_id, "user", "look", attachments=[one])
    mine = await owner.get(f"/api/files/{numbers['mine']}/0")
    refused = [
        await owner.get(f"/api/files/{number}/{position}")
        for number, position in [
            (numbers["theirs"], 0),
            (numbers["unfetched"], 0),
            (numbers["gone"], 0),
            (numbers["mine"], 1),
            (10**6, 0),
        ]
    ]

    assert (mine.status_code, mine.content) == (200, b"private words")
    assert "filename*=utf-8''" in mine.headers["content-disposition"].lower()
    assert mine.headers["content-disposition"].startswith("attachment")
    assert mine.headers["cache-control"] == "no-store"
    assert {(answer.status_code, answer.text) for answer in refused} == {(404, '{"error":"There is no such file."}')}


async def test_files_are_named_beside_the_message(desk: FakeDesk, owner: httpx.AsyncClient) -> None:
    """With an address for those that are kept."""
    await session(desk.db, "s")
    files = [
        NewAttachment("a.txt", "file", "0" * 64, 13, "text/plain"),
        NewAttachment("b.mp4", "video", size=10**9, problem="it is larger than 20 MB"),
    ]
    number = await desk.db.append_message("s", "user", "look", attachments=files)
    (shown,) = (await messages(owner, "s"))["messages"]

    assert shown["files"] == [
        {"name": "a.txt", "kind": "file", "size": 13, "url": f"/api/files/{number}/0"},
        {"name": "b.mp4", "kind": "video", "size": 10**9, "url": None},
    ]
