"""Names for conversations that nobody has named, after their first exchange.

Contract: `consider` is called when an answer is stored and returns at once; the title is made in the background by the
agent, where it can, else from the words of the first question. A title that somebody gave stays. Whatever goes wrong,
no turn is delayed by it or fails: an agent that cannot or takes longer than `AGENT_SECONDS` leaves it to the words, a
store that cannot be written leaves it to the next answer. When the process leaves, what is open is named by its words.
Limits: `MAX_OPEN` conversations at a time, `AT_ONCE` of them with the agent; more wait for their next answer.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import anyio
import structlog

from gateway.agents.base import AgentError, Titling
from gateway.headline import headline, tidied
from session_store import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.agents.base import Agent
    from session_store import SessionDB

__all__ = ["AGENT_SECONDS", "Titler"]

AGENT_SECONDS = 20.0
AT_ONCE = 2
MAX_OPEN = 256
MAX_KNOWN = 2_000
LEAVING_SECONDS = 2.0

_log = structlog.get_logger(__name__)


class Titler:
    """Names the conversations of one process. Nothing is named before `run` runs."""

    def __init__(self, db: SessionDB, agent: Agent) -> None:
        self._db = db
        self._agent = agent if isinstance(agent, Titling) else None
        self._waiting: list[str] = []
        self._open: set[str] = set()
        # Conversations that need no title; they are not looked at again.
        self._known: OrderedDict[str, None] = OrderedDict()
        self._news = anyio.Event()

    def consider(self, session_id: str) -> None:
        """An answer was stored in this session."""
        if session_id in self._known or session_id in self._open or len(self._open) >= MAX_OPEN:
            return
        self._open.add(session_id)
        self._waiting.append(session_id)
        self._news.set()

    async def run(self) -> None:
        """Name conversations until cancelled."""
        at_once = anyio.CapacityLimiter(AT_ONCE)
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    await self._news.wait()
                    self._news = anyio.Event()
                    waiting, self._waiting = self._waiting, []
                    for session_id in waiting:
                        tasks.start_soon(self._name, session_id, at_once)
        finally:
            with anyio.move_on_after(LEAVING_SECONDS, shield=True):
                for session_id in list(self._open):
                    await self._by_words(session_id)

    async def _name(self, session_id: str, at_once: anyio.CapacityLimiter) -> None:
        async with at_once:
            try:
                exchange = await self._db.automatic_titles.first_exchange(session_id)
                if exchange is not None:
                    await self._give(session_id, await self._written(session_id, exchange) or _words(exchange))
            except StoreError as error:
                _log.warning("no_title_yet", session=session_id, error=str(error))
            else:
                self._settle(session_id)
            self._open.discard(session_id)

    async def _by_words(self, session_id: str) -> None:
        """Name a conversation at once."""
        try:
            exchange = await self._db.automatic_titles.first_exchange(session_id)
            if exchange is not None:
                await self._give(session_id, _words(exchange))
        except StoreError as error:
            _log.warning("no_title_yet", session=session_id, error=str(error))
        self._open.discard(session_id)

    async def _written(self, session_id: str, exchange: Sequence[Mapping[str, Any]]) -> str:
        """The agent's title, '' when it has none."""
        if self._agent is None:
            return ""
        try:
            with anyio.fail_after(AGENT_SECONDS):
                written = await self._agent.title(exchange)
        except (AgentError, TimeoutError) as error:
            _log.info("title_by_words", session=session_id, error=str(error) or "it took too long")
            return ""
        except Exception:  # noqa: BLE001 - see below
            # An agent is foreign code: whatever it raises costs it the title and nothing else.
            _log.exception("title_failed", session=session_id)
            return ""
        if written is None:
            return ""
        await self._db.usage.record(session_id, written.usage, "title")
        return tidied(written.text)

    async def _give(self, session_id: str, title: str) -> None:
        if title:
            await self._db.automatic_titles.give(session_id, title)

    def _settle(self, session_id: str) -> None:
        self._known[session_id] = None
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)


def _words(exchange: Sequence[Mapping[str, Any]]) -> str:
    return headline(str(exchange[0]["content"]))
