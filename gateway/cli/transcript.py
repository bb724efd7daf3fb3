"""Stored messages as the terminal shows them: one turn after another, tool calls folded to count and names.

Contract: `Transcript.show` prints rows in their order; the calls of a turn are gathered until its answer comes. Rewound
rows, system prompts and results of tools are left out. What was said here carries no label, what was said at another
entrance names it. A turn that ends without an answer is closed by `stopped`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.phrases import folded
from gateway.places import TERMINAL
from gateway.said import text_of, tool_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.cli.screen import Screen
    from session_store import MessageRow, SessionDB

__all__ = ["Transcript", "last_rows"]


async def last_rows(db: SessionDB, conversation: Sequence[str], limit: int) -> list[MessageRow]:
    """The last messages of a conversation given by its session ids, oldest first."""
    rows: list[MessageRow] = []
    for session_id in reversed(conversation):
        if len(rows) < limit:
            rows = await db.get_messages(session_id, limit=limit - len(rows)) + rows
    return rows


class Transcript:
    """Shows the messages of one terminal."""

    def __init__(self, db: SessionDB, screen: Screen) -> None:
        self._db = db
        self._screen = screen
        self._entrances: dict[int, str] = {}
        self._open: dict[str, list[str]] = {}
        self._typed: set[int] = set()

    @property
    def open_turns(self) -> frozenset[str]:
        """Turns whose question was shown and whose answer was not yet."""
        return frozenset(self._open)

    def begin(self, turn_id: str) -> None:
        """Expect the answer of a turn whose question stands on the screen already."""
        self._open.setdefault(turn_id, [])

    def forget_open(self) -> bool:
        """Expect no answer any more; returns whether one was expected."""
        expected = bool(self._open)
        self._open.clear()
        return expected

    def typed(self, inbox_id: int) -> None:
        """A message stands on the screen already, as it was typed."""
        self._typed.add(inbox_id)

    async def prepare(self, rows: Sequence[MessageRow]) -> None:
        """Look up what `show` needs to know of these rows."""
        for place_id in {row["place_id"] for row in rows if row["place_id"] is not None} - self._entrances.keys():
            place = await self._db.places.get(place_id)
            elsewhere = place is not None and place.platform != TERMINAL.platform
            self._entrances[place_id] = place.platform if place is not None and elsewhere else ""

    def show(self, rows: Sequence[MessageRow]) -> None:
        """Print rows, oldest first."""
        for row in rows:
            if not row["rewound"]:
                self._one(row)

    def stopped(self, turn_id: str) -> None:
        """Close a turn that ended without an answer."""
        self._tools(self._open.pop(turn_id, []))
        self._screen.say("Stopped. What you said is kept.")
        self._screen.gap()

    def _one(self, row: MessageRow) -> None:
        turn_id = row["turn_id"] or ""
        if row["role"] == "user":
            if row["inbox_id"] not in self._typed:
                self._screen.quoted(text_of(row), self._entrances.get(row["place_id"] or 0, ""))
            if turn_id:
                self.begin(turn_id)
        elif row["role"] == "assistant" and row["tool_calls"]:
            self._open.setdefault(turn_id, []).extend(tool_names(row))
            if text_of(row):
                self._screen.markdown(text_of(row))
        elif row["role"] == "assistant":
            self._answer(row, self._open.pop(turn_id, []))

    def _answer(self, row: MessageRow, tools: Sequence[str]) -> None:
        self._tools(tools)
        if row["finish_reason"] == "error":
            self._screen.say(text_of(row), style="red")
        else:
            self._screen.markdown(text_of(row))
        if row["finish_reason"] == "stopped":
            self._screen.say("Stopped. What was said so far is kept.")
        self._screen.gap()

    def _tools(self, tools: Sequence[str]) -> None:
        if tools:
            self._screen.say(f"  {folded(tools)}")
