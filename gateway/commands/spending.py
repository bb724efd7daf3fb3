"""The command that tells what a conversation has cost: /usage."""

from __future__ import annotations

from gateway.commands.registry import Command, CommandContext, Reply
from gateway.spending import by_model, spent

__all__ = ["USAGE"]


async def _usage(context: CommandContext, argument: str) -> Reply:  # noqa: ARG001 - every handler gets the argument
    if context.session is None:
        return Reply("No session here yet; nothing has been spent.")
    totals = await context.db.usage.of_conversation(context.session["id"])
    if not totals["calls"]:
        return Reply("No model has been called in this conversation, so it has cost nothing.")
    return Reply("\n".join((f"In this conversation: {spent(totals)}", *by_model(totals))))


USAGE = Command("usage", "/usage", "show how many tokens this conversation has cost", _usage)
