"""Numbered lists of sessions, and what a number means to who was shown one.

Contract: a list that is shown is kept with its reader and place, in the transaction of the reply, so that a number
means what stood there even when the order has changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.phrases import inert, one_line
from gateway.resuming import described
from session_store import OfferSessions

if TYPE_CHECKING:
    from gateway.commands.registry import CommandContext
    from session_store import SessionListRow

__all__ = ["LISTED", "asker", "named", "numbered"]

#: Sessions in a list.
LISTED = 10


def asker(context: CommandContext) -> str:
    """Who reads a list where: the numbers are theirs alone."""
    return f"{context.session_key or context.place.platform} {context.person_id or context.user_id or ''}"


def named(row: SessionListRow, now: float, mark: str = "") -> str:
    """One session in a list, as Markdown."""
    name = inert(one_line(row["title"] or row["preview"] or "(empty)", 60)) + mark
    return f"{name}: {described(row, now)}, `{row['id']}`"


async def numbered(context: CommandContext, rows: Sequence[SessionListRow]) -> tuple[list[str], OfferSessions]:
    """The lines of a numbered list, the session one is in marked, and the effect that keeps the numbers."""
    here = set(await context.db.conversation_of(context.session["id"])) if context.session is not None else set()
    lines = []
    for number, row in enumerate(rows, start=1):
        mark = " (this one)" if row["id"] in here else ""
        lines.append(f"{number}. {named(row, context.now, mark)}")
    return lines, OfferSessions(asker(context), [row["id"] for row in rows])
