"""What another agent may read of the owner's history: the tools and transcripts behind the MCP server.

Contract: reads only. The owner's own sessions and those of rooms they have spoken in, decided anew for each call; what
is not theirs does not exist. Results are JSON values of stored messages, never a summary. `session_search` is the same
tool that the agents of this home use.
Failure: `Refused` with a sentence for what the caller can mend; store errors as they come.
Limits: 100 sessions of a list, 200 messages of a page, `EXPORT_CHARACTERS` of an export and of a transcript.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gateway.errors import GatewayError
from gateway.owner import owner_sees
from gateway.phrases import clock
from gateway.tools.session_search import SESSION_SEARCH_SCHEMA, SessionSearchTool
from session_store.content import encode_content, plain_text
from session_store.redaction import redact, redact_value

if TYPE_CHECKING:
    from session_store import MessageRow, SessionDB, SessionExport, SessionListRow, SessionRow, Visibility

__all__ = ["EXPORT_CHARACTERS", "History", "Refused", "ToolDefinition"]

EXPORT_CHARACTERS: Final = 1_000_000
_LISTED: Final = 100
_PAGE: Final = 200
_CANDIDATES: Final = 10
#: More messages than this are not even read for an export.
_EXPORTED: Final = 20_000


class Refused(GatewayError):
    """The call could not be answered. Read the sentence and ask in another way."""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _List(_Arguments):
    source: Annotated[str | None, Field(description="Only sessions born there: cli, web, telegram, slack, ...")] = None
    search: Annotated[str | None, Field(description="Only sessions whose title, id or first words hold this.")] = None
    limit: Annotated[int, Field(ge=1, le=_LISTED)] = 20
    offset: Annotated[int, Field(ge=0)] = 0


class _Show(_Arguments):
    session: Annotated[str, Field(description="Id of the session, a unique beginning of it, or its title.")]
    before: Annotated[int | None, Field(description="Only messages with a smaller id; to page backwards.")] = None
    limit: Annotated[int, Field(ge=1, le=_PAGE)] = 50


class _Export(_Arguments):
    session: Annotated[str, Field(description="Id of the session, a unique beginning of it, or its title.")]
    format: Annotated[Literal["json", "markdown"], Field(description="What the text of the result is.")] = "json"


class ToolDefinition(BaseModel):
    """A tool as clients see it. parameters: JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


_SEARCH: Final = SESSION_SEARCH_SCHEMA["function"]


