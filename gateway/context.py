"""From history to what the agent sees of a turn.

Contract: `conversation` is the session's history in provider format, as the store loads it: in order of insertion,
calls and results paired, open calls of an interrupted attempt answered "interrupted, effect unknown" (the stored rows
stay as they are). User messages carry the notes of `gateway.notes`, which are not in the stored text. It ends with the
user message that is to be answered; when an interrupted turn is run again, what the earlier attempt did follows it.
Reads only. Failure: the store's errors, raised.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gateway.agents.base import AgentContext
from gateway.notes import annotated
from gateway.tools import TurnTools

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from session_store import SessionDB, Visibility

__all__ = ["build_context"]


async def build_context(  # noqa: PLR0913 - each is one fact of the turn
    db: SessionDB,
    *,
    session_id: str,
    turn_id: str,
    text: str,
    visible_to: Visibility,
    message_id: int | None = None,
    zone: ZoneInfo | None = None,
) -> AgentContext:
    """Return the context of a turn.

    text: the user message to be answered. message_id: its row, so that a search does not find the question itself.
    visible_to: what the asker may see; the tools are bound to it. zone: in which the tools write times, None for the
    machine's own.
    """
    session = await db.get_session(session_id)
    root = (session["root_id"] if session else None) or session_id
    tools = TurnTools(db, visible_to, root, question_id=message_id, zone=zone)
    return AgentContext(
        session_id=session_id,
        turn_id=turn_id,
        text=text,
        conversation=await db.get_messages_as_conversation(session_id, annotate=annotated),
        tools=tools,
        now=time.time(),
        timezone=None if zone is None else zone.key,
    )
