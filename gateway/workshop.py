"""The parts that every process which runs turns needs, put together once: terminal and gateway alike.

`Workshop` holds the agent, the router, the runner, the commands and the desk for one process of a home.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gateway.agents import make_agent
from gateway.agents.base import Sparing, Steerable
from gateway.attachments import Collector
from gateway.commands import default_registry
from gateway.compression import Compressor
from gateway.context import Contexts
from gateway.counter import Counter
from gateway.desk import Desk
from gateway.holding import Grip
from gateway.live import LiveFeed
from gateway.router import Router
from gateway.streaming import Streaming
from gateway.titles import Titler
from gateway.turns import TurnRunner

if TYPE_CHECKING:
    from adapters.base import Adapter
    from config import Settings
    from gateway.signs import Typing
    from session_store import SessionDB

__all__ = ["Workshop"]


class Workshop:
    """One process's means to work turns. `holder` is its token in the store.

    adapters: of the accounts that this process owns; files that come with messages are fetched through them, and while
    `streaming` runs, answers are shown there as they are made.
    steering: whether running turns take in what is said meanwhile.
    """

    def __init__(
        self,
        settings: Settings,
        db: SessionDB,
        holder: str,
        *,
        typing: Typing | None = None,
        adapters: Mapping[tuple[str, str], Adapter] | None = None,
    ) -> None:
        self.settings = settings
        self.db = db
        self.holder = holder
        self.agent = make_agent(settings)
        self.live = LiveFeed()
        self.commands = default_registry()
        self.router = Router(settings, db, self.agent)
        self.steering = settings.busy == "steer" and isinstance(self.agent, Steerable) and self.agent.steerable
        history = not isinstance(self.agent, Sparing) or self.agent.needs_history
        self.contexts = Contexts(db, limit=settings.agent.context_tokens, zone=self.router.zone, history=history)
        self.runner = TurnRunner(db, self.agent, self.live, self.contexts, steering=self.steering)
        self.titler = Titler(db, self.agent)
        self.streaming = Streaming(db, self.live, adapters or {})
        self.grip = Grip(db, holder)
        # What the agent is not shown has no size that anything could be saved of.
        threshold = settings.compression.threshold if history else 0
        self.compressor = Compressor(db, self.agent, self.contexts, self.grip, self.live, threshold=threshold)
        self.counter = Counter(db, self.router, self.commands, self.contexts, self.compressor, self.grip, self.live)
        collector = Collector(db, adapters or {}, settings)
        self.desk = Desk(
            db,
            self.router,
            self.runner,
            self.commands,
            holder,
            counter=self.counter,
            compressor=self.compressor,
            collector=collector,
            titler=self.titler,
            streaming=self.streaming,
            typing=typing,
            merge_window=settings.merge_window,
        )

    @classmethod
    async def prepare(
        cls,
        settings: Settings,
        db: SessionDB,
        holder: str,
        *,
        typing: Typing | None = None,
        adapters: Mapping[tuple[str, str], Adapter] | None = None,
    ) -> Workshop:
        """Make the workshop and bring the people of the configuration into the store."""
        await db.people.sync_config(settings.owner.as_mapping(), settings.people_as_mapping())
        return cls(settings, db, holder, typing=typing, adapters=adapters)
