"""Following a conversation: what the store has of it, shown as it comes.

Contract: the screen is a view of the store. Every message of the conversation appears once, in order, wherever it was
said and whoever answered it; a turn that ended without an answer is told as stopped. What this terminal accepted is in
`state.queue` until its turn begins.
Failure: store errors are told in their sentence, once each, and what was missed is shown by the next look.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio

from gateway.bell import Bell
from gateway.cli.front import State
from gateway.cli.transcript import Transcript, last_rows
from session_store import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from gateway.cli.front import Front
    from gateway.cli.screen import Screen
    from gateway.terminal import Said, Terminal
    from session_store import MessageRow

__all__ = ["Following"]

LOOK_SECONDS = 1.0
TROUBLE_SECONDS = 1.0
_PAGE = 200

WAITS = "Another process works this conversation; your message is kept and comes next."


class Following:
    """Shows one terminal's conversation above the prompt."""

    #: Grows with everything that came to its end.
    ended: int

    def __init__(self, terminal: Terminal, front: Front, screen: Screen) -> None:
        self._terminal = terminal
        self._front = front
        self._screen = screen
        self._transcript = Transcript(terminal.db, screen)
        self._bell = Bell(terminal.db)
        self._said: list[Said] = []
        self._told_to_wait: set[int] = set()
        self._told: str | None = None
        self._seen = 0
        self._noticed = 0
        self._root: str | None = None
        self._looked = anyio.Event()
        self._looking = anyio.Lock()
        self.state = State()
        self.ended = 0

    @property
    def waiting(self) -> bool:
        """Whether something that was said here is not settled yet."""
        return bool(self._said)

    @asynccontextmanager
    async def still(self) -> AsyncIterator[None]:
        """Nothing is looked at or shown inside the context."""
        async with self._looking:
            yield

    async def begin(self, limit: int) -> list[MessageRow]:
        """Begin where the conversation stands: returns its last messages, which are not shown again."""
        await self._notice_move()
        rows = await last_rows(self._terminal.db, await self._terminal.conversation(), limit)
        self._seen = rows[-1]["id"] if rows else 0
        running = await self._terminal.running()
        if running is not None and any(row["turn_id"] == running["id"] for row in rows):
            self._transcript.begin(running["id"])
        return rows

    def wake(self) -> None:
        """Have a look soon."""
        self._bell.ring()

    async def looked(self) -> None:
        """Return after the next look."""
        await self._looked.wait()

    def expect(self, said: Said) -> None:
        """A message of this terminal is in the inbox."""
        self._said.append(said)
        self.wake()

    def typed(self, said: Said) -> None:
        """A message stands on the screen already, as it was typed."""
        self._transcript.typed(said.inbox_id)

    async def run(self) -> None:
        """Look whenever something changed, until cancelled."""
        while True:
            # The session is looked up each time: compression moves a conversation on, and /new leads elsewhere.
            with self._terminal.watch(self._front.refresh):
                try:
                    await self.look()
                    await self.tell(self._terminal.trouble)
                except StoreError as error:
                    await self.tell(error)
                    await anyio.sleep(TROUBLE_SECONDS)
                await self._bell.wait(LOOK_SECONDS)

    async def look(self) -> None:
        """Show what is new, and note what the state is now."""
        async with self._looking:
            await self._look()

    async def _look(self) -> None:
        await self._notice_move()
        # In this order: a turn that was seen to have ended has its answer among the rows that are read afterwards.
        before = self._transcript.open_turns
        states = {said: await self._terminal.state(said) for said in self._said}
        running = await self._terminal.running()
        rows = await self._news()
        over = before - ({running["id"]} if running is not None else set())
        aside = [said for said, state in states.items() if state == "set_aside"]
        if rows or over or aside:
            await self._transcript.prepare(rows)
            await self._front.show(lambda: self._draw(rows, over, aside))
        settled = [said for said, state in states.items() if state not in {"new", "taken"}]
        self._said = [said for said in self._said if said not in settled]
        self.ended += len(settled) + len(before - self._transcript.open_turns)
        queue = tuple(said.text for said, state in states.items() if state == "new")
        if rows:  # its answer may have been among them
            running = await self._terminal.running()
        elsewhere = running is not None and not self._terminal.is_mine(running)
        self.state = State(queue, running is not None, elsewhere, await self._place())
        self._front.refresh()
        await self._tell_waiting()
        await self._tell_notices()
        self._looked.set()
        self._looked = anyio.Event()

    async def _notice_move(self) -> None:
        """Let go of what is still made in the conversation that was left."""
        ids = await self._terminal.conversation()
        root = ids[0] if ids else None
        if self._root not in {None, root} and self._transcript.forget_open():
            left = f"The answer that is still made goes into {self._root}."
            await self._front.show(lambda: self._screen.say(left))
        self._root = root

    async def _news(self) -> list[MessageRow]:
        rows: list[MessageRow] = []
        full = True
        while full:
            page: list[MessageRow] = []
            for session_id in await self._terminal.conversation():
                if len(page) < _PAGE:
                    page += await self._terminal.db.get_messages_after(session_id, self._seen, _PAGE - len(page))
            self._seen = page[-1]["id"] if page else self._seen
            rows += page
            full = len(page) == _PAGE
        return rows

    def _draw(self, rows: Sequence[MessageRow], over: frozenset[str], aside: Sequence[Said]) -> None:
        self._transcript.show(rows)
        for turn_id in over & self._transcript.open_turns:
            self._transcript.stopped(turn_id)
        for said in aside:
            self._screen.quoted(said.text)
            self._screen.say("This message could not be worked; it is kept aside.", style="red")
            self._screen.gap()

    async def _place(self) -> str:
        session_id = self._terminal.session_id
        if session_id is None:
            return "a new session begins with what you say"
        session = await self._terminal.db.get_session(session_id)
        title = session["title"] if session is not None else None
        return f"{title} ({session_id})" if title else session_id

    async def _tell_waiting(self) -> None:
        """Say once for each message that it has to wait for another process."""
        waiting = {said.inbox_id for said in self._said if self._terminal.waits(said)} - self._told_to_wait
        if waiting:
            self._told_to_wait |= waiting
            await self._front.show(lambda: self._screen.say(WAITS))

    async def _tell_notices(self) -> None:
        """Show what the gateway itself says in this session, once."""
        for notice in self._terminal.notices(self._noticed):
            self._noticed = notice.number
            await self._front.show(partial(self._screen.markdown, notice.text))

    async def tell(self, trouble: StoreError | None) -> None:
        """Say what is wrong with the store, once; None: all is well again."""
        sentence = str(trouble) if trouble is not None else None
        if sentence is not None and sentence != self._told:
            await self._front.show(lambda: self._screen.say(sentence, style="red"))
        self._told = sentence
