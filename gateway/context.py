"""From history to what the agent sees of a turn.

Contract: `conversation` is what is still seen of the conversation (its summary and its tail, see
`session_store.view`) in provider format: in order of insertion, calls and results paired, open calls of an interrupted
attempt answered "interrupted, effect unknown" (the stored rows stay as they are). User messages carry the notes of
`gateway.notes`, which are not in the stored text. It ends with the user message that is to be answered; when an
interrupted turn is run again, what the earlier attempt did follows it. Together with system prompt and tools it keeps
within the budget (see `gateway.window`), and no more than that is read. Files are seen in their own turn only.
Reads only. Failure: the store's errors, raised.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.agents.base import AgentContext, AttachedFile
from gateway.notes import annotated
from gateway.tools import SCHEMAS, TurnTools
from gateway.visibility import narrowed
from gateway.window import Fitted, fitted, json_tokens
from session_store.view import text_tokens

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from session_store import AttachmentRow, SessionDB, SessionRow, Visibility
    from session_store.view import View

__all__ = ["MOVED", "Contexts", "Seen"]

#: How a message ended that only says where the conversation went on.
MOVED = "handoff"

_TOOLS_TOKENS = json_tokens(SCHEMAS)
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What the model sees of a conversation. tokens: with system prompt and tools. limit: how many there may be."""

    view: View
    shown: Fitted
    tokens: int
    limit: int


class Contexts:
    """Makes the contexts of turns, each within `limit` tokens.

    zone: in which the tools write times, None: our own. history: whether what was said before the question is shown.
    """

    def __init__(self, db: SessionDB, *, limit: int, zone: ZoneInfo | None = None, history: bool = True) -> None:
        self._db = db
        self._zone = zone
        self.history = history
        self._taken: OrderedDict[str, int] = OrderedDict()
        self.limit = limit

    async def seen(self, session_id: str, question: int | None = None, *, moves: bool = True) -> Seen:
        """What the model sees of a conversation now.

        question: the message that is to be answered. moves: with the sentences that say where it went on.
        """
        since = None if self.history else question
        view = await self._db.context_view(
            session_id, limit=self.limit, question=question, since=since, annotate=annotated
        )
        fixed = _fixed_tokens(view.session)
        rows = view.rows if moves else [row for row in view.rows if row["finish_reason"] != MOVED]
        shown = fitted(rows, self.limit - fixed, summary=view.summary, question=question, whole=view.whole)
        return Seen(view, shown, shown.tokens + fixed, self.limit)

    async def build(
        self, session_id: str, turn_id: str, text: str, visible_to: Visibility, message_id: int | None = None
    ) -> AgentContext:
        """Return the context of a turn.

        text: what the person wrote. message_id: the row of the user message to be answered, so that a search does not
        find the question itself; its files are looked up there.
        visible_to: what the asker may see; the tools are bound to it, and in a room's session to the room.
        """
        seen = await self.seen(session_id, message_id)
        self._remember(session_id, seen.tokens)
        session = seen.view.session
        root = (session["root_id"] if session else None) or session_id
        tools = TurnTools(self._db, narrowed(visible_to, session), root, question_id=message_id, zone=self._zone)
        files = seen.view.files
        whole = await self._stored_text(session_id, message_id) if files and message_id is not None else None
        return AgentContext(
            session_id=session_id,
            turn_id=turn_id,
            text=text if whole is None else whole,
            conversation=seen.shown.messages,
            tools=tools,
            now=time.time(),
            timezone=None if self._zone is None else self._zone.key,
            words=text if files else None,
            attachments=[file for row in files if (file := await self._file(row)) is not None],
            system_prompt=session["system_prompt"] if session else None,
        )

    def taken(self, session_id: str) -> int:
        """How many tokens the last turn of a session began with here; 0 if that is not known."""
        return self._taken.get(session_id, 0)

    def _remember(self, session_id: str, tokens: int) -> None:
        self._taken[session_id] = tokens
        self._taken.move_to_end(session_id)
        while len(self._taken) > _REMEMBERED:
            self._taken.popitem(last=False)

    async def _stored_text(self, session_id: str, message_id: int) -> str | None:
        """The text of a message as it was stored, with its files."""
        rows = await self._db.get_messages_after(session_id, message_id - 1, 1)
        stored = rows[0]["content"] if rows and rows[0]["id"] == message_id else None
        return stored if isinstance(stored, str) else None

    async def _file(self, row: AttachmentRow) -> AttachedFile | None:
        path = await self._db.attachments.path(row["hash"]) if row["hash"] is not None else None
        if path is None:
            return None
        return AttachedFile(path, row["name"], row["media_type"] or "application/octet-stream", row["size"] or 0)


def _fixed_tokens(session: SessionRow | None) -> int:
    """What the model is told in every turn whatever was said: the session's system prompt and the tools."""
    prompt = session["system_prompt"] if session is not None else None
    return text_tokens(prompt or "") + _TOOLS_TOKENS
