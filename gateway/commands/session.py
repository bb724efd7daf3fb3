"""Commands that change the conversation one is in: /new, /title, /stop.

A title is cleaned before it is answered, so that the reply names what is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from gateway.bell import Bell
from gateway.commands.registry import Command, CommandContext, Reply
from gateway.ids import new_session_id
from gateway.phrases import inert
from gateway.places import place_ref
from session_store import RequestStop, Retitle, StartSession
from session_store.titles import clean_title

if TYPE_CHECKING:
    from session_store import SessionDB, SessionRow

__all__ = ["NEW", "STOP", "TITLE"]

#: How long a message that was said before /stop may take until its turn begins.
BEGIN_SECONDS = 5.0
LOOK_SECONDS = 0.2


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
    root = await _running(context, context.session)
    if root is None and context.session_key is not None and await _begun(context.db, context.session_key):
        # It may have been the first message, which has made the session.
        root = await _running(context, await context.db.routes.session_for(context.session_key))
    if root is None:
        return Reply("Nothing is running here.")
    return Reply("Stopping the running turn.", (RequestStop(root, context.person_id),))


async def _running(context: CommandContext, session: SessionRow | None) -> str | None:
    """The conversation of a session if a turn runs in it."""
    root = None if session is None else session["root_id"] or session["id"]
    return None if root is None or await context.db.turns.running_in(root) is None else root


async def _begun(db: SessionDB, lane: str) -> bool:
    """Whether something waits in a lane; returns once its turn has begun: who stops it takes it to be running."""
    bell = Bell(db, "inbox")
    first = await db.inbox.waits_in(lane)
    if first is None:
        return False
    with anyio.move_on_after(BEGIN_SECONDS):
        while (row := await db.inbox.get(first)) is not None and row["state"] == "new":
            await bell.wait(LOOK_SECONDS)
    return True


NEW = Command("new", "/new [title]", "begin a new session here; the former one is kept", _new, immediate=False)
TITLE = Command("title", "/title [text]", "show or set the title of this session", _title, immediate=False)
STOP = Command("stop", "/stop", "end the running turn for good", _stop)
