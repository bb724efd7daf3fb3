"""The inbound edge: authorize, record, acknowledge.

Contract: `accept` is the `deliver` of every adapter. When it returns, the event is durable or was refused for good, so
the platform may be told. A repeated delivery changes nothing. When it raises, the platform must deliver again, which is
safe also if the event was recorded. What Threadline does not answer it does not store, and of who said it neither.
A command for another bot is not answered; a caption of an album is never a command. An edit or a delete changes what is
stored of its message and begins no turn, whatever it says. A chat that has moved is known under both its ids. Bots that
are let in may say so much and no more, and nothing of what another account of this home has sent. What was sent and
came back is marked as failed. `report` is the `report` of every adapter: it keeps what they cannot read.
Limits: of buttons and memberships nothing is recorded; an edit never addresses the agent for the first time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import anyio
import structlog

from adapters.base import InboundMessage, Unreadable, Verdict
from gateway.access import Admission, Gate, entrant
from gateway.keys import session_key
from gateway.moving import move_of
from gateway.places import place_ref
from session_store import BotCaps, NewInbox, NewOutbox

if TYPE_CHECKING:
    from config import Settings
    from gateway.commands import CommandRegistry
    from gateway.platforms import Served
    from session_store import Change, SessionDB
    from session_store.models import InboxKind

__all__ = ["BOT_CAPS", "IMMEDIATE", "InboundEdge"]

#: Suffix of the lane of commands that must not wait behind a running turn.
IMMEDIATE = " now"

#: How much a bot that is let in may say in a chat; no setting changes it.
BOT_CAPS = BotCaps(depth=3, spoken=20, seconds=3600.0)

#: Of a quoted message so much is kept.
QUOTED_CHARACTERS = 4000

#: A mail may come back before its own receipt is written.
_RECEIPT_PAUSES = (0.0, 0.5, 2.0)

_NOTED = (
    "Your change is noted. What I answer is the earlier wording; send the message again to have the new one answered."
)

_log = structlog.get_logger(__name__)


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
        self._secrets = settings.secrets()

    @property
    def refused(self) -> Mapping[str, int]:
        """How many events were refused since the start, by `platform/account`."""
        return self._gate.refused

    async def accept(self, message: InboundMessage) -> Verdict:
        """Record one event; see the module's contract."""
        # Nobody speaks in these; only what was recorded before is touched.
        told = {"migration": self._moved, "delete": self._deleted, "bounce": self._came_back}.get(message.kind)
        if told is not None:
            return await told(message)
        admission = await self._gate.admit(message)
        if not isinstance(admission, Admission):
            return Verdict.DENIED
        if message.kind == "edit":
            return await self._edited(message)
        if message.kind not in {"message", "command"} or (message.sender.is_bot and await self._is_ours(message)):
            return Verdict.IGNORED
        return await self._said(await self._where_it_is_now(message), admission)

    async def report(self, event: Unreadable) -> None:
        """Keep an event that an adapter could not read, without the secrets of any account."""
        reason, raw = event.reason, event.raw
        for secret in self._secrets:
            reason, raw = reason.replace(secret, "<secret>"), raw.replace(secret, "<secret>")
        _log.error("event_set_aside", account=f"{event.platform}/{event.account}", reason=reason)
        await self._db.unreadable.record(event.platform, event.account, reason, raw)

    # --- messages and commands ---------------------------------------------------------------------------------------

    async def _said(self, message: InboundMessage, admission: Admission) -> Verdict:
        key = self._key(message)
        call = None if message.group_id else self._commands.parse(message.text)
        if (call is not None and call.addressee) or not await self._answers(message, key):
            return Verdict.IGNORED
        immediate = call is not None and self._commands.immediate(call)
        row = replace(
            self._row(message, key + IMMEDIATE if immediate else key, "message" if call is None else "command"),
            payload={
                "text": message.text,
                "message_id": message.message_id or None,
                "reply_to": message.reply_to,
                "group_id": message.group_id,
                "quoted": _quoted(message),
                "extra": message.extra,
            }
            | ({"attachments": [asdict(one) for one in message.attachments]} if message.attachments else {}),
            person_id=admission.person_id,
            entrant=entrant(admission, message.sender),
            caps=BOT_CAPS if message.sender.is_bot else None,
        )
        accepted = await self._db.inbox.accept(row)
        if not accepted.inbox_id:
            _log.warning("bot_not_heard", chat=message.place.chat, bot=message.sender.user_id)
            return Verdict.IGNORED
        return Verdict.ACCEPTED if accepted.created else Verdict.DUPLICATE

    async def _is_ours(self, message: InboundMessage) -> bool:
        """Whether a bot says what another account of this home has sent: copies of linked places go round no circle."""
        place = message.place
        return await self._db.links.was_copied(place.platform, place.chat, message.message_id, message.text)

    def _key(self, message: InboundMessage) -> str:
        return session_key(
            message.place,
            message.sender.user_id,
            group_sessions_per_user=self._settings.group_sessions_per_user,
            thread_sessions_per_user=self._settings.thread_sessions_per_user,
        )

    def _row(self, message: InboundMessage, lane: str, kind: InboxKind) -> NewInbox:
        """The row of an event, without what it says."""
        return NewInbox(
            place=place_ref(message.place),
            dedupe_key=message.dedupe_key,
            kind=kind,
            lane=lane,
            received_at=message.received_at,
            payload={},
            sender=asdict(message.sender),
            session_key=lane.removesuffix(IMMEDIATE),
        )

    async def _where_it_is_now(self, message: InboundMessage) -> InboundMessage:
        """The message as one of the chat that its chat has become; numbers of messages mean nothing there."""
        place = message.place
        if place.chat_type != "group":
            return message
        chat = await self._db.moves.moved_to(place.platform, place.account, place.chat)
        if chat is None:
            return message
        return replace(message, place=replace(place, chat=chat, thread=""), message_id="", reply_to=None)

    async def _answers(self, message: InboundMessage, key: str) -> bool:
        """Direct chats always; groups when addressed, or in a topic whose conversation goes on, or when set so."""
        if message.place.private or message.addressed:
            return True
        account = self._served.get((message.place.platform, message.place.account))
        if account is not None and account.groups_in(message.place.chat) == "always":
            return True
        if message.group_id and await self._db.inbox.album(key, message.group_id):
            # Only one part of an album has the words.
            return True
        threaded = bool(message.place.thread) or message.place.chat_type == "thread"
        return threaded and await self._db.routes.session_for(key) is not None

    # --- what changes messages that came before ----------------------------------------------------------------------

    async def _edited(self, message: InboundMessage) -> Verdict:
        if message.subject is None:
            return Verdict.IGNORED
        reply_to = None if message.place.private else message.message_id
        notice = NewOutbox(place_ref(message.place), "notice", _NOTED, reply_to)
        event = self._row(message, self._key(message), "edit")
        return _verdict(await self._db.changed.edited(event, message.subject, message.text, [notice]))

    async def _deleted(self, message: InboundMessage) -> Verdict:
        if message.subject is None or (message.place.platform, message.place.account) not in self._served:
            return Verdict.IGNORED
        event = self._row(message, self._key(message), "delete")
        honour = self._settings.honor_deletes
        return _verdict(await self._db.changed.deleted(event, message.subject, honour=honour))

    async def _moved(self, message: InboundMessage) -> Verdict:
        old, new = message.extra.get("old_chat"), message.extra.get("new_chat")
        if not isinstance(old, str) or not isinstance(new, str):
            return Verdict.IGNORED
        moved = await self._db.moves.move_chat(move_of(message.place, old, new))
        if moved:
            _log.info("chat_moved", account=f"{message.place.platform}/{message.place.account}", old=old, new=new)
        return Verdict.ACCEPTED if moved else Verdict.IGNORED

    async def _came_back(self, message: InboundMessage) -> Verdict:
        """Mark what was sent as failed, for people to see; it is no talk, and nothing answers it."""
        account = (message.place.platform, message.place.account)
        if message.subject is None or account not in self._served:
            return Verdict.IGNORED
        for pause in _RECEIPT_PAUSES:
            await anyio.sleep(pause)
            if await self._db.outbox.came_back(account, message.subject, f"It came back: {message.text}"):
                _log.warning("answer_came_back", account="/".join(account), reason=message.text)
                return Verdict.ACCEPTED
        return Verdict.IGNORED


def _verdict(change: Change) -> Verdict:
    words = {"repeated": Verdict.DUPLICATE, "unknown": Verdict.IGNORED, "same": Verdict.IGNORED}
    return words.get(change.status, Verdict.ACCEPTED)


def _quoted(message: InboundMessage) -> dict[str, str] | None:
    if message.quoted is None:
        return None
    return {"text": message.quoted.text[:QUOTED_CHARACTERS], "name": message.quoted.name}
