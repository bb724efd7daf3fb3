"""The one gate before everything: who may speak to the agent, and as which person.

Contract: every event from every platform passes `Gate.admit` once, before it is recorded or dispatched. Nobody is
served unless an identity is the owner's, a named person's, paired, or allowed by the account's settings; ids that
platforms share between people (anonymous administrators, channel posts) are nobody. Of bots only those are heard that
the account names, whatever else it allows; how much they may say is judged when it is recorded. `admit` only
reads; somebody who is merely allowed becomes a person by `Gate.enter`, when their event is really recorded.
A pairing code in a direct chat is redeemed here, also one from somebody who is merely allowed.
Failure: an unknown sender leaves no trace but a count; a store error is raised, so that the platform delivers again.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.pairing import PairingDesk, looks_like_code
from session_store import Entrant

if TYPE_CHECKING:
    from adapters.base import InboundMessage, Place, Sender
    from gateway.platforms import Served
    from session_store import SessionDB

__all__ = ["Admission", "Gate", "Refusal", "entrant"]

#: What made an identity somebody's for good; what else is known of it lasts only as long as the settings allow it.
_PROVEN = frozenset({"config", "pairing"})


@dataclass(frozen=True, slots=True)
class Admission:
    """Who may speak. person_id: who it is by the settings or by a pairing code; None for who is merely allowed."""

    person_id: str | None = None


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
        #: How many events were refused, by `platform/account`.
        self.refused: Counter[str] = Counter()

    async def admit(self, message: InboundMessage) -> Admission | Refusal:
        """Judge one event; a pairing code in a direct chat is redeemed."""
        in_private = message.place.private and message.kind in {"message", "command"} and not message.sender.is_bot
        code = looks_like_code(message.text) if in_private else None
        verdict = await self._judge(message.place, message.sender, to_be_known=code is not None)
        unproven = verdict is Refusal.DENIED or (isinstance(verdict, Admission) and verdict.person_id is None)
        if code is not None and unproven and await self._desk.redeem(message, code):
            return Refusal.PAIRED
        if isinstance(verdict, Refusal):
            self.refused[f"{message.place.platform}/{message.place.account}"] += 1
        return verdict

    async def _judge(self, place: Place, sender: Sender, *, to_be_known: bool) -> Admission | Refusal:
        """to_be_known: whether it matters who it is even if the settings let everybody or this very sender in."""
        account = self._served.get((place.platform, place.account))
        if account is None:
            return Refusal.DENIED
        if sender.is_bot and sender.user_id not in account.allowed_bots:
            return Refusal.BOT
        if not sender.user_id:
            return Admission() if account.allow_all else Refusal.DENIED
        allowed = sender.is_bot or account.allow_all or sender.user_id in account.allowed_users
        if allowed and not to_be_known:
            return Admission()
        person_id, via = await self._db.people.person_of(place.platform, sender.realm, sender.user_id) or (None, None)
        if via in _PROVEN:
            return Admission(person_id)
        return Admission() if allowed else Refusal.DENIED


def entrant(admission: Admission, sender: Sender) -> Entrant | None:
    """Whose person is to be found or made; None where the admission says who it is, or nobody in particular speaks."""
    if admission.person_id is not None or not sender.user_id:
        return None
    return Entrant(sender.realm, sender.user_id, sender.name)
