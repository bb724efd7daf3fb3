"""What one reader may see of a conversation, and in which pieces.

Contract: `Window.open` is the only way to a session in the web package. It asks the store with the owner's visibility;
what is foreign and what does not exist are the same None. Sessions that `submit` named but whose turn has not been
claimed yet are `expected`: they open empty instead of failing.
Limits: `MAX_PAGE` rows in one piece; `MAX_EXPECTED` expected sessions.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.web.facade import WebFacade
    from session_store import MessageRow, SessionRow

__all__ = ["MAX_EXPECTED", "MAX_PAGE", "Conversation", "Window"]

MAX_PAGE = 200
MAX_EXPECTED = 256


@dataclass(frozen=True, slots=True)
class Conversation:
    """An open conversation: the session ids from root to tip, and the tip's row (None while only expected)."""

    ids: Sequence[str]
    tip: SessionRow | None

    @property
    def root_id(self) -> str:
        """Id that leases and turns go by."""
        return self.ids[0]

    @property
    def tip_id(self) -> str:
        """Id of the live session."""
        return self.ids[-1]


class Window:
    """Opens conversations and reads pieces of them."""

    def __init__(self, facade: WebFacade) -> None:
        self._facade = facade
        self._expected: OrderedDict[str, None] = OrderedDict()

    def expect(self, session_id: str) -> None:
        """Remember a session that will exist soon."""
        self._expected[session_id] = None
        self._expected.move_to_end(session_id)
        while len(self._expected) > MAX_EXPECTED:
            self._expected.popitem(last=False)

    async def open(self, session_id: str) -> Conversation | None:
        """Open the conversation that this session belongs to, if the owner may see it."""
        db = self._facade.db
        if await db.get_session(session_id) is None:
            return Conversation([session_id], None) if session_id in self._expected else None
        visible = await db.resolve_session(session_id, visible_to=await self._facade.visibility())
        ids = await db.conversation_of(session_id)
        if not set(visible) & set(ids):
            return None
        tip = await db.get_session(ids[-1])
        return Conversation(ids, tip) if tip is not None else None

    async def after(self, conversation: Conversation, after_id: int, limit: int) -> list[MessageRow]:
        """Up to `limit` rows above `after_id`, oldest first."""
        rows: list[MessageRow] = []
        for session_id in conversation.ids:
            if len(rows) < limit:
                rows += await self._facade.db.get_messages_after(session_id, after_id, limit - len(rows))
        return rows

    async def before(self, conversation: Conversation, before_id: int | None, limit: int) -> list[MessageRow]:
        """The last `limit` rows below `before_id` (None: the last ones), oldest first."""
        db = self._facade.db
        rows: list[MessageRow] = []
        for session_id in reversed(conversation.ids):
            left = limit - len(rows)
            if left > 0:
                earlier = (
                    await db.get_messages(session_id, left)
                    if before_id is None
                    else await db.get_messages_before(session_id, before_id, left)
                )
                rows = earlier + rows
        return rows
