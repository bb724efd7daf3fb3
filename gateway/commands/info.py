"""Commands that tell: /status, /whoami, /help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gateway.commands.registry import Command, CommandContext, Reply
from gateway.handoff_words import place_words, route_place, step_words
from gateway.owner import OWNER
from gateway.phrases import age, entrance, inert, one_line, plural, until
from gateway.places import LOCAL_PLATFORMS, place_ref

if TYPE_CHECKING:
    from adapters.base import Place

__all__ = ["STATUS", "WHOAMI", "help_command"]

SHOWN_PARTS = 3
LATELY_SECONDS = 86_400.0

#: How the help begins: with what may be done beside commands. An agent that needs no history is a notebook.
_NOTEBOOK = "Tell me something and I keep it; ask and I look it up in what was said."
_TALK = "Just write, and I answer. What is said here is kept, and `/search` finds it again."


async def _status(context: CommandContext, argument: str) -> Reply:  # noqa: ARG001 - every handler gets the argument
    lines = []
    session = context.session
    if session is None:
        lines.append("No session here yet; the next message begins one.")
    else:
        root = session["root_id"] or session["id"]
        title = f"“{inert(session['title'])}”" if session["title"] else "without a title"
        running = await context.db.turns.running_in(root)
        lines += [
            f"Session `{session['id']}`, {title}.",
            await _size(context, root),
            f"A turn is running, begun {age(running['started_at'], context.now)}."
            if running
            else "No turn is running.",
            await _budget(context, session["id"]),
            *await _places(context, session["id"]),
        ]
    lines += await _on_its_way(context)
    if context.person_id == OWNER and context.place.private:
        lines += await _gateways(context)
    return Reply("\n".join(lines))


async def _places(context: CommandContext, session_id: str) -> list[str]:
    """Where the conversation lives and has lived; in a shared place other places are not named."""
    if not context.place.private:
        return []
    history = await context.db.place_history.of_session(session_id)
    routes = await context.db.routes.of_session(session_id)
    lines = []
    if len(history) > 1:
        lines.append("It came this way: " + " > ".join(step_words(step) for step in history) + ".")
    linked = [place_words(route_place(route)) for route in routes if route["linked"]]
    if linked:
        lines.append(f"It is linked: {', '.join(dict.fromkeys(linked))}.")
    return lines


async def _size(context: CommandContext, session_id: str) -> str:
    """How much was said in the conversation, and since when."""
    row = await context.db.list_row(session_id)
    count, begun = (row["message_count"], row["started_at"]) if row is not None else (0, context.now)
    return f"{plural(count, 'message')}, begun {age(begun, context.now)}."


async def _budget(context: CommandContext, session_id: str) -> str:
    """How much of what the agent may be shown the conversation takes."""
    seen = await context.contexts.seen(session_id)
    threshold = context.compressor.threshold
    if not context.contexts.history:
        itself = "I look things up instead of reading it all, so that its length costs nothing"
    elif threshold:
        itself = f"it is compressed by itself at {threshold} %"
    else:
        itself = "only `/compress` compresses it"
    return f"It takes {seen.tokens:,} of {seen.limit:,} tokens ({100 * seen.tokens // seen.limit} %); {itself}."


async def _on_its_way(context: CommandContext) -> list[str]:
    """What is still to be delivered here or from this session, and what of late did not surely arrive."""
    place, session = place_ref(context.place), context.session["id"] if context.session is not None else None
    rows = await context.db.outbox.on_its_way(place, session)
    lines = []
    sending = sum(row["state"] == "sending" for row in rows)
    tried = [row for row in rows if row["state"] == "waiting" and row["attempts"] and row["error"]]
    waiting = len(rows) - sending - len(tried)
    if sending:
        lines.append(f"{plural(sending, 'part')} of answers being sent.")
    if waiting:
        lines.append(f"{plural(waiting, 'part')} of answers waiting to be sent.")
    for row in tried[:SHOWN_PARTS]:
        reason = inert(one_line(row["error"] or "", 200))
        lines.append(
            f"A part is tried again ({plural(row['attempts'], 'attempt')} so far, "
            f"next {until(row['next_at'], context.now)}): {reason}"
        )
    if len(tried) > SHOWN_PARTS:
        lines.append(f"{plural(len(tried) - SHOWN_PARTS, 'further part')} tried again.")
    late = await context.db.outbox.not_arrived(place, session, context.now - LATELY_SECONDS)
    for state, words in (("unknown", "may not have arrived"), ("failed", "could not be delivered")):
        parts = [row for row in late if row["state"] == state]
        if parts:
            reason = inert(one_line(parts[-1]["error"] or "", 200))
            lines.append(f"{plural(len(parts), 'part')} of the last day {words}: {reason}")
    return lines


async def _gateways(context: CommandContext) -> list[str]:
    """What runs for this home; only the owner's business."""
    gateways = [row for row in await context.db.processes.list() if row["role"] == "gateway" and row["alive"]]
    if not gateways:
        return ["No gateway is running; only the terminal works."]
    return [
        f"A gateway is running, started {age(row['started_at'], context.now)}: "
        f"{', '.join(map(inert, row['accounts']))}."
        for row in gateways
    ]


async def _whoami(context: CommandContext, argument: str) -> Reply:  # noqa: ARG001 - every handler gets the argument
    place = context.place
    if context.person_id is None:
        who = "nobody in particular"
    elif context.person_id == OWNER:
        who = "the owner"
    else:
        person = await context.db.people.get(context.person_id)
        name = (person["name"] or person["display"]) if person is not None else None
        who = inert(name) if name else "a guest"
    identity = f" (id `{context.user_id}`)" if context.user_id else ""
    scope = "only what was said in this room" if context.visible_to.within_room else "your own sessions and your rooms'"
    return Reply(f"You are {who}{identity}, {_where(place)}.\nSearches here see {scope}.")


def _where(place: Place) -> str:
    """A place in words."""
    if place.platform in LOCAL_PLATFORMS:
        return f"in the {entrance(place.platform)} chat"
    name = entrance(place.platform)
    chat = f"in a direct chat on {name}" if place.private else f"in a {place.chat_type} on {name}"
    return chat + (f", topic {inert(place.thread)}" if place.thread else "")


def help_command(commands: Callable[[], Sequence[Command]]) -> Command:
    """The command that lists all commands, itself included."""

    async def _help(context: CommandContext, argument: str) -> Reply:  # noqa: ARG001 - every handler gets the argument
        lines = [f"`{command.usage}`: {command.summary}" for command in commands()]
        begin = _TALK if context.contexts.history else _NOTEBOOK
        return Reply(f"{begin}\n\n" + "\n".join(lines))

    return Command("help", "/help", "list the commands", _help, aliases=("start",))


STATUS = Command("status", "/status", "show this session, its running turn and what is on its way", _status)
WHOAMI = Command("whoami", "/whoami", "say who you are here and what you can see", _whoami)
