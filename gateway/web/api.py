"""The page's API: lists, messages, sending, stopping. JSON in, JSON out; errors are `{"error": sentence}`.

Contract: the guard has checked token, Host and Origin before. Every session goes through `Window.open` or a query with
the owner's visibility, so that a foreign session and an unknown one give the same 404; the same holds for files. A
message is durable when `POST /api/messages` answers; repeating it with the same `client_id` changes nothing.
Limits: text of `MAX_TEXT` characters, bodies of `MAX_BODY` bytes, pages of `MAX_PAGE` rows, `MAX_STREAMS` open streams;
one message is accepted at a time (there is one owner).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import FileResponse
from starlette.routing import Route

from gateway.tools.finding import Finder
from gateway.web.events import MAX_STREAMS, EventStream, Streams
from gateway.web.follow import notice_shown
from gateway.web.render import marked
from gateway.web.replies import SafeJSONResponse
from gateway.web.transcript import Presenter
from gateway.web.window import MAX_PAGE, Conversation, Window
from session_store import QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from gateway.web.facade import WebFacade
    from session_store import SessionListRow

__all__ = ["MAX_ACCEPTED", "MAX_BODY", "MAX_TEXT", "Api"]

MAX_TEXT = 100_000

#: JSON may write one character as up to 12 bytes.
MAX_BODY = 12 * MAX_TEXT + 4_096

MAX_ACCEPTED = 1_000
_PAGE = 60
_LIST = 50
_HITS = 20

#: Roles that are searched: what people and the agent said, not what tools returned to it.
_SPOKEN = ("user", "assistant")
_MAX_QUERY = 5_000
_CLIENT_ID = re.compile(r"[A-Za-z0-9_-]{8,64}\Z")
_NUMBER = re.compile(r"[0-9]{1,18}\Z")
_NOT_FOUND = "There is no such session."
_NO_FILE = "There is no such file."

#: Whatever is in a file from outside, a browser saves it and does nothing else with it.
_UNKNOWN_TYPE = "application/octet-stream"
_FILE_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Api:
    """The handlers, over one facade."""

    def __init__(self, facade: WebFacade, streams: Streams) -> None:
        self._facade = facade
        self._streams = streams
        self._window = Window(facade)
        self._accepted: OrderedDict[str, str] = OrderedDict()
        self._accepting = asyncio.Lock()

    def routes(self) -> list[BaseRoute]:
        """Everything below `/api`."""
        return [
            Route("/api/sessions", self.sessions),
            Route("/api/search", self.search),
            Route("/api/sessions/{id}/messages", self.messages),
            Route("/api/sessions/{id}/stop", self.stop, methods=["POST"]),
            Route("/api/messages", self.send, methods=["POST"]),
            Route("/api/commands", self.commands),
            Route("/api/files/{message:int}/{position:int}", self.file),
            Route("/api/events", self.events),
        ]

    async def sessions(self, request: Request) -> Response:
        """One page of the list, newest activity first."""
        limit = _number(request, "limit", _LIST, 1, _LIST)
        offset = _number(request, "offset", 0, 0, 1_000_000)
        rows = await self._facade.db.list_sessions(
            limit=limit + 1, offset=offset, visible_to=await self._facade.visibility()
        )
        return SafeJSONResponse({"sessions": [_listed(row) for row in rows[:limit]], "more": len(rows) > limit})

    async def search(self, request: Request) -> Response:
        """Sessions by title and messages by words; `problem` says why not all messages could be searched."""
        query = request.query_params.get("q", "").strip()[:_MAX_QUERY]
        if not query:
            return SafeJSONResponse({"sessions": [], "hits": [], "problem": None})
        visible_to = await self._facade.visibility()
        rows = await self._facade.db.list_sessions(limit=_LIST, search=query, visible_to=visible_to)
        problem = None
        hits: list[dict[str, Any]] = []
        try:
            found = await Finder(self._facade.db, visible_to).find(query, _SPOKEN)
        except QueryError as error:
            problem = str(error)
        else:
            if found.relaxed:
                problem = "Nothing has all these words; these come closest."
            hits = [
                {
                    "id": hit["id"],
                    "session_id": hit["session_id"],
                    "title": hit["title"],
                    "source": hit["source"],
                    "role": hit["role"],
                    "time": hit["timestamp"],
                    "html": marked(hit["snippet"]),
                }
                for hit in (find.hit for find in found.finds[:_HITS])
            ]
        return SafeJSONResponse({"sessions": [_listed(row) for row in rows], "hits": hits, "problem": problem})

    async def messages(self, request: Request) -> Response:
        """A piece of a conversation: the last rows, those before an id, or those after one."""
        conversation = await self._opened(request.path_params["id"])
        limit = _number(request, "limit", _PAGE, 1, MAX_PAGE)
        after = _number(request, "after", -1, 0, 10**18)
        before = _number(request, "before", -1, 0, 10**18)
        if after >= 0:
            rows = await self._window.after(conversation, after, limit + 1)
            more, rows = len(rows) > limit, rows[:limit]
        else:
            rows = await self._window.before(conversation, before if before >= 0 else None, limit + 1)
            more, rows = len(rows) > limit, rows[-limit:]
        notices = [] if before >= 0 else self._facade.live.notices(conversation.tip_id)
        return SafeJSONResponse(
            {
                "session": _head(conversation),
                "messages": await Presenter(self._facade.db).show(rows),
                "first": rows[0]["id"] if rows else None,
                "last": rows[-1]["id"] if rows else None,
                "more": more,
                "notices": [notice_shown(notice) for notice in notices],
            }
        )

    async def send(self, request: Request) -> Response:
        """Accept a message or command; 202 when it is durable."""
        body = await _json_body(request)
        text, client_id, session_id = body.get("text"), body.get("client_id"), body.get("session_id")
        if not isinstance(text, str) or not text.strip():
            raise HTTPException(400, "There is no text to send. Write something first.")
        if len(text) > MAX_TEXT:
            raise HTTPException(
                413, f"The text is too long: {len(text):,} characters, at most {MAX_TEXT:,}. Send it in parts."
            )
        if not isinstance(client_id, str) or not _CLIENT_ID.match(client_id):
            raise HTTPException(400, "client_id must be 8 to 64 letters, digits, - or _, made anew for each message.")
        if session_id is not None:
            await self._opened(session_id)
        return SafeJSONResponse({"session_id": await self._submit(session_id, text, client_id)}, 202)

    async def _submit(self, session_id: str | None, text: str, client_id: str) -> str:
        """Hand over once. The store knows a repeated message for ever; a repeated command is known here for a while."""
        async with self._accepting:
            known = self._accepted.get(client_id)
            if known is not None:
                return known
            accepted = await self._facade.submit(session_id, text, client_id)
            self._window.expect(accepted)
            self._accepted[client_id] = accepted
            while len(self._accepted) > MAX_ACCEPTED:
                self._accepted.popitem(last=False)
            return accepted

    async def stop(self, request: Request) -> Response:
        """Ask for the end of the running turn."""
        conversation = await self._opened(request.path_params["id"])
        await self._facade.stop(conversation.tip_id)
        return SafeJSONResponse({"asked": True}, 202)

    async def commands(self, _request: Request) -> Response:
        """The slash commands, for hints while typing."""
        listed = [{"name": name, "usage": usage, "summary": text} for name, usage, text in self._facade.commands()]
        return SafeJSONResponse({"commands": listed})

    async def file(self, request: Request) -> Response:
        """A file that came with a message, to be saved; never shown or run by the browser."""
        message, position = request.path_params["message"], request.path_params["position"]
        largest = 2**63 - 1
        found = None
        if message <= largest and position <= largest:
            found = await self._facade.db.attachments.one(message, position)
        if found is None or await self._window.open(found[1]) is None:
            raise HTTPException(404, _NO_FILE)
        attachment = found[0]
        path = None if attachment["hash"] is None else await self._facade.db.attachments.path(attachment["hash"])
        if path is None:
            raise HTTPException(404, _NO_FILE)
        return FileResponse(path, headers=_FILE_HEADERS, media_type=_UNKNOWN_TYPE, filename=attachment["name"])

    async def events(self, request: Request) -> Response:
        """The event stream; `Last-Event-ID` wins over `after`."""
        if self._streams.full:
            raise HTTPException(503, f"There are {MAX_STREAMS} open pages. Close some and try again.")
        session_id = request.query_params.get("session")
        if session_id is not None:
            await self._opened(session_id)
        after = _number(request, "after", 0, 0, 10**18)
        last = request.headers.get("last-event-id", "")
        if _NUMBER.match(last):
            after = int(last)
        return EventStream(self._facade, self._window, self._streams, session_id=session_id, after=after)

    async def _opened(self, session_id: object) -> Conversation:
        conversation = await self._window.open(session_id) if isinstance(session_id, str) else None
        if conversation is None:
            raise HTTPException(404, _NOT_FOUND)
        return conversation


def _listed(row: SessionListRow) -> dict[str, Any]:
    return {
        "id": row["id"],
        "title": row["title"],
        "preview": row["preview"],
        "source": row["source"],
        "last_active": row["last_active"],
        "messages": row["message_count"],
    }


def _head(conversation: Conversation) -> dict[str, Any]:
    """What the page's header says; a session that is only expected has no facts yet."""
    tip = conversation.tip
    if tip is None:
        return {"id": conversation.tip_id, "title": None, "source": "web", "started_at": None, "model": None}
    return {name: tip[name] for name in ("id", "title", "source", "started_at", "model")}


def _number(request: Request, name: str, default: int, least: int, most: int) -> int:
    given = request.query_params.get(name)
    if given is None:
        return default
    if not _NUMBER.match(given):
        raise HTTPException(400, f"{name} must be a whole number.")
    return min(max(int(given), least), most)


async def _json_body(request: Request) -> Mapping[str, Any]:
    """The request's JSON object, read no further than `MAX_BODY` bytes."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Send the message as application/json.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise HTTPException(413, f"The text is too long; at most {MAX_TEXT:,} characters. Send it in parts.")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise HTTPException(400, "The body must be one JSON object with text and client_id.")
    return value
