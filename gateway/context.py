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

from gateway.agents.base import AgentContext, AttachedFile
from gateway.notes import annotated
from gateway.tools import TurnTools

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from session_store import AttachmentRow, SessionDB, Visibility

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

    text: what the person wrote. message_id: the row of the user message to be answered, so that a search does not find
    the question itself; its files are looked up there.
    visible_to: what the asker may see; the tools are bound to it. zone: in which the tools write times, None for the
    machine's own.
    """
    session = await db.get_session(session_id)
    root = (session["root_id"] if session else None) or session_id
    tools = TurnTools(db, visible_to, root, question_id=message_id, zone=zone)
    files = (await db.attachments.of_messages([message_id])).get(message_id, []) if message_id is not None else []
    whole = await _stored_text(db, session_id, message_id) if files and message_id is not None else None
    return AgentContext(
        session_id=session_id,
        turn_id=turn_id,
        text=text if whole is None else whole,
        conversation=await db.get_messages_as_conversation(session_id, annotate=annotated),
        tools=tools,
        now=time.time(),
        timezone=None if zone is None else zone.key,
        words=text if files else None,
        attachments=[file for row in files if (file := await _file(db, row)) is not None],
    )


async def _stored_text(db: SessionDB, session_id: str, message_id: int) -> str | None:
    """The text of a message as it was stored, with its files."""
    rows = await db.get_messages_after(session_id, message_id - 1, 1)
    stored = rows[0]["content"] if rows and rows[0]["id"] == message_id else None
    return stored if isinstance(stored, str) else None


async def _file(db: SessionDB, row: AttachmentRow) -> AttachedFile | None:
    path = await db.attachments.path(row["hash"]) if row["hash"] is not None else None
    if path is None:
        return None
    return AttachedFile(path, row["name"], row["media_type"] or "application/octet-stream", row["size"] or 0)
