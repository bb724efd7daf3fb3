"""Commands that change the conversation one is in: /new, /title, /stop.

A title is cleaned before it is answered, so that the reply names what is stored.
"""

from __future__ import annotations

from gateway.commands.registry import Command, CommandContext, Reply
from gateway.ids import new_session_id
from gateway.phrases import inert
from gateway.places import place_ref
from session_store import RequestStop, Retitle, StartSession
from session_store.titles import clean_title

__all__ = ["NEW", "STOP", "TITLE"]


async def _new(context: CommandContext, argument: str) -> Reply:
    session_id = new_session_id("terminal" if context.source == "cli" else "gateway", context.now)
    title = clean_title(argument)
    named = f" It is called “{inert(title)}”." if title else ""
    effect = StartSession(
        session_key=context.session_key,
        place=place_ref(context.place),
        source=context.source,
        owner=context.owner,
        new_session_id=session_id,
        room_id=context.room_id,
        person_id=context.person_id,
        title=title,
        model=context.model,
        user_id=context.user_id,
        leaves=context.session["id"] if context.session is not None else None,
    )
    return Reply(f"A new session begins.{named} The former one is kept.", (effect,), session_id)


async def _title(context: CommandContext, argument: str) -> Reply:
    if context.session is None:
        return Reply("There is no session here yet. Say something first, or use `/new TITLE`.")
    wanted = clean_title(argument)
    if wanted is None:
        title = context.session["title"]
        if not title:
            return Reply("This session has no title. Use `/title TEXT`.")
        return Reply(f"This session is called “{inert(title)}”.")
    return Reply(f"This session is now called “{inert(wanted)}”.", (Retitle(context.session["id"], wanted),))


async def _stop(context: CommandContext, argument: str) -> Reply:  # noqa: ARG001 - every handler gets the argument
    if context.session is None:
        return Reply("Nothing is running here.")
    root = context.session["root_id"] or context.session["id"]
    if await context.db.turns.running_in(root) is None:
        return Reply("Nothing is running here.")
    return Reply("Stopping the running turn.", (RequestStop(root, context.person_id),))


NEW = Command("new", "/new [title]", "begin a new session here; the former one is kept", _new, immediate=False)
TITLE = Command("title", "/title [text]", "show or set the title of this session", _title, immediate=False)
STOP = Command("stop", "/stop", "end the running turn for good", _stop)
