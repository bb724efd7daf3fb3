"""`threadline handoff`: a conversation goes on in a chat, or comes back to the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import anyio
import typer

from gateway.cli.options import AsJson, SessionId, Yes, sub_command
from gateway.cli.output import write, write_json
from gateway.cli.running import async_run, fail, settings_of_home
from gateway.cli.sessions.common import one_session
from gateway.handoff_watch import call_off, watch
from gateway.handoff_words import outcome, place_words
from gateway.owner import OWNER, owner_sees
from gateway.places import TERMINAL, place_ref, web_place
from gateway.targets import find_target, local_target
from session_store import NewHandoff, SessionDB, TakeLocally

if TYPE_CHECKING:
    from config import Settings
    from session_store import HandoffRow

__all__ = ["app"]

app = sub_command()


@app.command("handoff")
def handoff(
    session: SessionId,
    place: Annotated[
        str,
        typer.Argument(metavar="PLATFORM[:CHAT]", help="Where it goes on: telegram, discord, slack, email, cli, web."),
    ],
    *,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Let a conversation go on in a chat: your home on that platform, or the chat that you name.

    A running gateway opens a thread there and writes a short summary; the next message there continues the session.
    Ctrl-C calls it off.
    """
    home, settings = settings_of_home()

    async def run() -> HandoffRow | None:
        async with SessionDB(home.state_db) as db:
            visible_to = await owner_sees(db)
            session_id = await one_session(db, visible_to, session)
            local = local_target(place)
            if local is not None:
                await _locally(db, session_id, local, as_json=as_json)
                return None
            new = await _asked(db, settings, session_id, place, yes=yes, as_json=as_json)
            await db.handoffs.request(new)
            return await _followed(db, new.op_id, quiet=as_json)

    row = async_run(run())
    if row is None:
        return
    if as_json:
        write_json(_shown(row))
    elif row["state"] == "completed":
        write(outcome(row))
        write(f"`threadline -r {row['root_id']}` takes it up here again.")
    if row["state"] != "completed":
        raise fail(outcome(row)) if not as_json else typer.Exit(1)


async def _asked(  # noqa: PLR0913 - what the command line says
    db: SessionDB, settings: Settings, session_id: str, place: str, *, yes: bool, as_json: bool
) -> NewHandoff:
    """The request, once the person is sure."""
    target = await find_target(db, settings, place, OWNER)
    if target.shared and not yes:
        question = f"Everybody in {target.where} will read this conversation, and it becomes the room's. Go on?"
        if as_json or not await anyio.to_thread.run_sync(lambda: typer.confirm(question, err=True)):
            raise fail("Nothing was done; `--yes` says that it shall be so.")
    return NewHandoff(
        op_id=uuid4().hex,
        kind="handoff",
        session_id=session_id,
        target=target.home,
        person_id=OWNER,
        visible_to=await owner_sees(db),
    )


async def _followed(db: SessionDB, op_id: str, *, quiet: bool) -> HandoffRow | None:
    """Wait for the end; interrupted, call it off."""
    try:
        return await watch(db, op_id, lambda sentence: None if quiet else typer.echo(sentence, err=True))
    except BaseException:
        with anyio.CancelScope(shield=True):
            if await call_off(db, op_id):
                typer.echo("Called off; the conversation is where it was.", err=True)
            else:
                typer.echo("It had ended already; `threadline sessions show` tells where it is.", err=True)
        raise


async def _locally(db: SessionDB, session_id: str, platform: str, *, as_json: bool) -> None:
    where = place_ref(TERMINAL if platform == "cli" else web_place(OWNER))
    farewell = f"This conversation goes on in {place_words(where)}. What is said here begins a new one."
    elsewhere = "This conversation goes on elsewhere. What is said here begins a new one."
    (left,) = await db.apply([TakeLocally(session_id, where, OWNER, farewell, elsewhere)])
    if as_json:
        write_json({"session": session_id, "state": "completed", "place": where.platform, "left_chats": bool(left)})
    elif left:
        write(f"The conversation waits in {place_words(where)}: `threadline -r {session_id}`.")
    else:
        write(f"No chat led to it; `threadline -r {session_id}` takes it up here.")


def _shown(row: HandoffRow) -> dict[str, Any]:
    place = row["place"]
    return {
        "session": row["root_id"],
        "state": row["state"],
        "platform": row["target"].platform,
        "chat": (place or row["target"]).chat,
        "thread": place.thread if place is not None else None,
        "note": row["note"],
        "error": row["error"],
    }
