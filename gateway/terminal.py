"""The terminal's side of a session: it runs its own turns, with or without a gateway on the same home.

Contract: what is said is in the inbox before `say` returns, so a kill at any moment loses nothing: the next terminal
that opens the session takes it up, and a turn that was cut off with it. Messages are worked one after another, in the
background; while another process works the conversation they wait (`waits`). Whoever leaves in the middle of a turn
leaves it in order for the next one.
Failure: `say` raises the store's errors, and then nothing was accepted or the same `client_id` may be said again. What
goes wrong later is told by `trouble` and tried again; the message stays in the inbox.
Limits: one session at a time; the owner of the home is who sits here.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import dropwhile
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio

from gateway.attention import Attention
from gateway.bell import Bell
from gateway.heart import Heart
from gateway.ids import new_session_id
from gateway.lanes import Lanes
from gateway.owner import OWNER, owner_sees
from gateway.places import TERMINAL, place_ref
from gateway.workshop import Workshop
from session_store import NewInbox, ResumeSession, SessionDB, StoreError

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from config import Home, Settings
    from gateway.commands import Call, Command, Reply
    from gateway.live import Notice
    from session_store import InboxRow, MessageRow, TurnRow, Visibility

__all__ = ["Answer", "Left", "Said", "Terminal", "open_terminal"]

ACCOUNT = (TERMINAL.platform, TERMINAL.account)
UNSETTLED = frozenset({"new", "taken"})
WAIT_SECONDS = 1.0
TEND_SECONDS = 2.0
_PAGE = 200


@dataclass(frozen=True, slots=True)
class Said:
    """A message that was accepted. name: what it is known by for ever."""

    inbox_id: int
    session_id: str
    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Left:
    """What a dead terminal left in a session: messages that it had accepted and not begun, turns that were cut off."""

    said: tuple[Said, ...] = ()
    turns: int = 0

    def __len__(self) -> int:
        return len(self.said) + self.turns


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one message: what its turn stored after it, oldest first. problem: why it could not be worked."""

    messages: tuple[MessageRow, ...]
    problem: str | None = None

    @property
    def text(self) -> str:
        """The final answer as Markdown; '' when the turn ended before it said anything."""
        final = self._final
        return str(final["content"] or "") if final is not None else ""

    @property
    def stopped(self) -> bool:
        """Whether the turn ended without a whole answer because a person stopped it."""
        return self._final is None or self._final["finish_reason"] == "stopped"

    @property
    def failed(self) -> bool:
        """Whether the agent could not answer; the text then says why."""
        return self._final is not None and self._final["finish_reason"] == "error"

    @property
    def _final(self) -> MessageRow | None:
        last = self.messages[-1] if self.messages else None
        return last if last is not None and last["role"] == "assistant" and not last["tool_calls"] else None


