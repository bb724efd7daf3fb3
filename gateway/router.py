"""From an inbox row to the conversation it belongs to.

Contract: pure decisions and small reads; the store makes the route and the session in the claim's own transaction.
Owner, key and place of a gateway session are never null: a direct chat and a per-user group session belong to the
person, a shared one to the room. The reset policy is judged at the time the message was received, not at replay.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from gateway.agents.base import Birth, Prompting
from gateway.ids import new_session_id, new_turn_id
from gateway.keys import session_key, shared
from gateway.phrases import entrance, inert, spoken_at
from gateway.places import LOCAL_PLATFORMS, place_of, place_ref
from gateway.reset import ResetPolicy
from gateway.visibility import visibility
from session_store import ClaimRequest, MessageNote
from session_store.changed import joined

if TYPE_CHECKING:
    from adapters.base import Place
    from config import Settings
    from gateway.agents.base import Agent
    from session_store import InboxRow, SessionDB, SessionRow, Visibility

__all__ = ["Router", "Scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose a session here is (`owner`: person or room id), and the room it lives in (None in private places)."""

    owner: str
    room_id: str | None
    shared: bool


class Router:
    """Routing rules of one configuration."""

    def __init__(self, settings: Settings, db: SessionDB, agent: Agent) -> None:
        self.settings = settings
        self._db = db
        self._prompting = agent if isinstance(agent, Prompting) else None
        self.model = agent.model
        reset = settings.session_reset
        self._policy = ResetPolicy(reset.mode, reset.idle_minutes, reset.at_hour, reset.timezone)
        #: In which times are written, None for the machine's own.
        self.zone = None if reset.timezone is None else ZoneInfo(reset.timezone)

    def judge(self, session: SessionRow, received_at: float) -> str | None:
        """Why `session` ends before a message received then, or None. Sessions chosen by id are never reset."""
        last_active = session["last_active"] if session["last_active"] is not None else session["started_at"]
        return self._policy.judge(last_active, received_at)

    async def scope_of(self, row: InboxRow) -> Scope:
        """Owner and room of a session that begins with this row."""
        return await self.scope(place_of(row), row["sender"].get("user_id"), row["person_id"])

    def key(self, place: Place, user_id: str | None) -> str:
        """The key of the next message of this user at `place`."""
        return session_key(
            place,
            user_id,
            group_sessions_per_user=self.settings.group_sessions_per_user,
            thread_sessions_per_user=self.settings.thread_sessions_per_user,
        )

    async def scope(self, place: Place, user_id: str | None, person_id: str | None) -> Scope:
        """Owner and room of a session at `place` for this sender."""
        room_id = None if place.private else await self._db.places.room_of(place_ref(place))
        is_shared = shared(
            place,
            user_id,
            group_sessions_per_user=self.settings.group_sessions_per_user,
            thread_sessions_per_user=self.settings.thread_sessions_per_user,
        )
        if room_id is None and person_id is None:
            # A direct chat without a person: only possible where everybody is allowed. It gets a scope of its own.
            room_id = await self._db.places.room_of(place_ref(place))
        owner = room_id if (is_shared or person_id is None) else person_id
        return Scope(owner=owner or "", room_id=room_id, shared=is_shared)

    async def spoken_in(self, person_id: str | None) -> frozenset[str]:
        """The rooms in which a person has spoken."""
        return await self._db.places.rooms_of(person_id) if person_id is not None else frozenset()

    @staticmethod
    def visible_to(place: Place, person_id: str | None, scope: Scope, spoken_in: Collection[str]) -> Visibility:
        """What may be seen by this person in this place."""
        return visibility(person_id, place, scope.room_id, spoken_in, shared=scope.shared)

    @staticmethod
    def content(rows: Sequence[InboxRow]) -> str:
        """The text of a turn's input."""
        return joined(_texts(rows))

    async def request(self, rows: Sequence[InboxRow], holder: str, scope: Scope | None = None) -> ClaimRequest:
        """What the claim of these rows (one turn's input, oldest first) needs to know. scope: theirs, if known."""
        first = rows[0]
        scope = scope or await self.scope_of(first)
        place = place_of(first)
        local = place.platform in LOCAL_PLATFORMS
        return ClaimRequest(
            inbox_ids=[row["id"] for row in rows],
            turn_id=new_turn_id(),
            holder=holder,
            lane=first["lane"],
            place=place_ref(place),
            source=place.platform,
            owner=scope.owner,
            new_session_id=first["session_id"] or new_session_id("gateway", time.time()),
            content=self.content(rows),
            session_key=None if local else first["session_key"],
            session_id=first["session_id"],
            person_id=first["person_id"],
            room_id=scope.room_id,
            platform_message_id=first["payload"].get("message_id"),
            model=self.model,
            system_prompt=self._system_prompt(place, scope, first),
            user_id=first["sender"].get("user_id"),
            note=_note(rows, named=scope.shared),
            texts=_texts(rows),
            origin=f"{_speaker(rows)} {spoken_at(place.platform)}",
        )

    def _system_prompt(self, place: Place, scope: Scope, row: InboxRow) -> str | None:
        """What the agent would be told in a session that begins here and now."""
        if self._prompting is None:
            return None
        zone = None if self.zone is None else self.zone.key
        person = None if place.platform in LOCAL_PLATFORMS else row["sender"].get("name")
        birth = Birth(entrance(place.platform), scope.shared, row["received_at"], row["place_name"], person, zone)
        return self._prompting.system_prompt(birth)


def _texts(rows: Sequence[InboxRow]) -> list[str]:
    return [str(row["payload"].get("text", "")) for row in rows]


def _speaker(rows: Sequence[InboxRow]) -> str:
    """Who speaks, for the copies at linked places; the terminal and the page are the owner's."""
    sender = rows[0]["sender"]
    local = rows[0]["platform"] in LOCAL_PLATFORMS
    return "The owner" if local else inert(sender.get("name") or sender.get("user_id") or "Somebody")


def _note(rows: Sequence[InboxRow], *, named: bool) -> MessageNote:
    """Who speaks, where several may, and what is quoted: in an album, with whichever part."""
    quotes = (row["payload"].get("quoted") for row in rows)
    quoted = next((quote for quote in quotes if isinstance(quote, dict)), {})
    sender = rows[0]["sender"]
    return MessageNote(
        sender=(sender.get("name") or sender.get("user_id") or "somebody unnamed") if named else None,
        quoted=quoted.get("text"),
        quoted_name=quoted.get("name") or None,
    )
