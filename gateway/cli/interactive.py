"""The interactive chat: what happens between a person at a terminal and a session, whatever front reads the keys.

Contract: what is sent goes into the store before anything else happens, and what is shown of it is what the store has
(see following.py). One may type on while an answer is made; every message gets its own turn, in order. A message that
could not be stored is given back to the person, and sent again it is the same message.
Ctrl-C calls off a handoff that is under way, else ends the running turn of this terminal and keeps what was said; a
second one leaves at once. Who leaves in the middle of a turn leaves it to the next `threadline -c`.
Limits: `MAX_UNSENT` messages may wait to be stored.
"""

from __future__ import annotations

import contextlib
import signal
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio
import typer

from gateway.cli.chat import MAX_CHARACTERS
from gateway.cli.choosing import chosen_session
from gateway.cli.following import Following
from gateway.cli.handing import Handing
from gateway.cli.quiet import quiet_logs
from gateway.cli.recap import show_recap
from gateway.cli.screen import Screen
from gateway.phrases import plural
from gateway.recap import recap_of
from gateway.said import text_of
from gateway.terminal import Terminal, open_terminal
from session_store import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config import Home, Settings
    from gateway.cli.front import Front, State
    from gateway.cli.options import Wanted
    from gateway.commands import Call
    from gateway.recap import Recap
    from gateway.terminal import Left

__all__ = ["Talk", "interactive"]

MAX_UNSENT = 64

#: The last messages that arrow-up finds what was said in.
LOOKED_AT = 60

WELCOME = "Just write; all of it is kept. /help lists the commands, Ctrl-D leaves."


