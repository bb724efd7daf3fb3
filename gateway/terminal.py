"""The terminal's side of a session: it runs its own turns, with or without a gateway on the same home.

Contract: what is typed is in the inbox before anything else happens, so a kill at any moment loses nothing: the next
terminal that opens the session takes it up. While another process works the conversation, `ask` waits its turn.
Failure: store errors are raised with their sentence; the typed text stays in the inbox once `ask` has accepted it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio

from gateway.bell import Bell
from gateway.heart import Heart
from gateway.ids import new_session_id
from gateway.owner import OWNER, owner_sees
from gateway.places import TERMINAL, place_ref
from gateway.workshop import Workshop
from session_store import NewInbox, SessionDB

if TYPE_CHECKING:
    from config import Home, Settings
    from gateway.commands import Call, Reply
    from session_store import InboxRow, MessageRow, Visibility

__all__ = ["Answer", "Terminal", "open_terminal"]

WAIT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one question: the stored messages after it, oldest first. stopped: a person ended the turn."""

    messages: tuple[MessageRow, ...]

    @property
    def text(self) -> str:
        """The final answer as Markdown; '' when the turn was stopped before it said anything."""
        for message in reversed(self.messages):
            if message["role"] == "assistant" and message["content"] and not message["tool_calls"]:
                return str(message["content"])
        return ""

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that were called, in order."""
        return tuple(
            str(call.get("function", {}).get("name", "?"))
            for message in self.messages
            for call in message["tool_calls"] or ()
        )

    @property
    def stopped(self) -> bool:
        """Whether a person ended the turn."""
        return not self.messages or self.messages[-1]["finish_reason"] == "stopped"

    @property
    def failed(self) -> bool:
        """Whether the agent could not answer; the text then says why."""
        return bool(self.messages) and self.messages[-1]["finish_reason"] == "error"


class Terminal:
    """One terminal in one session at a time."""

    def __init__(self, workshop: Workshop, visible_to: Visibility) -> None:
        self._workshop = workshop
        self.visible_to = visible_to
        self.session_id: str | None = None

    @property
    def db(self) -> SessionDB:
        """The open store."""
        return self._workshop.db

    def parse(self, text: str) -> Call | None:
        """The slash command in `text`, if it is one."""
        return self._workshop.commands.parse(text)

    def command_names(self) -> list[tuple[str, str]]:
        """Name and summary of each command, for completion."""
        return [(command.name, command.summary) for command in self._workshop.commands.commands]

    async def latest(self) -> str | None:
        """The session last used in a terminal."""
        rows = await self.db.list_sessions(source="cli", limit=1, visible_to=self.visible_to)
        return rows[0]["id"] if rows else None

    async def open(self, session_id: str) -> int:
        """Go into a session and end what a dead terminal left in it; returns how many turns were taken up."""
        self.session_id = session_id
        taken = 0
        for turn in await self.db.turns.orphaned_in(session_id):
            taken += await self._workshop.desk.recover(turn["id"])
        for row in await self.db.inbox.adopt(session_id, self._workshop.holder):
            await self._work(row, None)
            taken += 1
        return taken

    def leave(self) -> None:
        """The next question begins a new session."""
        self.session_id = None

    async def command(self, call: Call) -> Reply:
        """Work a slash command; /new and the like move this terminal to the session they name."""
        reply = await self._workshop.desk.local_command(TERMINAL, OWNER, self.session_id, call)
        if reply.session_id is not None:
            self.session_id = reply.session_id
        return reply

    def begin(self) -> str:
        """The session that the next question goes to, made up now if there is none yet."""
        self.session_id = self.session_id or new_session_id("terminal", time.time())
        return self.session_id

    async def ask(self, text: str, waiting: Callable[[], None] | None = None) -> Answer:
        """Say something and get the answer. `waiting` is called once when another process holds the conversation.

        Cancelling it leaves the turn to whoever opens the session next; use `stop` to end it for good.
        """
        session_id = self.begin()
        client_id = uuid4().hex
        accepted = await self.db.inbox.accept(
            NewInbox(
                place=place_ref(TERMINAL),
                dedupe_key=f"m:{client_id}",
                kind="message",
                lane=f"session:{session_id}",
                received_at=time.time(),
                payload={"text": text, "message_id": client_id},
                sender={"user_id": None, "name": "", "realm": "", "is_bot": False},
                session_id=session_id,
                person_id=OWNER,
                holder=self._workshop.holder,
            )
        )
        row = await self.db.inbox.get(accepted.inbox_id)
        if row is None:
            return Answer(())
        return await self._work(row, waiting)

    async def _work(self, row: InboxRow, waiting: Callable[[], None] | None) -> Answer:
        bell = Bell(self.db)
        while not await self._workshop.desk.handle(row):
            if waiting is not None:
                waiting()
                waiting = None
            await bell.wait(WAIT_SECONDS)
        session_id = row["session_id"] or ""
        question = await self.db.turns.message_of(row["id"])
        if question is None:
            return Answer(())
        tip = question["session_id"] or session_id
        return Answer(tuple(await self.db.get_messages_after(tip, question["id"], limit=200)))

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Have `wake` called whenever the text of the running answer changed; read it with `live_text`."""
        return self._workshop.live.subscribe(self.session_id or "", wake)

    def live_text(self) -> str:
        """The unfinished answer as it stands now, '' when there is none."""
        live = self._workshop.live.text(self.session_id or "")
        return live.text if live is not None else ""

    async def stop(self) -> bool:
        """End the running turn of this session for good; False when none runs."""
        if self.session_id is None:
            return False
        session = await self.db.get_session(self.session_id)
        root = (session["root_id"] or session["id"]) if session is not None else self.session_id
        return self._workshop.runner.stop(root) or await self.db.control.request_stop(root, OWNER)


@asynccontextmanager
async def open_terminal(home: Home, settings: Settings) -> AsyncIterator[Terminal]:
    """A terminal on a home: store open, process registered and beating until the context ends."""
    async with SessionDB(home.state_db) as db, Heart(db, "terminal") as heart:
        workshop = await Workshop.prepare(settings, db, heart.token)
        visible_to = await owner_sees(db)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(heart.beat)
            tasks.start_soon(heart.obey, workshop.runner)
            try:
                yield Terminal(workshop, visible_to)
            finally:
                tasks.cancel_scope.cancel()
