"""The inbound edge: authorize, record, acknowledge.

Contract: `accept` is the `deliver` of every adapter. When it returns, the event is durable or was refused for good, so
the platform may be told. A repeated delivery changes nothing. When it raises, the platform must deliver again, which is
safe also if the event was recorded. What Threadline does not answer it does not store, and of who said it neither.
A command for another bot is not answered.
Limits: of edits, deletions, buttons, migrations and memberships nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from adapters.base import InboundMessage, Verdict
from gateway.access import Admission, Gate
from gateway.keys import session_key
from gateway.places import place_ref
from session_store import NewInbox

if TYPE_CHECKING:
    from config import Settings
    from gateway.commands import CommandRegistry
    from gateway.platforms import Served
    from session_store import SessionDB

__all__ = ["IMMEDIATE", "InboundEdge"]

#: Suffix of the lane of commands that must not wait behind a running turn.
IMMEDIATE = " now"


class InboundEdge:
    """Accepts what adapters deliver."""

    def __init__(
        self,
        settings: Settings,
        served: Mapping[tuple[str, str], Served],
        db: SessionDB,
        commands: CommandRegistry,
    ) -> None:
        self._settings = settings
        self._served = served
        self._db = db
        self._gate = Gate(served, db)
        self._commands = commands

    @property
    def refused(self) -> Mapping[str, int]:
        """How many events were refused since the start, by `platform/account`."""
        return self._gate.refused

    async def accept(self, message: InboundMessage) -> Verdict:
        """Record one event; see the module's contract."""
        admission = await self._gate.admit(message)
        if not isinstance(admission, Admission):
            return Verdict.DENIED
        if message.kind not in {"message", "command"}:
            return Verdict.IGNORED
        key = session_key(
            message.place,
            message.sender.user_id,
            group_sessions_per_user=self._settings.group_sessions_per_user,
            thread_sessions_per_user=self._settings.thread_sessions_per_user,
        )
        call = self._commands.parse(message.text)
        if (call is not None and call.addressee) or not await self._answers(message, key):
            return Verdict.IGNORED
        person_id = await self._gate.enter(admission, message)
        immediate = call is not None and self._commands.immediate(call)
        row = NewInbox(
            place=place_ref(message.place),
            dedupe_key=message.dedupe_key,
            kind="message" if call is None else "command",
            lane=key + IMMEDIATE if immediate else key,
            received_at=message.received_at,
            payload={
                "text": message.text,
                "message_id": message.message_id,
                "reply_to": message.reply_to,
                "group_id": message.group_id,
                "extra": message.extra,
            },
            sender=asdict(message.sender),
            session_key=key,
            person_id=person_id,
        )
        accepted = await self._db.inbox.accept(row)
        return Verdict.ACCEPTED if accepted.created else Verdict.DUPLICATE

    async def _answers(self, message: InboundMessage, key: str) -> bool:
        """Direct chats always; groups when addressed, or in a topic whose conversation goes on, or when set so."""
        if message.place.private or message.addressed:
            return True
        account = self._served.get((message.place.platform, message.place.account))
        if account is not None and account.groups == "always":
            return True
        threaded = bool(message.place.thread) or message.place.chat_type == "thread"
        return threaded and await self._db.routes.session_for(key) is not None