class Terminal:
    """One terminal in one session at a time; made by `open_terminal`."""

    def __init__(self, workshop: Workshop, visible_to: Visibility, tasks: TaskGroup) -> None:
        self._workshop = workshop
        self._tasks = tasks
        self._bell = Bell(workshop.db)
        self._waiting: set[int] = set()
        self._ids: list[str] = []
        self.visible_to = visible_to
        self.trouble: StoreError | None = None

    @property
    def db(self) -> SessionDB:
        """The open store."""
        return self._workshop.db

    # --- which session -----------------------------------------------------------------------------------------------

    @property
    def session_id(self) -> str | None:
        """The live session of the conversation one is in, None before the first message."""
        return self._ids[-1] if self._ids else None

    async def latest(self) -> str | None:
        """The session last used in a terminal, wherever it was begun, or the last one that was begun in one.

        One that was cut off before its first message was worked counts too.
        """
        begun = await self.db.list_sessions(source=TERMINAL.platform, limit=1, visible_to=self.visible_to)
        used = await self.db.last_used_at(place_ref(TERMINAL), visible_to=self.visible_to)
        rows = [*begun, *([used] if used is not None else [])]
        last = max(rows, key=lambda row: row["last_active"], default=None)
        left = [row for row in await self.db.inbox.left_behind(ACCOUNT) if row["session_id"]]
        if left and not (last is not None and last["last_active"] >= left[0]["received_at"]):
            return left[0]["session_id"]
        return last["id"] if last is not None else None

    async def take_up(self, session_id: str) -> None:
        """Bring a session here: it is open again, and its history of places says so; not before it is stored."""
        if await self.db.get_session(session_id) is not None:
            here = ResumeSession(session_id, place_ref(TERMINAL), self.visible_to, person_id=OWNER)
            await self.db.apply([here])

    async def open(self, session_id: str) -> Left:
        """Go into a session and take up what a dead terminal left in it."""
        self._ids = [session_id]
        await self.conversation()
        rows = await self.db.inbox.adopt(session_id, self._workshop.holder)
        said = tuple(_said(row, session_id) for row in rows)
        return Left(said, await self._mend())

    async def conversation(self) -> list[str]:
        """The ids of the conversation one is in, root first; compression may have moved it on since the last look."""
        if self._ids:
            self._ids = await self.db.conversation_of(self._ids[-1]) or self._ids
        return self._ids

    async def end(self) -> None:
        """Mark the session as ended by who leaves, unless somebody still works in it or other places lead to it."""
        session_id = self.session_id
        if session_id is None or await self.running() is not None or await self.db.routes.of_session(session_id):
            return
        await self.db.end_session(session_id, "user_exit")

    # --- commands ----------------------------------------------------------------------------------------------------

    @property
    def commands(self) -> list[Command]:
        """The slash commands, in the order of the help."""
        return list(self._workshop.commands.commands)

    def parse(self, text: str) -> Call | None:
        """The slash command in `text`, known or not, if it is one that gets a reply; what asks for a turn is said."""
        return None if self.asks_again(text) else self._workshop.commands.parse(text)

    def asks_again(self, text: str) -> bool:
        """Whether `text` is a slash command that asks for a turn, and so is said like a message."""
        call = self._workshop.commands.parse(text)
        return call is not None and self._workshop.commands.asks_for_a_turn(call)

    async def command(self, call: Call) -> Reply:
        """Work a slash command; /new and the like move this terminal to the session they name."""
        reply = await self._workshop.desk.local_command(TERMINAL, OWNER, self.session_id, call)
        if reply.session_id is not None:
            self._ids = [reply.session_id]
        return reply

    # --- messages ----------------------------------------------------------------------------------------------------

    async def say(self, text: str, client_id: str | None = None) -> Said:
        """Accept a message for this session, a new one if there is none yet. It is worked in the background.

        client_id names this saying for ever: said again with the same one, it is the same message.
        """
        session_id = self.session_id or new_session_id("terminal", time.time())
        name = client_id or uuid4().hex
        accepted = await self.db.inbox.accept(
            NewInbox(
                place=place_ref(TERMINAL),
                dedupe_key=f"m:{name}",
                kind="command" if self.asks_again(text) else "message",
                lane=f"session:{self._ids[0] if self._ids else session_id}",
                received_at=time.time(),
                payload={"text": text, "message_id": name},
                sender={"user_id": None, "name": "", "realm": "", "is_bot": False},
                session_id=session_id,
                person_id=OWNER,
                holder=self._workshop.holder,
            )
        )
        self._ids = self._ids or [session_id]
        return Said(accepted.inbox_id, session_id, text, name)

    async def state(self, said: Said) -> str:
        """`new` until its turn begins, `taken` while it runs, then `done`, or `set_aside` if it cannot be worked."""
        row = await self.db.inbox.get(said.inbox_id)
        return row["state"] if row is not None else "done"

    def waits(self, said: Said) -> bool:
        """Whether a message has to wait because another process works the conversation."""
        return said.inbox_id in self._waiting

    async def answer(self, said: Said, waiting: Callable[[], None]) -> Answer:
        """Wait for the end of a message's turn. `waiting` is called once if another process holds the conversation.

        Raises the store's error when the message cannot be worked now; it stays in the inbox.
        """
        told = False
        while await self.state(said) in UNSETTLED:
            if self.trouble is not None:
                raise self.trouble
            if self.waits(said) and not told:
                told = True
                waiting()
            await self._bell.wait(WAIT_SECONDS)
        row = await self.db.inbox.get(said.inbox_id)
        problem = row["error"] if row is not None and row["state"] == "set_aside" else None
        return Answer(tuple(await self._said_after(said)), problem)

    async def _said_after(self, said: Said) -> list[MessageRow]:
        """Everything that the turn of a message stored after it, in this session or one that goes on from it."""
        question = await self.db.turns.message_of(said.inbox_id)
        if question is None:
            return []
        begun_in = question["session_id"]
        messages: list[MessageRow] = []
        for segment in dropwhile(lambda each: each != begun_in, await self.db.conversation_of(begun_in)):
            last, more = question["id"], True
            while more:
                rows = await self.db.get_messages_after(segment, last, limit=_PAGE)
                messages += [row for row in rows if row["turn_id"] == question["turn_id"]]
                last, more = rows[-1]["id"] if rows else last, len(rows) == _PAGE
        return messages

    # --- the running turn --------------------------------------------------------------------------------------------

    async def running(self) -> TurnRow | None:
        """The running turn of this conversation, in whatever process."""
        ids = await self.conversation()
        return await self.db.turns.running_in(ids[0]) if ids else None

    def is_mine(self, turn: TurnRow) -> bool:
        """Whether a running turn runs in this process."""
        return turn["holder"] == self._workshop.holder

    def stop(self) -> bool:
        """End the turn of this conversation that runs here, for good; False when none runs here."""
        return bool(self._ids) and self._workshop.runner.stop(self._ids[0])

    @contextmanager
    def watch(self, wake: Callable[[], None]) -> Iterator[None]:
        """Have `wake` called whenever the text of the growing answer changed; for the session one is in now."""
        with self._workshop.live.subscribe(self.session_id or "", wake):
            yield

    def notices(self, after: int) -> list[Notice]:
        """What the gateway itself has said in this session since the notice with this number."""
        return self._workshop.live.notices(self.session_id or "", after)

    def reply(self, said: Said) -> str:
        """What was told of a slash command that was said and has no turn; '' for anything else."""
        notices = self._workshop.live.notices(self.session_id or "")
        return next((notice.text for notice in notices if said.name and notice.reply_to == said.name), "")

    def growing(self) -> str:
        """The unfinished answer as it stands now, '' when there is none."""
        live = self._workshop.live.text(self.session_id or "")
        return live.text if live is not None else ""

    # --- in the background -------------------------------------------------------------------------------------------

    async def handle(self, row: InboxRow) -> bool:
        """Work one row, for the lanes; tells who waits for it what stands in the way."""
        try:
            worked = await self._workshop.desk.handle(row)
        except StoreError as error:
            self._tell(error)
            raise
        self.trouble = None
        if worked:
            self._waiting.discard(row["id"])
        elif row["id"] not in self._waiting and await self._held_elsewhere():
            self._waiting.add(row["id"])
            self.db.changes.note()
        return worked

    async def _held_elsewhere(self) -> bool:
        """Whether it is not this process that works the conversation (it does while it runs again what was cut off)."""
        turn = await self.running()
        return turn is None or not self.is_mine(turn)

    async def set_aside(self, row: InboxRow, reason: str) -> None:
        """Put a row that cannot be worked aside, for the lanes."""
        await self._workshop.desk.set_aside(row, reason)

    async def tend(self) -> None:
        """Look again and again for turns that were cut off in this conversation, until cancelled."""
        while True:
            await anyio.sleep(TEND_SECONDS)
            try:
                await self._workshop.desk.settle()
                await self._mend()
            except StoreError as error:
                self._tell(error)

    async def work(self) -> None:
        """Work the messages of this terminal until cancelled."""
        await Lanes(self.db, lambda: [ACCOUNT], self._workshop.holder, self).run()

    async def _mend(self) -> int:
        """Begin to run again what was cut off in this conversation; returns how many turns that are."""
        orphans = await self.db.turns.orphaned_in(self.session_id) if self.session_id else []
        for turn in orphans:
            self._tasks.start_soon(self._recover, turn["id"])
        return len(orphans)

    async def _recover(self, turn_id: str) -> None:
        try:
            await self._workshop.desk.recover(turn_id)
        except StoreError as error:
            self._tell(error)

    def _tell(self, trouble: StoreError) -> None:
        self.trouble = trouble
        self.db.changes.note()


def _said(row: InboxRow, session_id: str) -> Said:
    payload = row["payload"]
    return Said(row["id"], session_id, str(payload.get("text", "")), str(payload.get("message_id") or ""))


@asynccontextmanager
async def open_terminal(home: Home, settings: Settings) -> AsyncIterator[Terminal]:
    """A terminal on a home: store open, process registered and beating, messages worked, until the context ends."""
    async with SessionDB(home.state_db, redact=settings.redact == "store") as db, Heart(db, "terminal") as heart:
        workshop = await Workshop.prepare(settings, db, heart.token)
        visible_to = await owner_sees(db)
        async with anyio.create_task_group() as tasks:
            terminal = Terminal(workshop, visible_to, tasks)
            tasks.start_soon(heart.beat, workshop.runner)
            tasks.start_soon(heart.obey, workshop.runner)
            tasks.start_soon(workshop.titler.run)
            tasks.start_soon(terminal.work)
            tasks.start_soon(terminal.tend)
            if settings.busy == "interrupt":
                tasks.start_soon(Attention(db, lambda: [ACCOUNT], settings.busy).run)
            try:
                yield terminal
            finally:
                tasks.cancel_scope.cancel()
