"""The `session_search` tool: what was said before, word for word, as far as the asker may see.

Contract: with a query, conversations in which it was said, the best first, each with the passages that match and what
stands around the first of them; without a query, the conversations that were active last. No model is asked; the text
is what the store holds. The current conversation is searched too, since on one entrance everything may have been said
in it; left out are the question that is being answered (and what comes after it), the recall agent's own
confirmations and answers, which only repeat, and earlier calls of this tool: who looked for something has not said it.
Tool output is found only when `role_filter` names it.

Failure: never raises for what an agent may cause; the result says `success: false` and why, in a sentence.
Limits: at most 10 conversations, 6 passages in each and 24 in all, 600 characters of a passage, 240 of what is around:
a result stays small, because it becomes part of the history itself.
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
_ROLES: Final = ("user", "assistant", "tool", "system")
_DEFAULT_ROLES: Final = ("user", "assistant")
#: How a call of this tool begins in what the store makes searchable of it.
_OWN_CALL: Final = f"{SEARCH_TOOL}\nquery: "

SESSION_SEARCH_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "function",
    "function": {
        "name": SEARCH_TOOL,
        "description": (
            "Search everything that was said in past and present conversations that this person may see. With a query: "
            "conversations with the passages that match, word for word. Without one: the latest conversations. "
            'The query understands words (all must occur), OR, NOT, "a phrase" and prefix*; when nothing has all '
            "words, fewer are enough and the result says `relaxed`."
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
        """Search; returns JSON text. Arguments of the wrong kind are read as if they were not given."""
        query = arguments.get("query")
        limit = _limit(arguments.get("limit"))
        try:
            if isinstance(query, str) and query.strip():
                found = await self._discover(query.strip(), limit, arguments)
            else:
                found = await self._browse(limit)
        except StoreError as error:
            return json.dumps({"success": False, "error": str(error)}, ensure_ascii=False)
        return json.dumps({"success": True, **found}, ensure_ascii=False)

    async def _discover(self, query: str, limit: int, arguments: Mapping[str, Any]) -> dict[str, Any]:
        here = await self._current_sessions()
        finder = Finder(self._db, self._visible_to, lambda hit: self._left_out(hit, here))
        finds = await finder.find(query, _roles(arguments.get("role_filter")))
        if arguments.get("sort") in {"newest", "oldest"}:
            finds.sort(key=lambda find: find.hit["id"], reverse=arguments["sort"] == "newest")
        results = await Results(self._db, self._zone).conversations(finds, limit)
        return {
            "mode": "discover",
            "query": query,
            "relaxed": bool(finds) and not any(find.complete for find in finds),
            "approximate": any(find.hit["approximate"] for find in finds),
            "count": len(results),
            "results": results,
        }

    async def _browse(self, limit: int) -> dict[str, Any]:
        here = await self._current_sessions()
        rows = await self._db.list_sessions(limit=limit + 1, visible_to=self._visible_to)
        results = await Results(self._db, self._zone).sessions(rows, here, self._question_id)
        return {"mode": "browse", "count": len(results[:limit]), "results": results[:limit]}

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


def _limit(value: Any) -> int:
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return _LIMIT
    return min(max(value, 1), MOST_CONVERSATIONS)


def _roles(value: Any) -> tuple[str, ...]:
    named = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    wanted = {str(name).strip().lower() for name in named}
    return tuple(role for role in _ROLES if role in wanted) or _DEFAULT_ROLES
