"""The `session_search` tool: what was said before, word for word, as far as the asker may see.

Contract: one tool in four shapes, told apart by the arguments. *Scroll* (session_id and around_message_id): a window of
a session. *Read* (session_id): its beginning and its end. *Discovery* (query): conversations in which it was said, the
best first, each with the passages that match and what stands around the first of them. *Browse* (nothing): the
conversations that were active last. No model is asked; the text is what the store holds. The current conversation is
left out of a discovery unless `include_current` asks for it: an agent that answers from its context has it already, one
that does not (recall) asks. Left out in any case are the question that is being answered and what comes after it, the
recall agent's own confirmations and answers, which only repeat, and earlier calls of this tool: who looked for
something has not said it. Tool output is found only when `role_filter` names it.

Failure: never raises for what an agent may cause; the result says `success: false` and why, in a sentence.
Limits: at most 10 conversations, 6 passages in each and 24 in all, 600 characters of a passage, 300 of what is around,
2,000 of a message that is read: a result stays small, because it becomes part of the history itself.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from gateway.agents.phrasing import is_own
from gateway.tools.finding import Finder, unmarked
from gateway.tools.results import MOST_CONVERSATIONS, SEARCH_TOOL, Results
from session_store import StoreError

if TYPE_CHECKING:
    from session_store import SearchHit, SessionDB, Visibility

__all__ = ["SESSION_SEARCH_SCHEMA", "SessionSearchTool"]

_LIMIT: Final = 5
_WINDOW: Final = 5
_WINDOW_MOST: Final = 20
_HEAD: Final = 20
_TAIL: Final = 10
_ROLES: Final = ("user", "assistant", "tool", "system")
_DEFAULT_ROLES: Final = ("user", "assistant")
#: How a call of this tool begins in what the store makes searchable of it.
_STOPPED: Final = "The search was stopped after two seconds; there may be more. Ask for fewer or rarer words."
_OWN_CALL: Final = f"{SEARCH_TOOL}\nquery: "

SESSION_SEARCH_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "function",
    "function": {
        "name": SEARCH_TOOL,
        "description": (
            "Search the history of conversations that this person may see; no model is called, the results are the "
            "stored messages. Four shapes, by the arguments you give. (1) query: conversations in which it was said, "
            "with the passages, the messages around the best one (marked `anchor`), and the first and last messages of "
            "its session. (2) session_id and around_message_id: the messages around that one; to scroll on, call again "
            "with the id of the last (or first) message of the window. (3) session_id alone: how that session begins "
            "and ends. (4) no arguments: the latest conversations. The query may be a question, or words (all must "
            'occur), OR, NOT, "a phrase" and prefix*; when few messages have all words, those that come closest follow '
            "and the result says `relaxed`. Use it when the person refers to something that is not in this "
            "conversation."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for; leave out to list the latest."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST_CONVERSATIONS, "default": _LIMIT},
                "sort": {"type": "string", "enum": ["newest", "oldest"], "description": "Default: best match first."},
                "role_filter": {
                    "type": "string",
                    "description": "Whose messages, separated by commas: user, assistant, tool, system.",
                    "default": ",".join(_DEFAULT_ROLES),
                },
                "include_current": {
                    "type": "boolean",
                    "description": "Search this conversation too, for example what is no longer in your context.",
                    "default": False,
                },
                "session_id": {"type": "string", "description": "A session to read, from an earlier result."},
                "around_message_id": {"type": "integer", "description": "A message of that session to read around."},
                "window": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": _WINDOW_MOST,
                    "default": _WINDOW,
                    "description": "Messages on each side; 0 with a query leaves out what stands around.",
                },
            },
            "additionalProperties": False,
        },
    },
}


class SessionSearchTool:
    """The tool, bound to one asker.

    current_root: the conversation the asker is in, None outside one. question_id: the message that is being answered.
    zone: in which times are written, None for the machine's own; made at start-up, since making one reads the disk.
    """

    def __init__(
        self,
        db: SessionDB,
        visible_to: Visibility,
        current_root: str | None,
        *,
        question_id: int | None = None,
        zone: ZoneInfo | None = None,
    ) -> None:
        self._db = db
        self._visible_to = visible_to
        self._current_root = current_root
        self._question_id = question_id
        self._zone = zone

    async def call(self, arguments: Mapping[str, Any]) -> str:
        """Answer; returns JSON text. Arguments of the wrong kind are read as if they were not given."""
        query, session_id = arguments.get("query"), arguments.get("session_id")
        results = Results(self._db, self._visible_to, self._zone)
        try:
            if isinstance(session_id, str) and session_id.strip():
                found = await self._read(session_id.strip(), arguments, results)
            elif isinstance(query, str) and query.strip():
                found = await self._discover(query.strip(), arguments, results)
            else:
                found = await self._browse(_number(arguments.get("limit"), _LIMIT, 1, MOST_CONVERSATIONS), results)
        except StoreError as error:
            found = _failed(str(error))
        return json.dumps({"success": True, **found}, ensure_ascii=False)

    async def _discover(self, query: str, arguments: Mapping[str, Any], results: Results) -> dict[str, Any]:
        limit = _number(arguments.get("limit"), _LIMIT, 1, MOST_CONVERSATIONS)
        window = _number(arguments.get("window"), _WINDOW, 0, _WINDOW_MOST)
        with_current = arguments.get("include_current") is True or self._current_root is None
        here = await self._current_sessions()
        finder = Finder(
            self._db,
            self._visible_to,
            lambda hit: self._left_out(hit, here),
            () if with_current or self._current_root is None else (self._current_root,),
        )
        found = await finder.find(query, _roles(arguments.get("role_filter")))
        if arguments.get("sort") in {"newest", "oldest"}:
            found.finds.sort(key=lambda find: find.hit["id"], reverse=arguments["sort"] == "newest")
        conversations = await results.conversations(found.finds, limit, window)
        if len(conversations) < limit:
            titled = await self._db.list_sessions(limit=limit, search=query.strip('"'), visible_to=self._visible_to)
            known = {find.hit["root_id"] for find in found.finds} | (
                {self._current_root} if self._current_root else set()
            )
            conversations += await results.by_title(titled, known, limit - len(conversations), window)
        return {
            "mode": "discover",
            "query": query,
            "relaxed": found.relaxed,
            "approximate": any(find.hit["approximate"] for find in found.finds),
            "stopped": found.stopped,
            "count": len(conversations),
            "results": conversations,
        } | ({"note": _STOPPED} if found.stopped else {})

    async def _browse(self, limit: int, results: Results) -> dict[str, Any]:
        here = await self._current_sessions()
        rows = await self._db.list_sessions(limit=limit + 1, visible_to=self._visible_to)
        listed = await results.sessions(rows, here, self._question_id)
        return {"mode": "browse", "count": len(listed[:limit]), "results": listed[:limit]}

    async def _read(self, session_id: str, arguments: Mapping[str, Any], results: Results) -> dict[str, Any]:
        """Scroll or read."""
        if arguments.get("around_message_id") is not None:
            return await self._scroll(session_id, arguments, results)
        visible = session_id in await self._db.resolve_session(session_id, visible_to=self._visible_to)
        session = await self._db.get_session(session_id) if visible else None
        if session is None:
            return _failed(f"There is no session “{session_id}”. Call without arguments to list the latest ones.")
        told = {"session_id": session_id, "session": results.facts(session)}
        return {"mode": "read", **told, **await self._ends(session_id, results)}

    async def _scroll(self, session_id: str, arguments: Mapping[str, Any], results: Results) -> dict[str, Any]:
        anchor = _number(arguments["around_message_id"], 0, 0, 2**63 - 1)
        window = _number(arguments.get("window"), _WINDOW, 1, _WINDOW_MOST)
        (found,) = await self._db.get_windows([anchor], window, visible_to=self._visible_to)
        note = {}
        if found is not None and found["session_id"] != session_id:
            if found["session_id"] in await self._segments(session_id):
                note = {"note": f"The message is in another session of the same conversation, {found['session_id']}."}
            else:
                found = None
        if found is None:
            return _failed(f"There is no message {arguments['around_message_id']!r} in session “{session_id}”.")
        return {
            "mode": "scroll",
            "session_id": found["session_id"],
            "session": results.facts(found),
            **note,
            "around_message_id": anchor,
            "window": window,
            "messages": results.messages(found["messages"], anchor),
            "messages_before": found["messages_before"],
            "messages_after": found["messages_after"],
        }

    async def _segments(self, session_id: str) -> Collection[str]:
        """The sessions of a conversation, as far as there is one with this id."""
        if await self._db.get_session(session_id) is None:
            return ()
        return await self._db.conversation_of(session_id)

    async def _ends(self, session_id: str, results: Results) -> dict[str, Any]:
        head = await self._db.get_messages_after(session_id, 0, _HEAD)
        tail = await self._db.get_messages_before(session_id, 2**62, _TAIL)
        last = head[-1]["id"] if head else 0
        left = 0
        if tail and tail[0]["id"] > last:
            (window,) = await self._db.get_windows([last], 0, visible_to=self._visible_to)
            left = max(0, (window["messages_after"] if window else 0) - len(tail))
        rows = [*head, *(row for row in tail if row["id"] > last)]
        return {
            "message_count": len(rows) + left,
            "left_out": left,
            "messages": results.messages(rows),
        }

    async def _current_sessions(self) -> frozenset[str]:
        if self._current_root is None:
            return frozenset()
        return frozenset(await self._db.conversation_of(self._current_root))

    def _left_out(self, hit: SearchHit, here: Collection[str]) -> bool:
        """Whether a hit is the question itself, something after it, or only an agent repeating what it was told."""
        if self._question_id is not None and hit["session_id"] in here and hit["id"] >= self._question_id:
            return True
        text = unmarked(hit["snippet"])
        return hit["role"] == "assistant" and (is_own(text) or text.startswith(_OWN_CALL))


def _failed(reason: str) -> dict[str, Any]:
    return {"success": False, "error": reason}


def _number(value: Any, default: int, least: int, most: int) -> int:
    """A number within bounds; what is none is read as if it were not given."""
    if isinstance(value, str) and value.isdecimal():
        value = int(value[:20])
    if not isinstance(value, int) or isinstance(value, bool):
        return default
    return min(max(value, least), most)


def _roles(value: Any) -> tuple[str, ...]:
    named = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    wanted = {str(name).strip().lower() for name in named}
    return tuple(role for role in _ROLES if role in wanted) or _DEFAULT_ROLES
