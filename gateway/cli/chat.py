"""The chat in the terminal: interactive with prompt_toolkit, one-shot with -q, or one message from a pipe.

Contract: what is typed is stored before it is worked. Ctrl-C while an answer is made ends that turn and keeps what was
said; at an empty prompt it asks to use Ctrl-D; Ctrl-D leaves. Works with and without a gateway on the same home.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import InMemoryHistory

from gateway.cli.running import fail
from gateway.cli.screen import Screen, harmless
from gateway.phrases import age, one_line, plural
from gateway.terminal import Answer, Terminal, open_terminal
from session_store import StoreError

if TYPE_CHECKING:
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from config import Home, Settings
    from session_store import MessageRow

__all__ = ["chat_in_terminal", "one_shot"]

MAX_PIPED_CHARACTERS = 1_000_000


async def one_shot(home: Home, settings: Settings, query: str, *, resume: bool) -> None:
    """Say `query` (and what a pipe brings), print the answer to stdout, end."""
    piped = await anyio.to_thread.run_sync(_piped)
    text = f"{query}\n\n{piped}" if piped else query
    if not text.strip():
        raise fail("There is nothing to say: the question is empty.", code=2)
    async with open_terminal(home, settings) as terminal:
        if resume:
            await _continue(terminal)
        await _say_once(terminal, text)


async def chat_in_terminal(home: Home, settings: Settings, *, resume: bool) -> None:
    """Chat until Ctrl-D; without a terminal on stdin the whole input is one message."""
    if not sys.stdin.isatty():
        text = await anyio.to_thread.run_sync(_piped)
        if not text:
            raise fail("There is nothing to say: the input is empty.", code=2)
        async with open_terminal(home, settings) as terminal:
            if resume:
                await _continue(terminal)
            await _say_once(terminal, text)
        return
    async with open_terminal(home, settings) as terminal:
        await _Chat(terminal, Screen(), full=settings.display.resume_display == "full").run(resume=resume)


def _piped() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    return sys.stdin.read(MAX_PIPED_CHARACTERS).strip()


async def _continue(terminal: Terminal) -> None:
    latest = await terminal.latest()
    if latest is not None:
        await terminal.open(latest)


async def _say_once(terminal: Terminal, text: str) -> None:
    call = terminal.parse(text)
    if call is not None:
        print((await terminal.command(call)).text)  # noqa: T201 - the answer goes to stdout
        return
    answer = await _interruptible(terminal, lambda: terminal.ask(text))
    if answer is None or answer.stopped:
        raise fail("Stopped. What you said is kept; `threadline -c` goes on with it.")
    print(harmless(answer.text))  # noqa: T201 - the answer goes to stdout
    if answer.failed:
        raise fail("The agent could not answer.")


async def _interruptible(terminal: Terminal, work: Callable[[], Awaitable[Answer]]) -> Answer | None:
    """Run a question; the first Ctrl-C ends its turn for good, the second leaves at once (what was said is kept)."""
    answer: Answer | None = None
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                stopped = False
                async for _ in signals:
                    if stopped or not await terminal.stop():
                        tasks.cancel_scope.cancel()
                    stopped = True

        tasks.start_soon(watch)
        answer = await work()
        tasks.cancel_scope.cancel()
    return answer


class _Commands(Completer):
    """Completes slash commands at the start of a line."""

    def __init__(self, commands: list[tuple[str, str]]) -> None:
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - the library's signature
        text = document.text_before_cursor
        if text.startswith("/") and " " not in text:
            for name, summary in self._commands:
                if name.startswith(text[1:]):
                    yield Completion(f"/{name}", start_position=-len(text), display_meta=summary)


class _Chat:
    """The interactive loop."""

    def __init__(self, terminal: Terminal, screen: Screen, *, full: bool) -> None:
        self._terminal = terminal
        self._screen = screen
        self._full = full
        self._history = InMemoryHistory()

    async def run(self, *, resume: bool) -> None:
        """Read and answer until Ctrl-D."""
        self._screen.say("Threadline. Tell me something and I keep it; ask and I look it up. /help, Ctrl-D to leave.")
        if resume:
            await self._resume()
        prompt: PromptSession[str] = PromptSession(
            message=FormattedText([("bold", "> ")]),
            history=self._history,
            completer=_Commands(self._terminal.command_names()),
            complete_while_typing=True,
            bottom_toolbar=self._toolbar,
        )
        while True:
            await self._refresh_title()
            try:
                text = (await prompt.prompt_async()).strip()
            except KeyboardInterrupt:
                self._screen.say("Ctrl-D leaves; /stop ends a running turn.")
                continue
            except EOFError:
                break
            if text:
                await self._take(text)
        if self._terminal.session_id is not None:
            self._screen.say(f"Kept as {self._terminal.session_id}. `threadline -c` takes it up again.")

    async def _take(self, text: str) -> None:
        try:
            call = self._terminal.parse(text)
            if call is not None:
                self._screen.markdown((await self._terminal.command(call)).text)
                self._screen.console.print()
            else:
                await self._ask(text)
        except StoreError as error:
            self._screen.say(str(error), style="red")

    async def _ask(self, text: str) -> None:
        self._terminal.begin()
        changed = anyio.Event()

        def wake() -> None:
            changed.set()

        answer: Answer | None = None
        with self._screen.live() as live, self._terminal.watch(wake):
            async with anyio.create_task_group() as tasks:

                async def follow() -> None:
                    nonlocal changed
                    while True:
                        live.update(self._screen.growing(self._terminal.live_text()), refresh=True)
                        await changed.wait()
                        changed = anyio.Event()

                tasks.start_soon(follow)
                answer = await _interruptible(self._terminal, lambda: self._terminal.ask(text, waiting=self._waiting))
                tasks.cancel_scope.cancel()
        if answer is None:
            self._screen.say("Left before the answer was done. What you said is kept.")
        else:
            self._screen.answer(answer)

    def _waiting(self) -> None:
        self._screen.say("Another process works this conversation; yours is kept and comes next. Ctrl-C stops waiting.")

    async def _resume(self) -> None:
        latest = await self._terminal.latest()
        if latest is None:
            self._screen.say("There is no earlier session in the terminal; this is a new one.")
            return
        self._terminal.session_id = latest
        session = await self._terminal.db.get_session(latest)
        if session is None:
            return
        name = f"“{session['title']}”" if session["title"] else latest
        last = age(session["last_active"] or session["started_at"], time.time())
        self._screen.say(f"Going on with {name}: {plural(session['message_count'], 'message')}, last {last}.")
        messages = await self._terminal.db.get_messages(latest, limit=50)
        for message in messages:
            if message["role"] == "user" and isinstance(message["content"], str):
                self._history.append_string(message["content"])
        if self._full and messages:
            self._recall_end(messages)
        taken = await self._terminal.open(latest)
        if taken:
            self._screen.say(f"{plural(taken, 'interrupted turn')} taken up and finished:")
            self._screen.answer(Answer(tuple(await self._terminal.db.get_messages(latest, limit=2))))

    def _recall_end(self, messages: list[MessageRow]) -> None:
        """The end of the conversation, so that one knows where one is."""
        for message in messages[-4:]:
            if isinstance(message["content"], str) and not message["tool_calls"]:
                if message["role"] == "user":
                    self._screen.say(f"> {one_line(message['content'], 300)}", style="bold")
                elif message["role"] == "assistant":
                    self._screen.markdown(message["content"])

    async def _refresh_title(self) -> None:
        session_id = self._terminal.session_id
        session = await self._terminal.db.get_session(session_id) if session_id else None
        title = session["title"] if session is not None else None
        self._title = f"{title} ({session_id})" if title else (session_id or "a new session begins with what you say")

    def _toolbar(self) -> str:
        return harmless(self._title)