async def interactive(home: Home, settings: Settings, session: Wanted | None, *, lines: bool) -> None:
    """Chat until the person leaves. session: which one to take up. lines: read line by line, without a drawn prompt."""
    front: Front
    if lines:
        from gateway.cli.lines import LineFront  # noqa: PLC0415 - one of two

        front = LineFront()
    else:
        from gateway.cli.prompt import PromptFront  # noqa: PLC0415 - one of two

        front = PromptFront()
    quiet_logs()
    async with open_terminal(home, settings) as terminal:
        chosen = await chosen_session(terminal, session) if session is not None else None
        talk = Talk(terminal, front, Screen(), full=settings.display.resume_display == "full")
        await talk.run(chosen, resuming=session is not None)
    if talk.told_to_end is not None:
        raise typer.Exit(128 + talk.told_to_end)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A message on its way into the store; client_id stays when it is sent again."""

    text: str
    client_id: str


class Talk:
    """One person's talk with one terminal; listens to one front."""

    def __init__(self, terminal: Terminal, front: Front, screen: Screen, *, full: bool) -> None:
        self._terminal = terminal
        self._front = front
        self._screen = screen
        self._full = full
        self._following = Following(terminal, front, screen)
        self._handing = Handing(terminal.db, self._note)
        self._outgoing, self._incoming = anyio.create_memory_object_stream[_Draft](MAX_UNSENT)
        self._notes, self._to_show = anyio.create_memory_object_stream[str](MAX_UNSENT)
        self._unsent: list[_Draft] = []
        self._given_back: _Draft | None = None
        # What had happened when Ctrl-C was pressed last; a second one counts only if nothing happened since.
        self._sent = 0
        self._pressed_at: tuple[int, int] | None = None
        self.past: list[str] = []
        self.told_to_end: signal.Signals | None = None

    async def run(self, session_id: str | None, *, resuming: bool) -> None:
        """Talk until the person leaves. session_id: where to go on; resuming: whether that was asked for."""
        self._screen.say(WELCOME)
        if session_id is not None:
            await self._resume(session_id)
        elif resuming:
            self._screen.say("There is no earlier session in the terminal; this is a new one.")
        async with anyio.create_task_group() as tasks, self._outgoing, self._incoming, self._notes, self._to_show:
            tasks.start_soon(self._obey_signals)
            tasks.start_soon(self._store)
            tasks.start_soon(self._show_notes)
            tasks.start_soon(self._following.run)
            tasks.start_soon(self._handing.run)
            await self._front.run(self)
            tasks.cancel_scope.cancel()
        await self._part()

    # --- what the front asks and tells -------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """What to draw above the prompt."""
        state = self._following.state
        return replace(state, queue=(*state.queue, *(draft.text for draft in self._unsent)))

    @property
    def commands(self) -> Sequence[tuple[str, str]]:
        """Name and summary of each slash command."""
        return [(command.name, command.summary) for command in self._terminal.commands]

    def growing(self) -> str:
        """The unfinished answer as it stands at this moment."""
        return self._terminal.growing()

    def submit(self, text: str) -> None:
        """The person sent this."""
        if not text.strip():
            return
        again = self._given_back
        draft = again if again is not None and again.text == text else _Draft(text, uuid4().hex)
        if len(text) > MAX_CHARACTERS:
            self._give_back(draft, f"That has more than {MAX_CHARACTERS:,} characters; send it in parts.")
            return
        try:
            self._outgoing.send_nowait(draft)
        except anyio.WouldBlock:
            self._give_back(draft, "Too many messages wait to be stored; send this one a little later.")
            return
        self._sent += 1
        self._unsent.append(draft)
        self._front.refresh()

    def interrupt(self) -> None:
        """The person pressed Ctrl-C."""
        now = (self._sent, self._following.ended)
        if self._pressed_at == now:
            self._front.leave()
            return
        self._pressed_at = now
        if self._handing.active:
            self._handing.call_off()
            return
        if self._terminal.stop():
            return
        if self._busy:
            self._note("Your message waits; it is kept and comes next. Ctrl-C again leaves.")
        elif self.state.running:
            self._note("The answer is made by another process: /stop ends it, Ctrl-C again leaves.")
        else:
            self._note("Ctrl-C again or Ctrl-D leaves.")

    async def idle(self) -> None:
        """Return when everything that was sent is answered and shown."""
        while self._busy:
            await self._following.looked()

    @property
    def _busy(self) -> bool:
        return self._following.waiting or bool(self._unsent)

    # --- beginning and end -------------------------------------------------------------------------------------------

    async def _resume(self, session_id: str) -> None:
        left, recap = await self._enter(session_id)
        if recap is not None:
            self._screen.say(recap.head(time.time()))
        self._greet(left, recap)

    async def _enter(self, session_id: str) -> tuple[Left, Recap | None]:
        """Go into a session: nothing of it is shown again, what was left in it is expected."""
        left = await self._terminal.open(session_id)
        rows = await self._following.begin(LOOKED_AT)
        for said in left.said:
            self._following.expect(said)
        self.past = [text_of(row) for row in rows if row["role"] == "user"]
        return left, await recap_of(self._terminal.db, session_id)

    def _greet(self, left: Left, recap: Recap | None) -> None:
        """Show where one was, and what is taken up."""
        if self._full and recap is not None:
            show_recap(self._screen, recap)
        if left:
            self._screen.say(f"Taking up what was cut off: {plural(len(left), 'message')}.")

    async def _part(self) -> None:
        session_id = self._terminal.session_id
        if session_id is None:
            return
        with contextlib.suppress(StoreError):  # the last word is about how things are now
            await self._following.look()
        if self._busy:
            self._screen.say("You left before everything was answered; what you said is kept.")
        else:
            await self._terminal.end()
        self._screen.say(f"Kept as {session_id}. `threadline -c` takes it up again.")

    async def _obey_signals(self) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as signals:
            async for number in signals:
                self.told_to_end = number
                self._front.leave()

    # --- from the prompt into the store ------------------------------------------------------------------------------

    async def _store(self) -> None:
        async for draft in self._incoming:
            try:
                call = self._terminal.parse(draft.text)
                if call is not None:
                    await self._command(draft, call)
                else:
                    said = await self._terminal.say(draft.text, draft.client_id)
                    if self._front.echoes:
                        self._following.typed(said)
                    elif self._terminal.asks_again(draft.text):
                        await self._front.show(partial(self._screen.quoted, draft.text))
                    self._following.expect(said)
            except StoreError as error:
                await self._following.tell(error)
                self._give_back(draft, "Your message was not stored; it is back at the prompt.")
            self._unsent.remove(draft)
            self._following.wake()

    async def _command(self, draft: _Draft, call: Call) -> None:
        # Nothing is shown of the session that a command leads to before the command's own answer.
        async with self._following.still():
            reply = await self._terminal.command(call)
            entered = await self._enter(reply.session_id) if reply.session_id is not None else None

            def draw() -> None:
                if not self._front.echoes:
                    self._screen.quoted(draft.text)
                self._screen.markdown(reply.text)
                if entered is not None:
                    self._greet(*entered)
                self._screen.gap()

            await self._front.show(draw)
            if reply.handoff is not None:
                self._handing.begin(reply.handoff)

    def _give_back(self, draft: _Draft, why: str) -> None:
        self._given_back = draft
        self._front.offer(draft.text)
        self._note(why)

    # --- words of the program ----------------------------------------------------------------------------------------

    def _note(self, sentence: str) -> None:
        with contextlib.suppress(anyio.WouldBlock):  # so many at once say nothing any more
            self._notes.send_nowait(sentence)

    async def _show_notes(self) -> None:
        async for sentence in self._to_show:
            await self._front.show(partial(self._screen.say, sentence))
