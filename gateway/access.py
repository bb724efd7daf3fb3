"""The one gate before everything: who may speak to the agent, and as which person.

Contract: every event from every platform passes `Gate.admit` once, before it is recorded or dispatched. Nobody is
served unless an identity is the owner's, a named person's, paired, or allowed by the account's settings; ids that
platforms share between people (anonymous administrators, channel posts) are nobody. Bots are not served.
Failure: an unknown sender leaves no trace but a count; a store error is raised, so that the platform delivers again.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.pairing import PairingDesk, looks_like_code

if TYPE_CHECKING:
    from adapters.base import InboundMessage, Place, Sender
    from gateway.platforms import Served
    from session_store import SessionDB

__all__ = ["Admission", "Gate", "Refusal"]


@dataclass(frozen=True, slots=True)
class Admission:
    """Who speaks. person_id is None only where everybody is allowed and the platform names nobody."""

    person_id: str | None


class Refusal(enum.Enum):
    """Why an event goes no further."""

    DENIED = "denied"
    BOT = "bot"
    PAIRED = "paired"


class Gate:
    """Access of one process. Reads the store for each event, so that pairing in another process counts at once."""

    def __init__(self, served: Mapping[tuple[str, str], Served], db: SessionDB) -> None:
        self._served = served
        self._db = db
        self._desk = PairingDesk(db)
        self.refused: Counter[str] = Counter()

    async def admit(self, message: InboundMessage) -> Admission | Refusal:
        """Judge one event; a pairing code from a stranger in a direct chat is redeemed here."""
        verdict = await self._judge(message.place, message.sender)
        code = looks_like_code(message.text) if verdict is Refusal.DENIED and message.place.private else None
        if code is not None and await self._desk.redeem(message, code):
            return Refusal.PAIRED
        if isinstance(verdict, Refusal):
            self.refused[f"{message.place.platform}/{message.place.account}:{verdict.value}"] += 1
        return verdict

    async def _judge(self, place: Place, sender: Sender) -> Admission | Refusal:
        account = self._served.get((place.platform, place.account))
        if account is None:
            return Refusal.DENIED
        if sender.is_bot:
            return Refusal.BOT
        if sender.user_id is None:
            return Admission(None) if account.allow_all else Refusal.DENIED
        known = await self._db.people.person_of(place.platform, sender.realm, sender.user_id)
        trusted = known is not None and known[1] in {"config", "pairing"}
        if not (trusted or account.allow_all or sender.user_id in account.allowed_users):
            return Refusal.DENIED
        if known is not None:
            return Admission(known[0])
        person_id = await self._db.people.ensure_allowed(place.platform, sender.realm, sender.user_id, sender.name)
        return Admission(person_id)
