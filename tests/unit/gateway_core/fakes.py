"""An adapter and an agent that do what a test says, and notes of what they were asked."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adapters.base import (
    AdapterState,
    Capabilities,
    ChatType,
    Deliver,
    InboundMessage,
    OutboundPart,
    Place,
    Receipt,
    Refused,
    Sender,
)
from gateway.agents.base import AgentContext, AgentEvent, Final, SummaryRequest, Written

__all__ = ["PART", "EditingAdapter", "FakeAdapter", "FakeAgent", "Sent", "event"]

#: Between the parts of an answer, as the fake adapter splits it.
PART = "¶"
_NUMBERS = itertools.count(1000)


@dataclass(frozen=True, slots=True)
class Sent:
    """A part that the platform took."""

    place: Place
    text: str
    reply_to: str | None
    key: str | None


@dataclass
class FakeAdapter:
    """One account. `outcomes`: what the next sends come to: an error to raise, or a receipt; then receipts of its own.

    threads: what the next threads come to.
    `gate`: closed, sends wait in `sending`. `starts`: what the next starts raise, None for success.
    """

    platform: str = "telegram"
    account: str = "main"
    state: AdapterState = AdapterState.STOPPED
    problem: str | None = None
    sent: list[Sent] = field(default_factory=list)
    tried: list[Sent] = field(default_factory=list)
    outcomes: deque[Exception | Receipt] = field(default_factory=deque)
    starts: deque[Exception | None] = field(default_factory=deque)
    threads: deque[Exception | str] = field(default_factory=deque)
    titles: list[str] = field(default_factory=list)
    started: int = 0
    stopped: int = 0
    typed: list[Place] = field(default_factory=list)
    deliver: Deliver | None = None
    sending: int = 0
    most_sending: int = 0
    unrenderable: str = ""

    def __post_init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.capabilities = Capabilities(
            max_length=100, length_unit="utf16", threads=True, idempotent_send=False, typing=True, edits=False
        )

    async def start(self, deliver: Deliver) -> None:
        """Start, or fail as the test says."""
        self.started += 1
        await asyncio.sleep(0)
        outcome = self.starts.popleft() if self.starts else None
        if outcome is not None:
            raise outcome
        self.deliver = deliver
        self.state = AdapterState.CONNECTED

    async def stop(self) -> None:
        """Stop; sends under way are let go."""
        self.stopped += 1
        self.gate.set()
        await asyncio.sleep(0)
        self.state = AdapterState.STOPPED

    def render(self, markdown: str) -> Sequence[OutboundPart]:
        """One part for each piece between the marks."""
        if self.unrenderable and self.unrenderable in markdown:
            msg = "no form for this"
            raise ValueError(msg)
        return [OutboundPart(piece, {"form": piece.upper()}) for piece in markdown.split(PART) if piece]

    async def send(self, place: Place, part: OutboundPart) -> Receipt:
        """Come to the next outcome."""
        one = Sent(place, part.plain, part.reply_to, part.idempotency_key)
        self.tried.append(one)
        self.sending += 1
        self.most_sending = max(self.most_sending, self.sending)
        try:
            await self.gate.wait()
        finally:
            self.sending -= 1
        outcome = self.outcomes.popleft() if self.outcomes else Receipt(str(next(_NUMBERS)))
        if isinstance(outcome, Exception):
            raise outcome
        self.sent.append(one)
        return outcome

    async def typing(self, place: Place) -> None:
        """Note it."""
        self.typed.append(place)
        await asyncio.sleep(0)

    async def open_thread(self, place: Place, title: str) -> Place:
        """Come to the next outcome."""
        self.titles.append(title)
        await self.gate.wait()
        outcome = self.threads.popleft() if self.threads else str(next(_NUMBERS))
        if isinstance(outcome, Exception):
            raise outcome
        return replace(place, thread=outcome)

    @property
    def texts(self) -> list[str]:
        """What was sent, in order."""
        return [one.text for one in self.sent]


@dataclass
class EditingAdapter(FakeAdapter):
    """An account that can change its messages. `shown`: what stands there now, by message id.

    `edits`: what the next edits come to: an error to raise, or None for success; then success. `edit_gate`: closed,
    edits wait in `editing`.
    """

    shown: dict[str, str] = field(default_factory=dict)
    edited: list[tuple[str, str]] = field(default_factory=list)
    edits: deque[Exception | None] = field(default_factory=deque)
    editing: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.edit_gate = asyncio.Event()
        self.edit_gate.set()
        self.capabilities = replace(self.capabilities, edits=True)

    async def send(self, place: Place, part: OutboundPart) -> Receipt:
        """Come to the next outcome, and keep what stands there."""
        receipt = await super().send(place, part)
        self.shown[receipt.message_id] = part.plain
        return receipt

    async def edit(self, _place: Place, message_id: str, part: OutboundPart) -> None:
        """Come to the next outcome."""
        self.editing += 1
        try:
            await self.edit_gate.wait()
        finally:
            self.editing -= 1
        outcome = self.edits.popleft() if self.edits else None
        if outcome is not None:
            raise outcome
        if message_id not in self.shown:
            raise Refused("message gone")
        self.shown[message_id] = part.plain
        self.edited.append((message_id, part.plain))

    def edit_pause(self, _place: Place) -> float:
        """As good as none."""
        return 0.01


Play = Callable[[AgentContext], AsyncIterator[AgentEvent]]


async def _echo(context: AgentContext) -> AsyncIterator[AgentEvent]:
    await asyncio.sleep(0)
    yield Final(f"re: {context.text}")


async def _counted(request: SummaryRequest) -> Written:
    await asyncio.sleep(0)
    return Written(f"{len(request.history)} messages about {request.focus or 'anything'}")


class FakeAgent:
    """Plays what the test says; by itself it answers `re: ` and the text. `asked`: the contexts, in order.

    `sum_up`: its summaries; `summarized`: what for, in order.
    """

    def __init__(self) -> None:
        self.model = "fake"
        self.sum_up: Callable[[SummaryRequest], Awaitable[Written]] = _counted
        self.summarized: list[SummaryRequest] = []
        self.play: Play = _echo
        self.asked: list[AgentContext] = []
        self.now = 0
        self.most = 0

    @property
    def texts(self) -> list[str]:
        """What it was asked, in order."""
        return [context.text for context in self.asked]

    async def run(self, context: AgentContext) -> AsyncIterator[AgentEvent]:
        """Play."""
        self.asked.append(context)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            async for happened in self.play(context):
                yield happened
        finally:
            self.now -= 1

    async def summarize(self, request: SummaryRequest) -> Written:
        """Sum up as the test says; by itself it counts the messages."""
        self.summarized.append(request)
        return await self.sum_up(request)


def event(  # noqa: PLR0913 - what an event can be, by name
    text: str,
    *,
    chat: str = "42",
    chat_type: ChatType = "dm",
    thread: str = "",
    user: str | None = "42",
    number: int | None = None,
    at: float | None = None,
    account: str = "main",
    addressed: bool = True,
    is_bot: bool = False,
    name: str = "Ann",
    **more: Any,
) -> InboundMessage:
    """One event, as an adapter would tell it."""
    message_id = str(next(_NUMBERS) if number is None else number)
    given: dict[str, Any] = {
        "dedupe_key": f"m:{chat}:{message_id}",
        "kind": "command" if text.startswith("/") else "message",
        "received_at": time.time() if at is None else at,
    }
    return InboundMessage(
        place=Place("telegram", account, chat_type, chat, thread),
        sender=Sender(user, name, is_bot=is_bot),
        text=text,
        message_id=message_id,
        addressed=addressed,
        **given | more,
    )
