"""What happens to one inbox row: a message becomes a turn, a command is worked and answered.

Contract: `Desk.handle` returns True when the row is worked (or somebody else did), False when its conversation is held
elsewhere and the row must wait. An interrupted turn found in the conversation is run again first, so that answers come
in the order of the questions.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import structlog

from gateway.commands import Call, CommandContext, Reply
from gateway.places import LOCAL_PLATFORMS, place_of, place_ref
from gateway.turns import MAX_ATTEMPTS, TurnRunner, Work
from session_store import NewOutbox, StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from adapters.base import Place
    from gateway.commands import CommandRegistry
    from gateway.router import Router
    from session_store import Claim, InboxRow, SessionDB, SessionRow, TurnRow

__all__ = ["Desk", "Typing"]

#: Shows that an answer is being made at a place, as long as the context lasts.
Typing = Callable[["Place"], Awaitable[None]]
TYPING_SECONDS = 4.0

_log = structlog.get_logger(__name__)


class Desk:
    """Works rows with one router, one runner and one registry of commands."""

    def __init__(
        self,
        db: SessionDB,
        router: Router,
        runner: TurnRunner,
        commands: CommandRegistry,
        holder: str,
        *,
        model: str,
        typing: Typing | None = None,
    ) -> None:
        self._db = db
        self._router = router
        self._runner = runner
        self._commands = commands
        self._holder = holder
        self._model = model
        self._typing = typing
        # A lane and the recovery may find the same turn; the store tells processes apart, not tasks of one.
        self._recovering: set[str] = set()

    async def handle(self, row: InboxRow) -> bool:
        """Work one row; see the module's contract."""
        if row["kind"] == "command":
            await self.command(row)
            return True
        return await self._message(row)

    async def _message(self, row: InboxRow) -> bool:
        request = await self._router.request([row], self._holder)
        claim = await self._db.turns.claim(request, self._router.judge)
        if claim.status == "busy":
            if claim.orphan is not None:
                await self.recover(claim.orphan)
            return False
        if claim.status == "claimed":
            await self._run(claim, row)
        return True

    async def _run(self, claim: Claim, row: InboxRow) -> None:
        place = place_of(row)
        scope = await self._router.scope(place, row["sender"].get("user_id"), row["person_id"])
        work = Work(
            claim=claim,
            place=place,
            text=str(row["payload"].get("text", "")),
            visible_to=await self._router.visible_to(place, row["person_id"], scope),
            reply_to=row["payload"].get("message_id"),
        )
        if claim.attempt > MAX_ATTEMPTS:
            await self._runner.give_up(
                work,
                "interrupted too often",
                f"I was interrupted {MAX_ATTEMPTS} times while working on this and have stopped trying. "
                "Please send it again.",
            )
            return
        async with self._shown_typing(place):
            await self._runner.run(work)

    async def settle(self) -> None:
        """Let go of turns of this process that ended while the store could not be written."""
        await self._runner.settle()

    async def recover(self, turn_id: str) -> bool:
        """Take over one turn whose process is gone and run it again (or give it up); False if somebody else did."""
        if turn_id in self._recovering:
            return False
        self._recovering.add(turn_id)
        try:
            return await self._take_over(turn_id)
        finally:
            self._recovering.discard(turn_id)

    async def _take_over(self, turn_id: str) -> bool:
        claim = await self._db.turns.take_over(turn_id, self._holder)
        if claim.status != "claimed":
            return False
        rows = await self._db.inbox.of_turn(turn_id)
        if not rows:
            _log.warning("turn_without_input", turn=turn_id)
            if claim.fence is not None:
                await self._db.turns.give_up(claim.fence, "no input", ())
            return False
        await self._run(claim, rows[0])
        return True

    async def command(self, row: InboxRow) -> None:
        """Work a slash command that came through the inbox; its reply and effects are one transaction."""
        place = place_of(row)
        call = self._commands.parse(str(row["payload"].get("text", "")))
        if call is None:
            await self._db.inbox.set_aside(row["id"], "a command row without a command")
            return
        session = await self._db.routes.session_for(row["session_key"]) if row["session_key"] else None
        context = await self._context(
            place, row["sender"].get("user_id"), row["person_id"], row["session_key"], session
        )
        try:
            reply = await self._commands.run(context, call)
            await self._db.inbox.complete(row["id"], outbox=self._outgoing(row, place, reply), effects=reply.effects)
        except StoreError as error:
            if not isinstance(error, ValueError):
                raise
            await self._db.inbox.complete(row["id"], outbox=self._outgoing(row, place, Reply(str(error))))

    async def local_command(self, place: Place, person_id: str, session_id: str | None, call: Call) -> Reply:
        """Work a slash command typed in the terminal or on the web page; its effects are one transaction."""
        session = await self._db.get_session(session_id) if session_id else None
        context = await self._context(place, None, person_id, None, session)
        try:
            reply = await self._commands.run(context, call)
            await self._db.apply(reply.effects)
        except StoreError as error:
            if not isinstance(error, ValueError):
                raise
            return Reply(str(error))
        return reply

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
            model=self._model,
            user_id=user_id,
            visible_to=await self._router.visible_to(place, person_id, scope),
            now=time.time(),
        )

    @staticmethod
    def _outgoing(row: InboxRow, place: Place, reply: Reply) -> tuple[NewOutbox, ...]:
        if place.platform in LOCAL_PLATFORMS or not reply.text:
            return ()
        reply_to = None if place.private else row["payload"].get("message_id")
        return (NewOutbox(place=place_ref(place), kind="notice", body=reply.text, reply_to=reply_to),)

    def _shown_typing(self, place: Place) -> AbstractAsyncContextManager[None]:
        return _typing_at(place, self._typing)


@asynccontextmanager
async def _typing_at(place: Place, show: Typing | None) -> AsyncIterator[None]:
    if show is None or place.platform in LOCAL_PLATFORMS:
        yield
        return

    async def repeat() -> None:
        while True:
            await show(place)
            await anyio.sleep(TYPING_SECONDS)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(repeat)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()
