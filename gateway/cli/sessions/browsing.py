"""`threadline sessions browse`: pick a session on a full screen, type to filter, Enter goes on with it.

Contract: what is typed filters by title, beginning, id and entrance, letter case aside. Arrows wrap; Esc takes the
filter away, then leaves; `q` leaves while nothing is typed; Ctrl-C leaves. On a terminal that cannot be drawn on, a
numbered list is printed and a number asked for. Leaving without a choice changes nothing.
Limits: the `MOST` last active sessions.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.cli.chat import only_lines
from gateway.cli.options import Source, Wanted
from gateway.cli.output import write
from gateway.cli.running import async_run, fail, settings_of_home
from gateway.cli.sessions.common import app, on_store
from gateway.phrases import harmless, one_line, plural
from gateway.resuming import described
from session_store.titles import title_key

if TYPE_CHECKING:
    from prompt_toolkit import Application
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from session_store import SessionListRow

__all__ = ["MOST", "Picker", "browse"]

MOST = 500
_FRAME = 3
_NAME = 60


@app.command("browse")
def browse(*, source: Source = None) -> None:
    """Pick a session from a list that filters as you type, and go on with it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise fail("This needs a terminal. `threadline sessions list` prints the sessions.")
    rows = on_store(lambda db, visible_to: db.list_sessions(source, MOST, visible_to=visible_to))
    if not rows:
        write("No sessions.")
        return
    chosen = _by_number(rows) if only_lines() else async_run(_application(Picker(rows)).run_async())
    if chosen is not None:
        from gateway.cli.interactive import interactive  # noqa: PLC0415 - the prompt and the screen are heavy

        home, settings = settings_of_home()
        async_run(interactive(home, settings, Wanted(chosen), lines=only_lines()))


class Picker:
    """What is listed, what is typed, where one stands; no screen."""

    def __init__(self, rows: Sequence[SessionListRow]) -> None:
        self._rows = [
            (row, title_key(f"{row['title'] or ''} {row['preview']} {row['id']} {row['source']}")) for row in rows
        ]
        self.typed = ""
        self.position = 0

    @property
    def matching(self) -> list[SessionListRow]:
        """The sessions that hold everything that was typed, word by word."""
        words = title_key(self.typed).split()
        return [row for row, text in self._rows if all(word in text for word in words)]

    @property
    def chosen(self) -> str | None:
        """The id of the session one stands on, None where nothing matches."""
        matching = self.matching
        return matching[self.position]["id"] if matching else None

    def move(self, steps: int) -> None:
        """Go up or down; behind the last comes the first."""
        self.position = (self.position + steps) % max(1, len(self.matching))

    def type(self, text: str) -> None:
        """Filter by more; one stands on the first that matches then."""
        self.typed += text
        self.position = 0

    def erase(self, *, everything: bool = False) -> None:
        """Take back the last character, or all."""
        self.typed = "" if everything else self.typed[:-1]
        self.position = 0


def _by_number(rows: Sequence[SessionListRow]) -> str | None:
    """Print the list and ask for a number until there is one; None for none."""
    now = time.time()
    for number, row in enumerate(rows, start=1):
        write(f"{number:4}. {_name(row)}  ({described(row, now)}, {row['id']})")
    while True:
        write("Number of the session to go on with, Enter alone leaves:")
        answer = sys.stdin.readline().strip()
        if answer.lower() in {"", "q"}:
            return None
        if answer.isascii() and answer.isdigit() and 1 <= int(answer[:9]) <= len(rows):
            return rows[int(answer) - 1]["id"]
        write(f"That is none of the numbers from 1 to {len(rows)}.")


def _name(row: SessionListRow) -> str:
    return one_line(harmless(row["title"] or row["preview"] or "(empty)"), _NAME)


def _application(picker: Picker) -> Application[str | None]:
    """The full screen; its result is the chosen session."""
    from prompt_toolkit import Application  # noqa: PLC0415 - only this needs it
    from prompt_toolkit.layout import FormattedTextControl, Layout, Window  # noqa: PLC0415 - the same

    now = time.time()

    def drawn() -> StyleAndTextTuples:
        size = application.output.get_size()
        return _drawn(picker, now, size.columns, max(1, size.rows - _FRAME))

    control = FormattedTextControl(drawn, focusable=True, show_cursor=False)
    application: Application[str | None] = Application(
        layout=Layout(Window(control)), key_bindings=_keys(picker), full_screen=True
    )
    application.ttimeoutlen = 0.1
    return application


def _drawn(picker: Picker, now: float, columns: int, room: int) -> StyleAndTextTuples:
    matching = picker.matching
    first = max(0, min(picker.position - room // 2, len(matching) - room))
    lines: StyleAndTextTuples = [("bold", f"Filter: {picker.typed}\n")]
    for number, row in enumerate(matching[first : first + room], start=first):
        here = number == picker.position
        text = one_line(f"{_name(row)} ({described(row, now)}, {row['id']})", max(10, columns - 3))
        lines.append(("reverse" if here else "", f"{'>' if here else ' '} {text}\n"))
    found = plural(len(matching), "session") if matching else "Nothing matches"
    lines.append(("fg:ansibrightblack", f"{found}. Enter goes on with it, Esc leaves."))
    return lines


def _keys(picker: Picker) -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings  # noqa: PLC0415 - only the full screen needs it
    from prompt_toolkit.keys import Keys  # noqa: PLC0415 - the same

    keys = KeyBindings()
    for key, steps in (("up", -1), ("down", 1), ("pageup", -10), ("pagedown", 10)):
        keys.add(key)(lambda _event, steps=steps: picker.move(steps))
    keys.add("backspace")(lambda _event: picker.erase())
    for key in ("c-c", "c-d", "<sigint>"):
        keys.add(key)(lambda event: event.app.exit(result=None))
    keys.add("enter")(lambda event: event.app.exit(result=picker.chosen) if picker.chosen is not None else None)
    keys.add("escape", eager=True)(lambda event: _back(event, picker))
    for typed in (Keys.Any, Keys.BracketedPaste):
        keys.add(typed)(lambda event: _type(event, picker))
    return keys


def _back(event: KeyPressEvent, picker: Picker) -> None:
    if picker.typed:
        picker.erase(everything=True)
    else:
        event.app.exit(result=None)


def _type(event: KeyPressEvent, picker: Picker) -> None:
    if event.data == "q" and not picker.typed:
        event.app.exit(result=None)
    elif event.data.isprintable():
        picker.type(event.data)
