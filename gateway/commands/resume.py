"""/resume: go on with another conversation here.

Contract: the place leads to the live tip of the conversation from the next message on; the one that is left is kept. In
a room, only what lives in the room is found. A person's own session that was held in this room by themselves alone, and
with `--yes` one that the owner of the home names exactly, becomes the room's by it; it is asked for first. Whether a
private session exists is never told in a room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.commands.choosing import LISTED, asker, named, numbered
from gateway.commands.registry import Command, CommandContext, Reply
from gateway.owner import OWNER
from gateway.phrases import inert, one_line
from gateway.places import LOCAL_PLATFORMS, place_ref
from gateway.recap import recap_of, told
from gateway.resuming import Meant, meant, stripped
from session_store import ResumeSession, Visibility

if TYPE_CHECKING:
    from session_store import SessionListRow

__all__ = ["RESUME"]

YES = "--yes"
_TOLD_EXCHANGES = 2
_LONGEST_NUMBER = 3


@dataclass(frozen=True, slots=True)
class _Found:
    """A conversation that may be taken up here. sees: by what it was found. given_to: whose it becomes by that."""

    row: SessionListRow
    sees: Visibility
    given_to: tuple[str, str] | None = None


async def _resume(context: CommandContext, argument: str) -> Reply:
    words = argument.split()
    agreed = bool(words) and YES in {words[0], words[-1]}
    name = stripped(argument.strip().removeprefix(YES).removesuffix(YES) if agreed else argument)
    if not name:
        return await _list(context)
    numbered_one = await _by_number(context, name)
    if isinstance(numbered_one, Reply):
        return numbered_one
    found = await _find(context, numbered_one or name, agreed=agreed)
    return found if isinstance(found, Reply) else await _take_up(context, found)


async def _list(context: CommandContext) -> Reply:
    rows = await context.db.list_sessions(limit=LISTED, visible_to=context.visible_to)
    if not rows:
        return Reply("There are no sessions here to go on with yet.")
    lines, kept = await numbered(context, rows)
    return Reply("\n".join([*lines, "", "`/resume NUMBER` goes on with one, `/resume TITLE` too."]), (kept,))


async def _by_number(context: CommandContext, name: str) -> str | Reply | None:
    """The session behind a number of the last list; None for what is no such number."""
    if not (name.isascii() and name.isdigit() and len(name) <= _LONGEST_NUMBER):
        return None
    listed = await context.db.offered(asker(context))
    if 1 <= int(name) <= len(listed):
        return listed[int(name) - 1]
    if await context.db.resolve_session_by_title(name, visible_to=context.visible_to) is not None:
        return None
    if not listed:
        return Reply("There is no list that this number could mean. `/resume` alone shows one.")
    return Reply(f"The list has no number {int(name)}; it ends with {len(listed)}. `/resume` shows it again.")


async def _find(context: CommandContext, name: str, *, agreed: bool) -> _Found | Reply:
    here = context.session["id"] if context.session is not None else None
    result = await meant(context.db, name, context.visible_to, here=here)
    if result.one is not None:
        return _Found(result.one, context.visible_to)
    if result.found or context.place.private or context.room_id is None:
        return Reply(_unclear(context, result, name))
    return await _from_elsewhere(context, result, name, agreed=agreed)


async def _from_elsewhere(context: CommandContext, here: Meant, name: str, *, agreed: bool) -> _Found | Reply:
    """What is not the room's and yet may come into it: see the module."""
    person, room = context.person_id, context.room_id
    if person is None or room is None:
        return Reply(_unclear(context, here, name))
    in_this_room = Visibility(frozenset({person}), within_room=room)
    result = await meant(context.db, name, in_this_room)
    if result.one is not None and not agreed:
        title = inert(one_line(result.one["title"] or result.one["id"], 60))
        return Reply(
            f"“{title}” is yours alone. Taken up here it becomes this room's: everybody here can then read it and go "
            f"on with it. `/resume {YES} {inert(one_line(name, 100))}` does it."
        )
    if result.one is not None:
        return _Found(result.one, in_this_room, (context.owner, room))
    if person != OWNER:
        return Reply(_unclear(context, here, name))
    anywhere = Visibility(frozenset({person}))
    result = await meant(context.db, name, anywhere) if agreed else Meant(())
    if result.one is not None:
        return _Found(result.one, anywhere, (context.owner, room))
    hint = (
        " Only this room's sessions are found here. To bring one of your own, which everybody here can then read, send "
        f"`/resume {YES}` with its whole title or id."
    )
    return Reply(_unclear(context, here, name) + hint)


def _unclear(context: CommandContext, result: Meant, name: str) -> str:
    sentence = result.unclear(name, lambda row: f"- {named(row, context.now)}", inert)
    return sentence if result.found or result.similar else f"{sentence} `/resume` lists what there is."


async def _take_up(context: CommandContext, found: _Found) -> Reply:
    session_id = found.row["id"]
    here = await context.db.conversation_of(context.session["id"]) if context.session is not None else []
    if session_id in here:
        return Reply("That is the session you are in already.")
    effect = ResumeSession(
        session_id=session_id,
        place=place_ref(context.place),
        visible_to=found.sees,
        session_key=context.session_key,
        person_id=context.person_id,
        leaves=here[-1] if here else None,
        given_to=found.given_to,
    )
    return Reply(await _words(context, session_id), (effect,), session_id)


async def _words(context: CommandContext, session_id: str) -> str:
    recap = await recap_of(context.db, session_id, _TOLD_EXCHANGES)
    if recap is None:
        return "Going on with it."
    text = inert(recap.head(context.now)) if context.place.platform in LOCAL_PLATFORMS else told(recap, context.now)
    room = recap.session["room_id"]
    if context.place.private and room is not None and room == recap.session["owner"]:
        return f"{text}\n\nIt belongs to a room: what you say in it, and the answers, can be read there."
    return text


RESUME = Command(
    "resume",
    "/resume [number, title or id]",
    "go on with another session here; alone, list them",
    _resume,
    immediate=False,
)
