"""What changed in one conversation, and in the list of sessions, since the last look.

Contract: `Follower.look` returns the news as events, oldest first. Rows committed by any process appear once, in order,
after the id that the reader has; everything else is state: only its newest value is told, and only when it differs.
The live text of a turn is never told after the stored answer of that turn.
Failure: errors of the store are raised and nothing is marked as told; the next look tells it.
Limits: at most `BATCH` rows in one look; `due` says when to look again even if nothing wakes us.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import anyio.to_thread

from gateway.web.render import markdown
from gateway.web.transcript import Presenter

if TYPE_CHECKING:
    from gateway.live import LiveText, Notice, Wake
    from gateway.web.facade import WebFacade
    from gateway.web.transcript import Shown
    from gateway.web.window import Conversation, Window
    from session_store import MessageRow

__all__ = ["BATCH", "Event", "Follower"]

BATCH = 100

#: Least seconds between two looks at the list of sessions, and how much of it is watched.
_LIST_SECONDS = 1.0
_LIST_ROWS = 50

#: Least seconds between two live texts.
_LIVE_SECONDS = 0.06

#: Characters of Markdown that are rendered on the loop at once.
_INLINE = 2_000

_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Event:
    """One event for the page. id: the message id to resume after, on rows only."""

    kind: str
    data: Shown
    id: int | None = None


class Follower:
    """Follows one conversation (or, without a session id, only the list). Use as a context manager."""

    def __init__(self, facade: WebFacade, window: Window, wake: Wake, *, session_id: str | None, after: int) -> None:
        self._facade = facade
        self._window = window
        self._wake = wake
        self._session_id = session_id
        self._after = after
        self._subscription = contextlib.ExitStack()
        self._followed: str | None = None
        self._turn: Shown | None = None
        self._live: Shown | None = None
        self._live_version = 0
        self._answered: str | None = None
        self._noticed = 0
        self._taken_back: int | None = None
        self._list: object = None
        self._list_at = -_NEVER
        self.due = 0.0
        self.gone = False

    def __enter__(self) -> Self:
        """Begin to follow."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop following."""
        self._subscription.close()

    async def look(self) -> list[Event]:
        """Return what is new; see the module's contract. After `gone` there is nothing more."""
        self.due = _NEVER
        events: list[Event] = []
        if self._session_id is not None:
            conversation = await self._window.open(self._session_id)
            if conversation is None:
                self.gone = True
                return [Event("gone", {})]
            events += await self._conversation(conversation)
        events += await self._sessions()
        return events

    async def _conversation(self, conversation: Conversation) -> list[Event]:
        self._follow(conversation.tip_id)
        # Read before the rows, so that a text whose answer is stored meanwhile is recognised as old.
        live = self._facade.live.text(conversation.tip_id)
        rows = await self._window.after(conversation, self._after, BATCH)
        turn = await self._facade.db.turns.running_in(conversation.root_id)
        shown = await Presenter(self._facade.db).show(rows)
        if rows:
            self._after = rows[-1]["id"]
            self._answered = _answered_turn(rows) or self._answered
        if len(rows) == BATCH:
            self.due = 0.0
        events = [Event("retracted", {})] if await self._retracted(conversation) else []
        events += [Event("message", message, message["id"]) for message in shown]
        events += [self._notice(notice) for notice in self._facade.live.notices(conversation.tip_id, self._noticed)]
        running: Shown = {"running": False, "turn": None}
        if turn is not None or (live is not None and live.turn_id != self._answered):
            running = {"running": True, "turn": live.turn_id if live is not None else turn["id"] if turn else None}
        if running != self._turn:
            self._turn = running
            events.append(Event("turn", running))
        return events + await self._live_text(live)

    async def _retracted(self, conversation: Conversation) -> bool:
        """Whether messages were taken back since the last look; then the page has to read the conversation again."""
        before, self._taken_back = self._taken_back, await self._facade.db.taken_back(conversation.ids)
        return before is not None and self._taken_back > before

    def _follow(self, tip_id: str) -> None:
        """Be woken by the live session; compression may have moved the conversation on to another one."""
        if self._followed != tip_id:
            self._subscription.close()
            self._subscription.enter_context(self._facade.live.subscribe(tip_id, self._wake))
            self._followed = tip_id

    async def _live_text(self, live: LiveText | None) -> list[Event]:
        if live is None or live.turn_id == self._answered:
            shown: Shown = {"turn": None, "html": ""}
        elif live.version == self._live_version:
            return []
        else:
            self._live_version = live.version
            shown = {"turn": live.turn_id, "html": await _rendered(live.text)}
            self.due = min(self.due, time.monotonic() + _LIVE_SECONDS)
        if shown == self._live or (self._live is None and shown["turn"] is None):
            return []
        self._live = shown
        return [Event("live", shown)]

    def _notice(self, notice: Notice) -> Event:
        self._noticed = notice.number
        return Event("notice", notice_shown(notice))

    async def _sessions(self) -> list[Event]:
        now = time.monotonic()
        if now - self._list_at < _LIST_SECONDS:
            self.due = min(self.due, self._list_at + _LIST_SECONDS)
            return []
        self._list_at = now
        rows = await self._facade.db.list_sessions(limit=_LIST_ROWS, visible_to=await self._facade.visibility())
        listed = [(row["id"], row["title"], row["last_active"], row["preview"]) for row in rows]
        if listed == self._list:
            return []
        self._list = listed
        return [Event("sessions", {})]


def notice_shown(notice: Notice) -> Shown:
    """A notice as the page shows it."""
    return {
        "number": notice.number,
        "html": markdown(notice.text),
        "time": notice.at,
        "reply_to": notice.reply_to,
        "goto": notice.goto,
    }


def _answered_turn(rows: list[MessageRow]) -> str | None:
    """The turn whose final answer is among `rows`."""
    finals = [row["turn_id"] for row in rows if row["role"] == "assistant" and not row["tool_calls"]]
    return finals[-1] if finals else None


async def _rendered(text: str) -> str:
    if len(text) <= _INLINE:
        return markdown(text)
    return await anyio.to_thread.run_sync(markdown, text)
