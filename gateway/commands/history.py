"""Commands that change how a conversation goes on: /compress, /undo, /retry, /branch.

All of them are worked while the conversation is held, so nothing runs in it and nothing comes in between.
"""

from __future__ import annotations

from gateway.commands.registry import Command, CommandContext, Reply
from gateway.compression import CompressionFailed, goes_on_as
from gateway.ids import new_session_id
from gateway.phrases import inert, one_line, plural
from gateway.places import place_ref
from gateway.window import exchanges
from session_store import Branch, TakeBack
from session_store.content import encode_content, plain_text
from session_store.titles import clean_title

__all__ = ["BRANCH", "COMPRESS", "RETRY", "UNDO"]

_NOTHING_YET = "There is no session here yet. Say something first."


async def _compress(context: CommandContext, argument: str) -> Reply:
    if context.session is None or context.fence is None:
        return Reply(_NOTHING_YET)
    try:
        wanted = await context.compressor.prepare(context.fence, context.session, argument or None, asked=True)
    except CompressionFailed as error:
        return Reply(f"Compressing failed: {inert(str(error))} Nothing has changed.")
    if wanted is None:
        return Reply("There is nothing to compress yet: what I see is one exchange.")
    text = (
        f"What was said earlier is now a summary in what I see. The conversation goes on as {goes_on_as(wanted)}; "
        "everything is kept, and `/search` finds it."
    )
    return Reply(text, (wanted,))


async def _undo(context: CommandContext, argument: str) -> Reply:
    if context.session is None or context.fence is None:
        return Reply(_NOTHING_YET)
    if argument and not (argument.isascii() and argument.isdigit() and int(argument[:9]) > 0):
        return Reply("Say how many exchanges to take back, for example `/undo 2`; `/undo` takes back the last one.")
    wanted = int(argument[:9]) if argument else 1
    view = await context.db.context_view(context.session["id"], limit=context.contexts.limit * 4)
    parts = [part for part in exchanges(view.rows) if part.rows[0]["role"] == "user"][-wanted:]
    if not parts:
        summed = view.summary is not None
        return Reply("There is nothing to take back." if not summed else "What is in the summary cannot be taken back.")
    first = parts[0].rows[0]
    said = plain_text(encode_content(first["content"]) or "")
    begun = inert(one_line(said, 120))
    text = f"Taken back: {plural(len(parts), 'exchange')}, from “{begun}” on. I do not see it any more."
    if len(parts) < wanted:
        text += " That is all that can be taken back."
    return Reply(text, (TakeBack(context.fence, context.session["id"], first["id"]),))


async def _branch(context: CommandContext, argument: str) -> Reply:
    if context.session is None or context.fence is None:
        return Reply(_NOTHING_YET)
    title = clean_title(argument)
    branch_id = new_session_id("terminal" if context.source == "cli" else "gateway", context.now)
    effect = Branch(
        context.fence,
        context.session["id"],
        branch_id,
        place_ref(context.place),
        title=title,
        session_key=context.session_key,
        person_id=context.person_id,
    )
    former = context.session["title"]
    named = f", “{inert(title)}”" if title else ""
    back = f"“{inert(former)}”" if former else f"`{context.session['id']}`"
    text = f"This is a branch now{named}: what comes from here on stays in it. {back} stays as it was, and `/resume` "
    return Reply(f"{text}goes back to it.", (effect,), branch_id)


async def _retry(context: CommandContext, argument: str) -> Reply:  # noqa: ARG001 - every handler gets both
    # A turn begins instead where there is a question; see `Command.turn`.
    return Reply("There is nothing here that could be answered again. Say something first.")


COMPRESS = Command(
    "compress",
    "/compress [focus]",
    "replace what was said earlier by a summary in what I see",
    _compress,
    immediate=False,
    holds=True,
)
UNDO = Command("undo", "/undo [n]", "take back the last exchange, or the last n", _undo, immediate=False, holds=True)
RETRY = Command("retry", "/retry", "answer your last message again", _retry, immediate=False, turn=True)
BRANCH = Command(
    "branch",
    "/branch [title]",
    "go on in a copy of this conversation; the original stays as it is",
    _branch,
    immediate=False,
    holds=True,
)
