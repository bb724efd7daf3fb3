"""An answer that is made piece by piece, in a hall whose account can edit: what its tests share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from config import Settings
from gateway import streaming
from gateway.agents.base import AgentContext, AgentEvent, Final, TextDelta, ToolCalls, ToolResult
from session_store import SessionDB
from tests.unit.gateway_core.fakes import EditingAdapter, FakeAgent
from tests.unit.gateway_core.hall import Hall

__all__ = ["MORE", "Script", "adapter", "at_once", "counted", "ended", "hall", "is_so", "script", "stands"]

MORE = " …"


class Script:
    """An agent's answer, piece by piece: `say` adds one, `end` ends it; `begun` is set when it is asked."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[AgentEvent] = asyncio.Queue()
        self.begun = asyncio.Event()

    def say(self, text: str) -> None:
        """A piece of text."""
        self._events.put_nowait(TextDelta(text))

    def use(self, text: str | None = None) -> None:
        """A tool call."""
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        self._events.put_nowait(ToolCalls([call], text))
        self._events.put_nowait(ToolResult("c1", "look", "{}"))

    def end(self, text: str) -> None:
        """The whole answer."""
        self._events.put_nowait(Final(text))

    async def play(self, _context: AgentContext) -> AsyncIterator[AgentEvent]:
        """What the agent does."""
        self.begun.set()
        while True:
            happened = await self._events.get()
            yield happened
            if isinstance(happened, Final):
                return


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes a while is shown without waiting for it."""
    monkeypatch.setattr(streaming, "START_SECONDS", 0.0)
    monkeypatch.setattr(streaming, "LOOK_SECONDS", 0.02)


@pytest.fixture
def script(agent: FakeAgent) -> Script:
    """What the hall's agent plays."""
    made = Script()
    agent.play = made.play
    return made


@pytest.fixture
def adapter() -> EditingAdapter:
    """The account."""
    return EditingAdapter()


@pytest.fixture
async def hall(db: SessionDB, agent: FakeAgent, chosen: Settings, adapter: EditingAdapter) -> AsyncIterator[Hall]:
    """A hall whose account can edit."""
    async with Hall.open(db, agent, chosen, adapter) as opened:
        yield opened


async def stands(hall: Hall, adapter: EditingAdapter, *texts: str) -> None:
    """Until the chat shows exactly this."""

    async def there() -> bool:
        return list(adapter.shown.values()) == list(texts)

    await hall.until(there)


def is_so(look: Callable[[], Any]) -> Callable[[], Awaitable[Any]]:
    """A look, to be awaited."""

    async def looked() -> Any:
        return look()

    return looked


async def ended(hall: Hall) -> bool:
    """Whether no turn runs."""
    return (await hall.db.inbox.counts())["taken"] == 0


def counted(hall: Hall, state: str, count: int) -> Callable[[], Awaitable[bool]]:
    """A look, to be awaited: whether so many parts are in this state."""

    async def looked() -> bool:
        return (await hall.db.outbox.counts()).get(state, 0) == count

    return looked
