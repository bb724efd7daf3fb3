"""Commands that change the conversation one is in: /new, /title, /stop."""

from __future__ import annotations

from gateway.commands.registry import Command, CommandContext, Reply
from gateway.ids import new_session_id
from gateway.places import place_ref
from session_store import RequestStop, Retitle, StartSession

__all__ = ["NEW", "STOP", "TITLE"]


async def _new(context: CommandContext, argument: str) -> Reply:
    session_id = new_session_id("terminal" if context.source == "cli" else "gateway", context.now)
    named = f" It is called “{argument}”." if argument else ""
    effect = StartSession(
        session_key=context.session_key,
        place=place_ref(context.place),
        source=context.source,
        owner=context.owner,
        new_session_id=session_id,
        room_id=context.room_id,
        person_id=context.person_id,
        title=argument or None,
        model=context.model,
        user_id=context.user_id,
        leaves=context.session["id"] if context.session is not None else None,
    )
    return Reply(f"A new session begins.{named} The former one is kept.", (effect,), session_id)


async def _title(context: CommandContext, argument: str) -> Reply:
    if context.session is None:
        return Reply("There is no session here yet. Say something first, or use `/new TITLE`.")
    if not argument:
        title = context.session["title"]
        return Reply(f"This session is called “{title}”." if title else "This session has no title. Use `/title TEXT`.")
    return Reply(f"This session is now called “{argument}”.", (Retitle(context.session["id"], argument),))


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
