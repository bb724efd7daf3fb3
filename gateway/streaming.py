"""Answers shown while they are made, in places where the account can change what it has sent.

Contract: only decoration. When the text of a running turn is not finished after `START_SECONDS`, its beginning is
stored in the outbox and goes out like any part; then the message is edited as the text grows, no more often than the
platform puts up with. The end of the turn is written without regard to this, and delivery puts the whole answer in the
message's place after `end`, when no edit of ours is under way any more. A turn that is run again goes on with the
message that is there. What is shown ends with an ellipsis until it is whole, and is at most one part long.
Failure: a wait that the platform asks for pauses only this; a message that cannot be edited, or a store that fails,
ends it for this turn, and the answer comes whole.
Limits: turns of this process in places of its own accounts; `EDITS_AT_ONCE` edits at a time and about
`EDITS_PER_SECOND` per account, so that sends are never crowded out.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import anyio
import anyio.to_thread
import structlog

from adapters.base import Adapter, Edits, RetryLater, SendError, UnknownOutcome
from gateway.outgoing import closed, reset_notice
from gateway.places import place_ref
from session_store import FenceLost, NewOutbox, RenderedPart, StoreError

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from adapters.base import OutboundPart, Place
    from gateway.live import LiveFeed
    from gateway.work import Work
    from session_store import Fence, SessionDB

__all__ = ["START_SECONDS", "Streaming"]

#: An answer that is whole so soon after its first word is posted at once.
START_SECONDS = 1.5
#: How often it is looked whether what waits for a place has gone out.
LOOK_SECONDS = 1.0
EDITS_AT_ONCE = 2
EDITS_PER_SECOND = 10.0
#: Formatting a longer text takes long enough to be felt by everything else on the event loop.
LONG_TEXT = 2_000
UNFINISHED = " …"

Account: TypeAlias = tuple[str, str]

_log = structlog.get_logger(__name__)


@dataclass(eq=False, slots=True)
class _Show:
    """One turn's answer while it is made. said: the newest text that was not empty. message_id: once it is posted.

    edits: the adapter once more, as what can edit.
    """

    work: Work
    fence: Fence
    session_id: str
    adapter: Adapter
    edits: Edits
    said: str = ""
    message_id: str | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)
    done: anyio.Event = field(default_factory=anyio.Event)
    changed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def place(self) -> Place:
        """Where it is shown."""
        return self.work.place

    def wake(self) -> None:
        """Something is new."""
        self.changed.set()

    def end(self) -> None:
        """Begin nothing more."""
        self.ended.set()
        self.changed.set()

    async def news(self) -> bool:
        """Wait until something is new; False once it is to end."""
        await self.changed.wait()
        self.changed = anyio.Event()
        return not self.ended.is_set()

    async def pause(self, seconds: float) -> bool:
        """Wait; False once it is to end."""
        with anyio.move_on_after(seconds):
            await self.ended.wait()
        return not self.ended.is_set()


class Streaming:
    """Shows the answers of the turns of one process, through the accounts that it owns."""

    def __init__(self, db: SessionDB, live: LiveFeed, adapters: Mapping[Account, Adapter]) -> None:
        self._db = db
        self._live = live
        self._adapters = adapters
        self._editors = {account: adapter for account, adapter in adapters.items() if isinstance(adapter, Edits)}
        self._shows: dict[str, _Show] = {}
        self._editing: dict[Account, int] = {}
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Show answers until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                await anyio.sleep_forever()
            finally:
                self._tasks = None

    @contextlib.contextmanager
    def showing(self, work: Work) -> Iterator[None]:
        """Show the answer of a claimed turn that is worked inside the context, where it can be shown."""
        show = self._show_of(work)
        if show is None or self._tasks is None:
            yield
            return
        turn_id = show.fence.turn_id
        self._shows[turn_id] = show
        self._tasks.start_soon(self._run, show)
        try:
            yield
        finally:
            show.end()

    def posted(self, turn_id: str, message_id: str | None) -> None:
        """Tell that the beginning of a turn's answer was sent. None: somewhere else, where it is not to be edited."""
        show = self._shows.get(turn_id)
        if show is not None:
            show.message_id = message_id
            if message_id is None:
                show.end()
            show.wake()

    async def end(self, turn_id: str) -> None:
        """Show no more of a turn; returns when no edit of its message is under way."""
        show = self._shows.get(turn_id)
        if show is not None:
            show.end()
            await show.done.wait()

    def _show_of(self, work: Work) -> _Show | None:
        account = work.place.platform, work.place.account
        editor = self._editors.get(account)
        fence, session_id = work.claim.fence, work.claim.session_id
        if fence is None or session_id is None or fence.turn_id in self._shows or editor is None:
            return None
        return _Show(work, fence, session_id, self._adapters[account], editor)

    async def _run(self, show: _Show) -> None:
        try:
            with self._live.subscribe(show.session_id, show.wake):
                await self._follow(show)
        except FenceLost:
            _log.debug("answer_not_shown", turn=show.fence.turn_id)
        except StoreError as error:
            _log.warning("answer_not_shown", turn=show.fence.turn_id, error=str(error))
        except Exception:  # noqa: BLE001 - decoration: no failure of it may reach a turn
            _log.exception("answer_not_shown", turn=show.fence.turn_id)
        finally:
            del self._shows[show.fence.turn_id]
            show.done.set()

    async def _follow(self, show: _Show) -> None:
        while not self._text(show):
            if not await show.news():
                return
        # What is whole only has to be stored; a store that takes its time needs no further work.
        if await show.pause(START_SECONDS) and not show.work.whole.is_set() and await self._begin(show):
            await self._grow(show)

    async def _grow(self, show: _Show) -> None:
        """Edit the message as the text grows."""
        shown: OutboundPart | None = None
        while await show.pause(self._pause(show)) and not show.work.whole.is_set():
            part = await self._part(show)
            if part == shown:
                if not await show.news():
                    return
                continue
            try:
                if await self._edit(show, part):
                    shown = part
            except RetryLater as error:
                await show.pause(error.delay)
            except UnknownOutcome as error:
                _log.info("edit_unknown", turn=show.fence.turn_id, error=str(error))
            except SendError as error:
                _log.info("edit_refused", turn=show.fence.turn_id, error=str(error))
                return

    async def _begin(self, show: _Show) -> bool:
        """Have the beginning posted; True once it is, False when there is nothing to be edited."""
        place = place_ref(show.place)
        row = NewOutbox(place, "answer", "", None if show.place.private else show.work.reply_to)
        reset = reset_notice(show.work)
        while True:
            part = await self._part(show)
            rendered = RenderedPart(part.plain, json.dumps(part.payload, ensure_ascii=False))
            begun = await self._db.shown.begin(show.fence, row, rendered, () if reset is None else (reset,))
            if begun is not None:
                break
            if not await show.pause(LOOK_SECONDS) or show.work.whole.is_set():
                return False
        if not begun.open:
            return False
        show.message_id = show.message_id or begun.message_id
        while show.message_id is None:
            if not await show.news():
                return False
        return True

    async def _edit(self, show: _Show, part: OutboundPart) -> bool:
        """Edit the message; False when the account is busy with other edits."""
        account = show.place.platform, show.place.account
        busy = self._editing.get(account, 0)
        if busy >= EDITS_AT_ONCE or show.message_id is None or show.ended.is_set():
            return False
        self._editing[account] = busy + 1
        try:
            await show.edits.edit(show.place, show.message_id, part)
        finally:
            self._editing[account] -= 1
        return True

    def _pause(self, show: _Show) -> float:
        account = show.place.platform, show.place.account
        others = sum((other.place.platform, other.place.account) == account for other in self._shows.values())
        return max(show.edits.edit_pause(show.place), others / EDITS_PER_SECOND)

    def _text(self, show: _Show) -> str:
        """The newest text; what was said before a step stays until something else is said."""
        live = self._live.text(show.session_id)
        if live is not None and live.turn_id == show.fence.turn_id and live.text.strip():
            show.said = live.text
        return show.said

    async def _part(self, show: _Show) -> OutboundPart:
        """The first part of what is there, as it is sent."""
        text = closed(self._text(show)[: show.adapter.capabilities.max_length]) + UNFINISHED
        if len(text) > LONG_TEXT:
            return (await anyio.to_thread.run_sync(show.adapter.render, text))[0]
        return show.adapter.render(text)[0]
