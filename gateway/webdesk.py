"""What the web page may ask of the gateway, done as the owner of the home (the page's facade).

Contract: a message is in the inbox before `submit` returns; a repeated `submit` with the same client id changes nothing
and names the same session. Commands are worked at once; their reply is shown through the live feed, only their effects
are stored, together with the client id: a command that comes again, also after a restart, is not worked again. One that
could not be worked is not kept. Messages of one conversation are worked in the order in which they were submitted,
whichever of its sessions they name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gateway.ids import new_session_id
from gateway.owner import OWNER, owner_sees
from gateway.places import place_ref, web_place
from gateway.workshop import Workshop
from session_store import NewInbox

if TYPE_CHECKING:
    from gateway.commands import Call
    from gateway.live import LiveFeed
    from session_store import SessionDB, Visibility

__all__ = ["WebDesk"]


class WebDesk:
    """Implements the web's facade over one workshop."""

    def __init__(
        self,
        workshop: Workshop,
        accounts: Callable[[], Mapping[str, Mapping[str, str | None]]],
        well: Callable[[], bool],
    ) -> None:
        self._workshop = workshop
        self._accounts = accounts
        self._well = well
        self._place = web_place(OWNER)

    @property
    def db(self) -> SessionDB:
        """The open store."""
        return self._workshop.db

    @property
    def live(self) -> LiveFeed:
        """Live text and notices of this process."""
        return self._workshop.live

    async def submit(self, session_id: str | None, text: str, client_id: str) -> str:
        """Accept a message or command; returns the session it belongs to."""
        now = time.time()
        chosen = session_id or new_session_id("gateway", now)
        event = NewInbox(
            place=place_ref(self._place),
            dedupe_key=f"m:{client_id}",
            kind="message",
            lane=f"session:{await self._root(chosen)}",
            received_at=now,
            payload={"text": text, "message_id": client_id},
            sender={"user_id": None, "name": "", "realm": "", "is_bot": False},
            session_id=chosen,
            person_id=OWNER,
        )
        call = self._workshop.commands.parse(text)
        if call is not None and not self._workshop.commands.asks_for_a_turn(call):
            return await self._command(session_id, call, replace(event, kind="command"), client_id)
        if call is not None:
            event = replace(event, kind="command")
            self.live.notice(await self._tip(chosen), "Answering your last message again.", reply_to=client_id)
        accepted = await self.db.inbox.accept(event)
        if accepted.created:
            return chosen
        row = await self.db.inbox.get(accepted.inbox_id)
        return (row["session_id"] if row is not None else None) or chosen

    async def _command(self, session_id: str | None, call: Call, event: NewInbox, client_id: str) -> str:
        """Work a command once; returns the session that its reply is shown in."""
        known = await self.db.inbox.known((event.place.platform, event.place.account), event.dedupe_key)
        shown_in = session_id or (known["session_id"] if known is not None else None) or event.session_id or ""
        if known is not None:
            self.live.notice(
                await self._tip(shown_in),
                "This was done already, before the gateway was restarted.",
                reply_to=client_id,
            )
            return shown_in
        reply = await self._workshop.desk.local_command(self._place, OWNER, session_id, call, event=event)
        shown_in = session_id or reply.session_id or shown_in
        self.live.notice(await self._tip(shown_in), reply.text, reply_to=client_id, goto=reply.session_id)
        return shown_in

    async def stop(self, session_id: str) -> None:
        """Ask for the end of the running turn of this conversation, in whatever process it runs."""
        await self.db.control.request_stop(await self._root(session_id), OWNER)

    async def _tip(self, session_id: str) -> str:
        """Where the conversation goes on: what the gateway says in it is shown there, whichever id the page holds."""
        tip = await self.db.get_tip(session_id)
        return session_id if tip is None else tip["id"]

    async def _root(self, session_id: str) -> str:
        session = await self.db.get_session(session_id)
        return (session["root_id"] or session["id"]) if session is not None else session_id

    def health(self) -> Mapping[str, Any]:
        """`ok`, or `store` while nothing can be written; and the state of each account."""
        accounts = {name: str(facts["state"]) for name, facts in self._accounts().items()}
        return {"status": "ok" if self._well() else "store", "accounts": accounts}

    async def visibility(self) -> Visibility:
        """What the owner sees in a private place."""
        return await owner_sees(self.db)

    def commands(self) -> Sequence[tuple[str, str, str]]:
        """Name, usage and summary of each command."""
        return [(command.name, command.usage, command.summary) for command in self._workshop.commands.commands]
