"""A claimed turn while it is worked: what it is, what has been heard of it, why it was cancelled."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from session_store import NewMessage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapters.base import Place
    from gateway.agents.base import Reasoning
    from session_store import Claim, Fence, Usage, Visibility

__all__ = ["End", "Running", "Work", "assistant_message"]

#: An agent of which nothing is heard for so long hangs.
SILENCE_LIMIT_SECONDS = 600.0


class End(enum.Enum):
    """Why a running turn was cancelled from outside."""

    STOPPED = "stopped"
    NEWER = "interrupted by a newer message"
    SHUTDOWN = "shutdown"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed turn and where its answer goes. reply_to: platform id of the message that is answered.

    whole: set once the agent has given the whole answer, be it stored or not.
    """

    claim: Claim
    place: Place
    text: str
    visible_to: Visibility
    reply_to: str | None = None
    whole: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True)
class Running:
    """A turn that runs now.

    session_id: where its messages go. limit: when its time is over. said: the pieces of text since the last stored
    step; shown: their beginning; earlier: what was said before that step. over: its end has come; what its agent still
    does must go nowhere. spent: what its calls of a model cost, as far as it is not stored yet.
    """

    fence: Fence
    session_id: str
    scope: anyio.CancelScope
    limit: float
    end: End | None = None
    said: list[str] = field(default_factory=list)
    shown: str = ""
    earlier: str = ""
    steps: int = 0
    spent: list[Usage] = field(default_factory=list)
    over: bool = False

    @property
    def last_said(self) -> str:
        """What was said last, whether or not a step was stored since."""
        return "".join(self.said) or self.earlier

    def heard(self) -> None:
        """The agent gave a sign of life."""
        self.scope.deadline = min(self.limit, anyio.current_time() + SILENCE_LIMIT_SECONDS)

    def cancel(self, end: End) -> None:
        """Stop the agent; the first reason counts."""
        self.end = self.end or end
        self.scope.cancel()


def assistant_message(
    text: str | None,
    *,
    op_id: str,
    finish_reason: str,
    reasoning: Reasoning | None = None,
    calls: Sequence[Mapping[str, Any]] | None = None,
) -> NewMessage:
    """What an agent said, as the store takes it."""
    return NewMessage(
        "assistant",
        text,
        tool_calls=calls,
        finish_reason=finish_reason,
        reasoning=reasoning.text if reasoning else None,
        op_id=op_id,
        reasoning_content=reasoning.content if reasoning else None,
        reasoning_details=reasoning.details if reasoning else None,
    )
