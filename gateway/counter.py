"""Slash commands worked: from a call to its reply and what it changes.

Contract: the effects of a command, its reply and "handled" are one transaction, so a repeated delivery does nothing
twice. A command that needs the conversation for itself is worked while it is held: from the inbox it waits until it is
free (`work` returns False), typed in the terminal or on the page it waits `LOCAL_WAIT` seconds and is told then. A turn
that was cut off is run again first.
Failure: what is wrong with an argument is the reply; the store's other errors are raised, and nothing is changed.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from gateway.commands import Call, CommandContext, Reply
from gateway.phrases import inert
from gateway.places import LOCAL_PLATFORMS, place_of, place_ref
from session_store import NewOutbox, StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from adapters.base import Place
    from gateway.commands import CommandRegistry
    from gateway.compression import Compressor
    from gateway.context import Contexts
    from gateway.holding import Grip
    from gateway.live import LiveFeed
    from gateway.router import Router
    from session_store import Effect, InboxRow, NewInbox, SessionDB, SessionRow
    from session_store.holding import Held

__all__ = ["Counter", "Recover", "outgoing"]

Recover = Callable[[str], Awaitable[object]]
"""Runs a turn again whose process is gone, given its id."""

LOCAL_WAIT = 5.0
_LOOK_SECONDS = 0.1
_BUSY = "An answer is being made in this conversation. Try again when it is there; `/stop` ends it."


class Counter:
    """Works the commands of one process."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a workshop, each once
        self,
        db: SessionDB,
        router: Router,
        commands: CommandRegistry,
        contexts: Contexts,
        compressor: Compressor,
        grip: Grip,
        live: LiveFeed,
    ) -> None:
        self._db = db
        self._router = router
        self._commands = commands
        self._contexts = contexts
        self._compressor = compressor
        self._grip = grip
        self._live = live

    async def work(self, row: InboxRow, call: Call, recover: Recover) -> bool:
        """Work a command that came through the inbox; False if its conversation is held elsewhere."""
        place = place_of(row)
        session = await self._session(row)
        if session is not None and not self._commands.immediate(call):
            for turn in await self._db.turns.orphaned_in(session["id"]):
                await recover(turn["id"])
        who = (row["sender"].get("user_id"), row["person_id"], row["session_key"])
        async with self._holding(call, session) as held:
            if held is not None and held.status == "busy":
                return False
            context = await self._context(place, *who, session if held is None else held.session)
            try:
                reply = await self._commands.run(replace(context, fence=held.fence if held else None), call)
                await self._told(row, place, reply.text, reply.effects)
            except StoreError as error:
                if not isinstance(error, ValueError):
                    raise
                await self._told(row, place, inert(str(error)))
        return True

    async def _told(self, row: InboxRow, place: Place, text: str, effects: Sequence[Effect] = ()) -> None:
        """The command is done; its reply goes out, or is shown where there is nothing to send."""
        await self._db.inbox.complete(row["id"], outbox=outgoing(row, place, text), effects=effects)
        if place.platform in LOCAL_PLATFORMS:
            tip = await self._session(row)
            self._live.notice(
                tip["id"] if tip is not None else row["session_id"] or "",
                text,
                reply_to=row["payload"].get("message_id"),
            )

    async def local(  # noqa: PLR0913, PLR0917 - what there is to know of a call
        self,
        place: Place,
        person_id: str,
        session_id: str | None,
        call: Call,
        recover: Recover,
        event: NewInbox | None = None,
    ) -> Reply:
        """Work a command typed in the terminal or on the web page.

        event: how it is recorded along with its effects, where it may be given again.
        """
        session = await self._db.get_tip(session_id) if session_id else None
        deadline = time.monotonic() + LOCAL_WAIT
        while True:
            async with self._holding(call, session) as held:
                if held is None or held.status != "busy":
                    context = await self._context(place, None, person_id, None, held.session if held else session)
                    context = replace(context, fence=held.fence if held else None)
                    return await self._done_locally(context, call, session_id, event)
            if held.orphan is not None:
                await recover(held.orphan)
            elif time.monotonic() >= deadline:
                return Reply(_BUSY)
            await anyio.sleep(_LOOK_SECONDS)

    async def settle(self) -> None:
        """Let go of conversations that could not be let go of when it was due."""
        await self._grip.settle()

    async def _done_locally(
        self, context: CommandContext, call: Call, session_id: str | None, event: NewInbox | None
    ) -> Reply:
        try:
            reply = await self._commands.run(context, call)
            if event is None:
                await self._db.apply(reply.effects)
            else:
                shown_in = session_id or reply.session_id or event.session_id
                await self._db.inbox.work_at_once(replace(event, session_id=shown_in), reply.effects)
        except StoreError as error:
            if not isinstance(error, ValueError):
                raise
            return Reply(inert(str(error)))
        return reply

    async def _session(self, row: InboxRow) -> SessionRow | None:
        if row["session_key"]:
            return await self._db.routes.session_for(row["session_key"])
        return await self._db.get_tip(row["session_id"]) if row["session_id"] else None

    @asynccontextmanager
    async def _holding(self, call: Call, session: SessionRow | None) -> AsyncIterator[Held | None]:
        """Hold the conversation if the command needs that; None if it does not, or there is none."""
        if session is None or not self._commands.holds(call):
            yield None
            return
        async with self._grip.hold(session["id"], f"/{call.name}") as held:
            yield held

    async def _context(
        self, place: Place, user_id: str | None, person_id: str | None, key: str | None, session: SessionRow | None
    ) -> CommandContext:
        scope = await self._router.scope(place, user_id, person_id)
        return CommandContext(
            db=self._db,
            place=place,
            session_key=key,
            session=session,
            person_id=person_id,
            owner=scope.owner,
            room_id=scope.room_id,
            source=place.platform,
            model=self._router.model,
            user_id=user_id,
            visible_to=self._router.visible_to(place, person_id, scope, await self._router.spoken_in(person_id)),
            now=time.time(),
            contexts=self._contexts,
            compressor=self._compressor,
            zone=self._router.zone,
            settings=self._router.settings,
        )


def outgoing(row: InboxRow, place: Place, text: str) -> tuple[NewOutbox, ...]:
    """A notice to exactly the place that a row came from."""
    if place.platform in LOCAL_PLATFORMS or not text:
        return ()
    reply_to = None if place.private else row["payload"].get("message_id")
    return (NewOutbox(place=place_ref(place), kind="notice", body=text, reply_to=reply_to),)
