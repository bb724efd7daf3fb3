"""A claimed turn while it is worked: what it is, what has been heard of it, why it was cancelled."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from adapters.base import Place
    from session_store import Claim, Fence, Visibility

__all__ = ["End", "Running", "Work"]

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
    """A claimed turn and where its answer goes. reply_to: platform id of the message that is answered."""

    claim: Claim
    place: Place
    text: str
    visible_to: Visibility
    reply_to: str | None = None


@dataclass(slots=True)
class Running:
    """A turn that runs now.

    session_id: where its messages go. limit: when its time is over. said: the pieces of text since the last stored
    step; shown: their beginning. over: its end has come; what its agent still does must go nowhere.
    """

    fence: Fence
    session_id: str
    scope: anyio.CancelScope
    limit: float
    end: End | None = None
    said: list[str] = field(default_factory=list)
    shown: str = ""
    steps: int = 0
    over: bool = False

    def heard(self) -> None:
        """The agent gave a sign of life."""
        self.scope.deadline = min(self.limit, anyio.current_time() + SILENCE_LIMIT_SECONDS)

    def cancel(self, end: End) -> None:
        """Stop the agent; the first reason counts."""
        self.end = self.end or end
        self.scope.cancel()
