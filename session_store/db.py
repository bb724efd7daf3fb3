"""`SessionDB`: the whole store behind one name.

Contract: `async with SessionDB(path) as db:`. The documented operations on sessions, messages and search are methods;
what they do not name is grouped (`db.inbox`, `db.turns`, ...). Any number of processes may open one file, and any
number of `SessionDB` in one process. Every method waits for the commit and may be called from many tasks at once.
Failure: all errors derive from `StoreError`. Limits: asyncio only, and each object belongs to the loop that opened it.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

from session_store.attachments import Attachments
from session_store.audit import Audit
from session_store.autotitle import AutomaticTitles
from session_store.binding import Bindings
from session_store.busy import Busy
from session_store.changed import Changed
from session_store.changes import Changes
from session_store.compress import Compressions
from session_store.control import Control
from session_store.effects import Effects
from session_store.engine import StoreEngine
from session_store.handoffs import Handoffs
from session_store.health import Health
from session_store.holding import Holding
from session_store.homes import HomePlaces
from session_store.inbox import Inbox
from session_store.links import Links
from session_store.messages import Messages
from session_store.moves import Moves
from session_store.outbox import Outbox
from session_store.pairing import Pairing
from session_store.people import People
from session_store.place_history import PlaceHistory
from session_store.places import Places
from session_store.presence import Presence
from session_store.processes import Processes
from session_store.reindex import Reindexing
from session_store.routes import Routes
from session_store.search import Search
from session_store.sessions import Sessions
from session_store.shown import Shown
from session_store.surroundings import Surroundings
from session_store.turns import Turns
from session_store.unreadable import UnreadableEvents
from session_store.usage import UsageLog

__all__ = ["SessionDB"]


class SessionDB(Sessions, Messages, Surroundings, Search, Reindexing, Effects):
    """The durable session store of one home.

    db_path: the database file; None means `$THREADLINE_HOME/state.db`, else `~/.threadline/state.db`.
    redact: secrets in what people, agents and tools write are replaced before it is stored (see redaction.py).
    """

    def __init__(self, db_path: str | os.PathLike[str] | None = None, *, redact: bool = False) -> None:
        engine = StoreEngine(db_path, redact=redact)
        super().__init__(engine)
        self._store = engine
        self.inbox = Inbox(engine)
        self.outbox = Outbox(engine)
        self.routes = Routes(engine)
        self.turns = Turns(engine)
        self.people = People(engine)
        self.pairing = Pairing(engine)
        self.places = Places(engine)
        self.moves = Moves(engine)
        self.changed = Changed(engine)
        self.unreadable = UnreadableEvents(engine)
        self.processes = Processes(engine)
        self.control = Control(engine)
        self.attachments = Attachments(engine, db_path)
        self.presence = Presence(engine)
        self.automatic_titles = AutomaticTitles(engine)
        self.audit = Audit(engine)
        self.busy = Busy(engine)
        self.holding = Holding(engine)
        self.compressions = Compressions(engine)
        self.health = Health(engine)
        self.usage = UsageLog(engine)
        self.handoffs = Handoffs(engine)
        self.bindings = Bindings(engine)
        self.home_places = HomePlaces(engine)
        self.place_history = PlaceHistory(engine)
        self.links = Links(engine)
        self.shown = Shown(engine)

    @property
    def changes(self) -> Changes:
        """Who wants to know of commits, by this process or another one, waits here."""
        return self._store.changes

    async def open(self) -> Self:
        """Open or create the database; `async with` does this. Pair it with `close`, also after a failure."""
        await self._store.open()
        return self

    async def close(self) -> None:
        """Commit what was submitted and close everything. Safe to repeat."""
        await self._store.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
