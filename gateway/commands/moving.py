"""Commands that bring a conversation elsewhere: /sethome, /handoff, /link, /unlink.

Contract: the owner moves every conversation that they see; everybody else only their own. What belongs to a room they
may read, go on with and leave with their own direct chat, and never take away from the room's people.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

from gateway.commands.registry import Command, CommandContext, Reply
from gateway.handoff_words import place_words
from gateway.owner import OWNER
from gateway.phrases import entrance
from gateway.places import LOCAL_PLATFORMS, TERMINAL, place_ref, web_place
from gateway.targets import find_target, local_target
from session_store import Home, NewHandoff, RequestHandoff, SetHome, TakeLocally, Unlink

if TYPE_CHECKING:
    from session_store import PlaceRef

__all__ = ["HANDOFF", "LINK", "SETHOME", "UNLINK"]

_YES = "--yes"
_NOTHING = "There is no session here yet. Say something first; then there is a line to move."
_THE_ROOMS = "This conversation belongs to the room; only the owner of this Threadline moves it."


async def _sethome(context: CommandContext, argument: str) -> Reply:  # noqa: ARG001 - every handler gets the argument
    place = context.place
    if place.platform in LOCAL_PLATFORMS:
        return Reply("A home is a chat on a platform: say `/sethome` there. The terminal and the web need none.")
    if context.person_id is None:
        return Reply("Only somebody this Threadline knows has a home. Ask its owner to pair you.")
    if context.person_id != OWNER and not place.private:
        return Reply("A shared place is made a home only by the owner of this Threadline; your own direct chat works.")
    home = replace(place_ref(place), thread="", name=None if place.thread else place.name)
    name = entrance(place.platform)
    text = f"This chat is your home on {name} now: `/handoff {place.platform}` brings a conversation here."
    return Reply(text, (SetHome(context.person_id, Home(home, context.user_id)),))


async def _handoff(context: CommandContext, argument: str) -> Reply:
    text, sure = _parsed(argument)
    if not text:
        return Reply(
            "Say where to: `/handoff telegram`, `/handoff slack:CHAT`, `/handoff cli`. Without a chat it is your home "
            "there (`/sethome`)."
        )
    local = local_target(text)
    if local is not None:
        return await _locally(context, local)
    return await _request(context, "handoff", text, sure=sure)


async def _link(context: CommandContext, argument: str) -> Reply:
    text, sure = _parsed(argument)
    if not text:
        linked = await context.db.links.of_session(context.session["id"]) if context.session is not None else []
        if not linked:
            return Reply("Say with what: `/link telegram`, `/link slack:CHAT`. Nothing is linked yet.")
        return Reply("This conversation lives in:\n" + "\n".join(f"- {place_words(place)}" for place in linked))
    if local_target(text) is not None:
        return Reply("The terminal and the web show every conversation live; they need no link.")
    return await _request(context, "link", text, sure=sure)


async def _request(context: CommandContext, kind: Literal["handoff", "link"], text: str, *, sure: bool) -> Reply:
    if context.session is None or not context.session["message_count"]:
        return Reply(_NOTHING)
    if not _is_theirs(context):
        return Reply(_THE_ROOMS)
    target = await find_target(context.db, context.settings, text, context.person_id)
    if target.shared and not sure:
        return Reply(
            f"That is a shared place, {target.where}: everybody there will read this conversation, and it becomes the "
            f"room's. To do it, send `/{kind} {text} {_YES}`."
        )
    new = NewHandoff(
        op_id=uuid4().hex,
        kind=kind,
        session_id=context.session["id"],
        target=target.home,
        person_id=context.person_id or "",
        asked_at=None if context.place.platform == "cli" else place_ref(context.place),
        visible_to=context.visible_to,
    )
    doing = "Linking this conversation with" if kind == "link" else "Bringing this conversation to"
    return Reply(f"{doing} {target.where} ...", (RequestHandoff(new),), handoff=new.op_id)


async def _locally(context: CommandContext, platform: str) -> Reply:
    if context.session is None:
        return Reply(_NOTHING)
    if context.person_id != OWNER:
        return Reply("The terminal and the web are the owner's; only their conversations go there.")
    routes = await context.db.routes.of_session(context.session["id"])
    session_id = context.session["id"]
    take = f"`threadline -r {session_id}`" if platform == "cli" else "the list of sessions on the page"
    if not routes:
        return Reply(f"No chat leads to this conversation; {take} takes it up.")
    place = TERMINAL if platform == "cli" else web_place(OWNER)
    effect = TakeLocally(
        session_id=session_id,
        place=place_ref(place),
        person_id=OWNER,
        farewell=f"This conversation goes on in {place_words(place_ref(place))}. What is said here begins a new one.",
        farewell_shared="This conversation goes on elsewhere. What is said here begins a new one.",
        asked_at=place_ref(context.place),
    )
    left = "" if context.place.platform in LOCAL_PLATFORMS else " What you say here from now on begins a new session."
    return Reply(f"The conversation waits in {place_words(place_ref(place))}: {take}.{left}", (effect,))


async def _unlink(context: CommandContext, argument: str) -> Reply:
    if context.session is None:
        return Reply("There is no session here.")
    linked = await context.db.links.of_session(context.session["id"])
    if not linked:
        return Reply("This conversation is linked with no place.")
    wanted = argument.strip().casefold()
    chosen = [place for place in linked if _meant(place, wanted, place_ref(context.place))]
    if len(chosen) != 1:
        listed = "\n".join(f"- `/unlink {place.platform}:{place.chat}`: {place_words(place)}" for place in linked)
        return Reply(f"Say which place it shall leave:\n{listed}")
    here = chosen[0] == place_ref(context.place)
    if not (_is_theirs(context) or (here and context.place.private)):
        return Reply(_THE_ROOMS)
    farewell = None if here else "This conversation does not live here any more. What is said here begins a new one."
    effect = Unlink(context.session["id"], chosen[0], context.person_id, farewell)
    after = " What is said here from now on begins a new session." if here else ""
    return Reply(f"The conversation has left {place_words(chosen[0])}.{after}", (effect,))


def _is_theirs(context: CommandContext) -> bool:
    return context.person_id == OWNER or (context.session is not None and context.session["owner"] == context.person_id)


def _meant(place: PlaceRef, wanted: str, here: PlaceRef) -> bool:
    if not wanted:
        return place == here
    platform, _, chat = wanted.partition(":")
    return place.platform == platform and (not chat or place.chat.casefold() == chat)


def _parsed(argument: str) -> tuple[str, bool]:
    """The place as it was typed, and whether it is not to be asked again."""
    words = argument.split()
    return " ".join(word for word in words if word != _YES), _YES in words


SETHOME = Command("sethome", "/sethome", "make this chat the one your conversations go to on this platform", _sethome)
HANDOFF = Command(
    "handoff", "/handoff [place]", "go on elsewhere: telegram, discord, slack, email, each with :CHAT, or cli", _handoff
)
LINK = Command("link", "/link [place]", "let this conversation live in a further place as well", _link)
UNLINK = Command("unlink", "/unlink [place]", "take this conversation away from a linked place", _unlink)
