"""The full prompt: a line editor that stays while answers are made, with completion, history and a status line.

Contract: Enter sends; Alt-Enter (Esc, Enter) makes a new line; what is pasted stays one message. Ctrl-C with nothing
running takes the text away into the history, where arrow-up finds it. What others print (warnings of libraries on
stderr) appears above the prompt. The terminal is as before when `run` ends, however it ends.
Limits: of a growing answer the last lines are shown; the whole comes when it is stored.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import in_terminal
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.patch_stdout import StdoutProxy
from prompt_toolkit.utils import get_cwidth

from gateway.phrases import harmless, one_line

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document
    from prompt_toolkit.key_binding import KeyPressEvent

    from gateway.cli.front import Listener

__all__ = ["PromptFront", "wrapped"]

MAX_LIVE_LINES = 12
MAX_QUEUE_LINES = 3
#: Lines of the screen that the prompt, the menu and the status line want for themselves.
OWN_LINES = 8
MENU_LINES = 4


class PromptFront:
    """See the module."""

    echoes = False

    def __init__(self) -> None:
        self._listener: Listener | None = None
        self._session: PromptSession[str] = PromptSession(
            message=self._above,
            prompt_continuation="  ",
            history=InMemoryHistory(),
            completer=_Commands(lambda: self._listener),
            complete_while_typing=True,
            key_bindings=self._keys(),
            bottom_toolbar=self._status,
            erase_when_done=True,
            reserve_space_for_menu=MENU_LINES,
        )
        self._session.default_buffer.accept_handler = self._accept

    async def run(self, listener: Listener) -> None:
        """Read until the person leaves or `leave` is called."""
        self._listener = listener
        for text in listener.past:
            self._session.history.append_string(text)
        with StdoutProxy() as above, contextlib.redirect_stderr(above), contextlib.suppress(EOFError):
            await self._session.prompt_async(set_exception_handler=False)

    async def show(self, draw: Callable[[], None]) -> None:
        """Have something printed above the prompt."""
        app = self._session.app
        async with in_terminal():
            # What is typed while something is printed belongs to the prompt: it must not be echoed between the lines.
            with app.input.raw_mode() if app.is_running else contextlib.nullcontext():
                draw()

    def refresh(self) -> None:
        """The state or the growing answer changed."""
        self._session.app.invalidate()

    def offer(self, text: str) -> None:
        """Put a text back to the prompt, or into the history if something is typed there by now."""
        buffer = self._session.default_buffer
        if not buffer.text:
            buffer.text = text
            buffer.cursor_position = len(text)

    def leave(self) -> None:
        """End `run` at once."""
        app = self._session.app
        if app.is_running and not app.is_done:
            app.exit(exception=EOFError)

    # --- keys --------------------------------------------------------------------------------------------------------

    def _accept(self, buffer: Buffer) -> bool:
        """Send what was typed; the prompt goes on with an empty buffer."""
        if self._listener is not None:
            self._listener.submit(buffer.text)
        return False

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("escape", "enter")
        def _new_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("c-c")
        @keys.add("<sigint>")
        def _interrupt(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            listener = self._listener
            if listener is None:
                return
            if buffer.text and not (listener.state.running or listener.state.queue):
                buffer.append_to_history()
                buffer.reset()
            else:
                listener.interrupt()

        return keys

    # --- what is drawn -----------------------------------------------------------------------------------------------

    def _above(self) -> StyleAndTextTuples:
        """The unfinished answer and what waits, then the prompt itself."""
        listener = self._listener
        if listener is None:
            return [("bold", "> ")]
        size = self._session.app.output.get_size()
        state = listener.state
        lines: list[str] = []
        if state.running:
            # Drawn many times while it grows: only the end is looked at, whatever the length.
            end = listener.growing()[-MAX_LIVE_LINES * size.columns :]
            lines = list(wrapped(harmless(end), size.columns))[-min(MAX_LIVE_LINES, max(1, size.rows - OWN_LINES)) :]
            lines.append("… (made by another process; /stop ends it)" if state.elsewhere else "… (Ctrl-C stops)")
        for text in state.queue[:MAX_QUEUE_LINES]:
            shown = one_line(harmless(text[: 2 * size.columns]), max(10, size.columns - 12))
            lines.append(f"> {shown} (waits)")
        if len(state.queue) > MAX_QUEUE_LINES:
            lines.append(f"and {len(state.queue) - MAX_QUEUE_LINES} more")
        return [*(("fg:ansibrightblack", f"{line}\n") for line in lines), ("bold", "> ")]

    def _status(self) -> str:
        width = self._session.app.output.get_size().columns
        return one_line(harmless(self._listener.state.place), max(10, width)) if self._listener is not None else ""


def wrapped(text: str, columns: int) -> Iterator[str]:
    """The lines that `text` takes on a screen of so many columns."""
    for line in text.expandtabs(4).splitlines():
        row, width = "", 0
        for character in line:
            wide = get_cwidth(character)
            if width + wide > columns:
                yield row
                row, width = "", 0
            row, width = row + character, width + wide
        yield row


class _Commands(Completer):
    """Completes slash commands at the start of a message."""

    def __init__(self, listener: Callable[[], Listener | None]) -> None:
        self._listener = listener

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - the library's signature
        text = document.text
        listener = self._listener()
        if listener is None or not text.startswith("/") or any(character.isspace() for character in text):
            return
        for name, summary in listener.commands:
            if name.startswith(text[1:].lower()):
                yield Completion(f"/{name}", start_position=-len(text), display_meta=summary)
