"""What happens to one inbox row: a message becomes a turn, a command is worked and answered.

Contract: `Desk.handle` returns True when the row is worked (or somebody else did), False when its conversation is held
elsewhere and the row must wait; whoever waits may call again as often as it likes, since a conversation that was found
held is only looked at until it is free. An interrupted turn found in the conversation is run again first, so that
answers come in the order of the questions. The parts of an album, and of a burst, are one turn. A turn is run by one
task at a time, whoever found it.
Failure: cancelled between claim and work, the claimed turn is left to the next worker. A row that can never be worked
is set aside with a word to the person. After `close` nothing is begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio
import structlog

from gateway.albums import Albums
from gateway.attachments import content
from gateway.bursts import Bursts
from gateway.counter import outgoing
from gateway.phrases import inert, one_line
from gateway.places import LOCAL_PLATFORMS, place_of
from gateway.signs import TypingAt
from gateway.work import Work

if TYPE_CHECKING:
    from adapters.base import Place
    from gateway.attachments import Collector
    from gateway.commands import Call, CommandRegistry, Reply
    from gateway.compression import Compressor
    from gateway.counter import Counter
    from gateway.router import Router, Scope
    from gateway.signs import Typing
    from gateway.streaming import Streaming
    from gateway.titles import Titler
    from gateway.turns import TurnRunner
    from session_store import Claim, InboxRow, NewInbox, SessionDB

__all__ = ["Desk"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Input:
    """What a turn needs to know of its rows, found out before it is claimed."""

    place: Place
    person_id: str | None
    scope: Scope
    text: str
    reply_to: str | None


class Desk:
    """Works rows with one router, one runner and one registry of commands."""

    def __init__(  # noqa: PLR0913 - the parts of a workshop, each once
        self,
        db: SessionDB,
        router: Router,
        runner: TurnRunner,
        commands: CommandRegistry,
        holder: str,
        *,
        counter: Counter,
        compressor: Compressor,
        collector: Collector,
        titler: Titler,
        streaming: Streaming,
        typing: Typing | None = None,
        merge_window: float = 0.0,
    ) -> None:
        self._db = db
        self._router = router
        self._runner = runner
        self._commands = commands
        self._holder = holder
        self._counter = counter
        self._compressor = compressor
        self._collector = collector
        self._titler = titler
        self._typing = typing
        self._streaming = streaming
        self._closed = False
        # Rows whose conversation was found held: they are looked at before they are claimed again.
        self._held: set[int] = set()
        # A lane and the recovery may find the same turn; the store tells processes apart, not tasks of one.
        self._recovering: set[str] = set()
        self._albums = Albums(db)
        self._bursts = Bursts(db, merge_window)

    def close(self) -> None:
        """Begin nothing more; what runs goes on."""
        self._closed = True
        self._albums.close()
        self._bursts.close()

    async def handle(self, row: InboxRow) -> bool:
        """Work one row; see the module's contract."""
        if self._closed:
            return False
        if row["kind"] == "command":
            return await self._command(row)
        return await self._message(row)

    async def settle(self) -> None:
        """Let go of what ended in this process while the store could not be written."""
        await self._runner.settle()
        await self._counter.settle()

    # --- messages ----------------------------------------------------------------------------------------------------

    async def _message(self, row: InboxRow) -> bool:
        if row["id"] in self._held:
            await self.settle()  # what is in the way may be a turn of our own that could not be left
            if await self._db.turns.is_held(row["session_key"], row["session_id"]):
                return False
        rows = await (self._albums if row["payload"].get("group_id") else self._bursts).whole(row)
        if rows is None:
            return False
        attached = await self._collector.collect(rows)
        if self._closed:
            return False
        await self._compressor.before_turn(row["lane"], row["session_key"], row["session_id"])
        known = await self._input(rows)
        request = await self._router.request(rows, self._holder, known.scope)
        if attached:
            files = [one.attachment for one in attached]
            request = replace(request, content=content(known.text, attached), attachments=files)
        # Cancelled meanwhile, the claim is still made; whoever made it must know, to let go of it.
        with anyio.CancelScope(shield=True):
            claim = await self._db.turns.claim(request, self._router.judge)
        if claim.status == "busy":
            self._held.add(row["id"])
            if claim.orphan is not None:
                await self.recover(claim.orphan)
            return False
        self._held.discard(row["id"])
        if claim.status == "changed":
            # The row as it is now; it is gone if somebody withdrew it.
            now = await self._db.inbox.get(row["id"])
            return now is None or now["state"] != "new" or await self._message(now)
        self._collector.forget(rows)
        if claim.status == "claimed":
            await self._run(claim, known)
        return True

    async def recover(self, turn_id: str) -> bool:
        """Take over one turn whose process is gone and run it again (or give it up); False if somebody else did."""
        if self._closed or turn_id in self._recovering or self._runner.runs(turn_id):
            return False
        self._recovering.add(turn_id)
        try:
            return await self._take_over(turn_id)
        finally:
            self._recovering.discard(turn_id)

    async def _take_over(self, turn_id: str) -> bool:
        rows = await self._db.inbox.of_turn(turn_id)
        known = await self._input(rows) if rows else None
        if known is not None and rows[0]["kind"] == "command":
            known = replace(known, text=await self._db.turns.said_in(turn_id) or "")
        with anyio.CancelScope(shield=True):
            claim = await self._db.turns.take_over(turn_id, self._holder)
            if claim.status != "claimed":
                return False
            if known is None and claim.fence is not None:
                _log.warning("turn_without_input", turn=turn_id)
                await self._db.turns.give_up(claim.fence, "no input", ())
        if known is None:
            return False
        _log.info("turn_recovered", turn=turn_id, session=claim.session_id, attempt=claim.attempt)
        await self._run(claim, known)
        return True

    async def _input(self, rows: Sequence[InboxRow]) -> _Input:
        first = rows[0]
        return _Input(
            place=place_of(first),
            person_id=first["person_id"],
            scope=await self._router.scope_of(first),
            text=self._router.content(rows),
            reply_to=first["payload"].get("message_id"),
        )

    async def _run(self, claim: Claim, known: _Input) -> None:
        # Nothing may be awaited between the claim and the runner, which alone lets go of a turn in every case.
        visible_to = self._router.visible_to(known.place, known.person_id, known.scope, claim.spoken_in)
        work = Work(claim, known.place, known.text, visible_to, known.reply_to)
        async with self._shown_typing(known.place):
            with self._streaming.showing(work):
                answer = await self._runner.run(work)
        if answer is not None and claim.session_id is not None:
            self._titler.consider(claim.session_id)
        if claim.session_id is not None and not self._closed:
            await self._compressor.after_turn(claim.session_id)

    def _shown_typing(self, place: Place) -> TypingAt:
        return TypingAt(place, None if place.platform in LOCAL_PLATFORMS else self._typing)

    # --- commands ----------------------------------------------------------------------------------------------------

    async def _command(self, row: InboxRow) -> bool:
        """Work a slash command that came through the inbox; False if its conversation is held elsewhere."""
        call = self._commands.parse(str(row["payload"].get("text", "")))
        if call is None:
            await self._db.inbox.set_aside(row["id"], "a command row without a command")
            return True
        turn = self._commands.asks_for_a_turn(call)
        # Whoever waits comes by often: a look costs less than a try.
        if (turn or self._commands.holds(call)) and await self._db.turns.is_held(row["session_key"], row["session_id"]):
            return False
        if turn:
            return await self._again(row, call)
        async with self._shown_typing(place_of(row)):
            return await self._counter.work(row, call, self.recover)

    async def _again(self, row: InboxRow, call: Call) -> bool:
        """Answer the last question of the row's conversation again."""
        known = await self._input([row])
        request = await self._router.request([row], self._holder, known.scope)
        # As for a message: whoever made the claim must know.
        with anyio.CancelScope(shield=True):
            again = await self._db.turns.claim_again(request)
        if again is None:
            return await self._counter.work(row, call, self.recover)
        if again.claim.status == "busy":
            if again.claim.orphan is not None:
                await self.recover(again.claim.orphan)
            return False
        if again.claim.status == "claimed":
            await self._run(again.claim, replace(known, text=again.said))
        return True

    async def local_command(
        self, place: Place, person_id: str, session_id: str | None, call: Call, *, event: NewInbox | None = None
    ) -> Reply:
        """Work a slash command typed in the terminal or on the web page; its effects are one transaction.

        event: how it is recorded along with them, where it may be given again.
        """
        return await self._counter.local(place, person_id, session_id, call, self.recover, event=event)

    # --- what cannot be worked ---------------------------------------------------------------------------------------

    async def set_aside(self, row: InboxRow, reason: str) -> None:
        """Put a row that cannot be worked where the owner can look at it, and tell who sent it."""
        sorry = f"Your message could not be worked and was set aside: {inert(one_line(reason, 200))}"
        self._held.discard(row["id"])
        self._collector.forget([row])
        await self._db.inbox.set_aside(row["id"], reason, outgoing(row, place_of(row), sorry))
