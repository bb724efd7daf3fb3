"""What lies between the chat and the keys: the state that a front draws, and what it must be able to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Front", "Listener", "State"]


@dataclass(frozen=True, slots=True)
class State:
    """What stands between the transcript and the prompt.

    queue: messages that were sent and whose turn has not begun, oldest first. running: whether an answer is made;
    elsewhere: by another process. place: where one is, in a few words.
    """

    queue: tuple[str, ...] = ()
    running: bool = False
    elsewhere: bool = False
    place: str = ""


class Listener(Protocol):
    """Whom a front tells what the person does; it asks back for what it draws."""

    @property
    def state(self) -> State:
        """What to draw above the prompt."""
        ...

    @property
    def commands(self) -> Sequence[tuple[str, str]]:
        """Name and summary of each slash command."""
        ...

    @property
    def past(self) -> Sequence[str]:
        """What the person said earlier in this session, oldest first."""
        ...

    def growing(self) -> str:
        """The unfinished answer as it stands at this moment, '' when there is none."""
        ...

    def submit(self, text: str) -> None:
        """The person sent this."""
        ...

    def interrupt(self) -> None:
        """The person pressed Ctrl-C."""
        ...

    async def idle(self) -> None:
        """Return when everything that was sent is answered and shown."""
        ...


class Front(Protocol):
    """What reads the keys and draws the prompt. echoes: whether what was sent stays on the screen as it was typed."""

    echoes: bool

    async def run(self, listener: Listener) -> None:
        """Read until the person leaves or `leave` is called; the terminal is as before then."""

    async def show(self, draw: Callable[[], None]) -> None:
        """Have something printed above the prompt."""

    def refresh(self) -> None:
        """The state or the growing answer changed."""

    def offer(self, text: str) -> None:
        """Give a text back to the person."""

    def leave(self) -> None:
        """End `run` at once."""
