"""Commands that look around: /sessions and /search. Both see exactly what the asker may see in this place."""

from __future__ import annotations

import json
from typing import Any

from gateway.commands.choosing import LISTED, numbered
from gateway.commands.registry import Command, CommandContext, Reply
from gateway.phrases import entrance, inert, one_line
from gateway.tools.session_search import SessionSearchTool

__all__ = ["SEARCH", "SESSIONS"]

FOUND = 5


async def _sessions(context: CommandContext, argument: str) -> Reply:
    rows = await context.db.list_sessions(limit=LISTED, visible_to=context.visible_to, search=argument or None)
    if not rows:
        return Reply("No session matches." if argument else "There are no sessions yet.")
    lines, kept = await numbered(context, rows)
    return Reply("\n".join(lines), (kept,))


async def _search(context: CommandContext, argument: str) -> Reply:
    if not argument:
        return Reply(
            'Say what to look for: `/search deploy script`. AND, OR, NOT, "a phrase" and prefix* are understood.'
        )
    root = (context.session["root_id"] or context.session["id"]) if context.session is not None else None
    tool = SessionSearchTool(context.db, context.visible_to, root, zone=context.zone)
    found: dict[str, Any] = json.loads(
        await tool.call({"query": argument, "limit": FOUND, "include_current": True, "window": 0})
    )
    if not found.get("success"):
        return Reply(str(found.get("error", "The search failed.")))
    results = found["results"]
    if not results:
        return Reply(f"Nothing found for “{inert(one_line(argument, 80))}”.")
    lines = ["Nothing has all these words; these come close:"] if found.get("relaxed") else []
    for number, hit in enumerate(results, start=1):
        name = inert(one_line(hit["title"] or hit["session_id"], 60))
        snippet = inert(one_line(hit["snippet"].replace(">>>", "").replace("<<<", ""), 200))
        lines.append(f"{number}. **{name}** ({entrance(hit['source'])}, {hit['when']}): {snippet}")
    return Reply("\n".join(lines))


SESSIONS = Command("sessions", "/sessions [words]", "list the sessions you can see here, newest first", _sessions)
SEARCH = Command("search", "/search words", "find what was said, in all sessions you can see here", _search)