class History:
    """The owner's history. redact: without what looks like a secret."""

    def __init__(self, db: SessionDB, *, redact: bool = False) -> None:
        self._db = db
        self._redact = redact
        self._tools: dict[str, Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]] = {
            "session_search": self._search,
            "session_list": self._list,
            "session_show": self._show,
            "session_export": self._export,
        }

    @property
    def definitions(self) -> Sequence[ToolDefinition]:
        """All tools."""
        return (
            ToolDefinition(
                name="session_search", description=_SEARCH["description"], parameters=dict(_SEARCH["parameters"])
            ),
            ToolDefinition(
                name="session_list",
                description="List sessions, newest activity first: id, title, first words, where, when, how long.",
                parameters=_List.model_json_schema(),
            ),
            ToolDefinition(
                name="session_show",
                description="Read the messages of one session, the newest page first; `before` pages backwards.",
                parameters=_Show.model_json_schema(),
            ),
            ToolDefinition(
                name="session_export",
                description="A whole session with all its messages and facts, as JSON or as a Markdown transcript.",
                parameters=_Export.model_json_schema(),
            ),
        )

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one call."""
        tool = self._tools.get(name)
        if tool is None:
            raise Refused(f"There is no tool “{name}”. There are: {', '.join(self._tools)}.")
        try:
            answer = await tool(arguments)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the arguments"
            raise Refused(f"{where}: {first['msg']}.") from error
        return {name: redact_value(value) for name, value in answer.items()} if self._redact else answer

    async def recent(self, limit: int) -> list[SessionListRow]:
        """The sessions that were active last."""
        rows = await self._db.list_sessions(limit=limit, visible_to=await owner_sees(self._db))
        if self._redact:
            for row in rows:
                row["title"], row["preview"] = redact_value(row["title"]), redact(row["preview"])
        return rows

    async def transcript(self, ref: str) -> str:
        """A conversation as Markdown, oldest first; one that is too long begins with what was left out."""
        session = await self._one(ref, await owner_sees(self._db))
        lines: deque[str] = deque()
        length = left = 0
        for segment in await self._db.conversation_of(session["id"]):
            last, more = 0, True
            while more:
                rows = await self._db.get_messages_after(segment, last, _PAGE)
                last, more = rows[-1]["id"] if rows else last, len(rows) == _PAGE
                lines.extend(_as_markdown(row) for row in rows if _spoken(row))
                length = sum(map(len, lines))
                while length > EXPORT_CHARACTERS:
                    length -= len(lines.popleft())
                    left += 1
        title = session["title"] or "(no title)"
        note = [f"_{left} earlier messages are left out; `session_show` reads them._"] if left else []
        whole = "\n\n".join([f"# {title}", f"{session['id']}, {session['source']}", *note, *lines]) + "\n"
        return redact(whole) if self._redact else whole

    # --- the tools ---------------------------------------------------------------------------------------------------

    async def _search(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        tool = SessionSearchTool(self._db, await owner_sees(self._db), None)
        found: dict[str, Any] = json.loads(await tool.call(arguments))
        if not found.get("success"):
            raise Refused(str(found.get("error")))
        return found

    async def _list(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        asked = _List.model_validate(dict(arguments))
        rows = await self._db.list_sessions(
            asked.source, asked.limit, asked.offset, visible_to=await owner_sees(self._db), search=asked.search
        )
        return {"count": len(rows), "sessions": [_listed(row) for row in rows]}

    async def _show(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        asked = _Show.model_validate(dict(arguments))
        session = await self._one(asked.session, await owner_sees(self._db))
        rows: list[MessageRow] = []
        for segment in reversed(await self._db.conversation_of(session["id"])):
            wanted = asked.limit + 1 - len(rows)
            if wanted > 0:
                rows = await self._db.get_messages_before(segment, asked.before or 2**62, wanted) + rows
        more = len(rows) > asked.limit
        shown = [row for row in rows[-asked.limit :] if not row["rewound"]]
        return {"session": _facts(session), "more_before": more, "messages": [_message(row) for row in shown]}

    async def _export(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        asked = _Export.model_validate(dict(arguments))
        if asked.format == "markdown":
            return {"format": "markdown", "text": await self.transcript(asked.session)}
        session = await self._one(asked.session, await owner_sees(self._db))
        segments: list[SessionExport] = []
        size = 0
        for segment in await self._db.conversation_of(session["id"]):
            facts = await self._db.get_session(segment)
            small = facts is not None and (facts["message_count"] or 0) <= _EXPORTED
            exported = await self._db.export_session(segment) if small else None
            size += len(json.dumps(exported, ensure_ascii=False)) if exported is not None else EXPORT_CHARACTERS
            if exported is not None and size <= EXPORT_CHARACTERS:
                segments.append(exported)
                continue
            raise Refused(
                f"This session is larger than {EXPORT_CHARACTERS:,} characters. Read it in pages with session_show, or "
                f"run `threadline sessions export FILE --session {session['id']}`."
            )
        return {"format": "json", "sessions": segments}

    async def _one(self, ref: str, visible_to: Visibility) -> SessionRow:
        found = await self._db.resolve_session(ref, visible_to=visible_to)
        if len(found) > 1:
            raise Refused(f"“{ref}” may be several sessions; name one: {', '.join(found[:_CANDIDATES])}.")
        session = await self._db.get_session(found[0]) if found else None
        if session is None:
            raise Refused(f"There is no session “{ref}”. session_list shows them.")
        return session


def _spoken(row: MessageRow) -> bool:
    return not row["rewound"] and row["role"] in {"user", "assistant"} and bool(_text(row))


def _text(row: MessageRow) -> str:
    return plain_text(encode_content(row["content"]))


def _as_markdown(row: MessageRow) -> str:
    return f"**{row['role']}**, {clock(row['timestamp'])}\n\n{_text(row)}"


def _listed(row: SessionListRow) -> dict[str, Any]:
    names = ("id", "title", "preview", "source", "started_at", "last_active", "message_count")
    return {name: value for name, value in row.items() if name in names}


def _facts(session: SessionRow) -> dict[str, Any]:
    names = ("id", "title", "source", "model", "started_at", "ended_at", "end_reason", "parent_session_id")
    return {name: value for name, value in session.items() if name in names}


def _message(row: MessageRow) -> dict[str, Any]:
    names = ("id", "session_id", "role", "content", "tool_calls", "tool_name", "tool_call_id", "timestamp")
    return {name: value for name, value in row.items() if name in names and value is not None}
