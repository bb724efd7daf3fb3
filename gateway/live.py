"""Live text of turns that run in this process, for entrances that show an answer while it is made.

Contract: the worker of a turn calls `publish`, `finish` and `notice`; none of them waits or fails. A reader
subscribes to one session, is woken when something changed, and reads the *state*, never a queue of pieces: a slow
reader sees fewer, larger steps, and nothing grows with its slowness. Nothing here is durable. What a person must not
lose is in the store before it is told here, and `finish` follows the commit of the answer.
Limits: one event loop; at most `MAX_TURNS` live turns, `MAX_TEXT` characters of one answer (the stored answer is always
whole), `MAX_NOTICES` notices of each of `MAX_NOTICE_SESSIONS` sessions.
"""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = [
    "MAX_NOTICES",
    "MAX_NOTICE_SESSIONS",
    "MAX_TEXT",
    "MAX_TURNS",
    "LiveFeed",
    "LiveText",
    "Notice",
    "Wake",
]

MAX_TURNS = 256
MAX_TEXT = 200_000
MAX_NOTICES = 20
MAX_NOTICE_SESSIONS = 200

Wake = Callable[[], None]


@dataclass(frozen=True, slots=True)
class LiveText:
    """An unfinished answer: what its turn said since its last stored message. version grows with every change."""

    turn_id: str
    text: str
    version: int


@dataclass(frozen=True, slots=True)
class Notice:
    """What a command or the gateway itself says in a session; shown, not part of the transcript.

    number: grows over all notices of this process. reply_to: the client id of the command that it answers, or None.
    goto: the session that the page should show now (after `/new`), or None. at: Unix seconds.
    """

    number: int
    text: str
    at: float
    reply_to: str | None = None
    goto: str | None = None


class LiveFeed:
    """The feed of one process. All methods belong to its event loop."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, LiveText] = OrderedDict()
        self._notices: OrderedDict[str, deque[Notice]] = OrderedDict()
        self._wakes: defaultdict[str, list[Wake]] = defaultdict(list)
        self._version = 0

    def publish(self, session_id: str, turn_id: str, text_so_far: str) -> None:
        """Show `text_so_far` as the unfinished answer of `turn_id`.

        "" right after a step was stored says that nothing is unfinished; the turn stays live.
        """
        self._turns[session_id] = LiveText(turn_id, text_so_far[:MAX_TEXT], self._next())
        self._turns.move_to_end(session_id)
        while len(self._turns) > MAX_TURNS:
            self._turns.popitem(last=False)
        self._wake(session_id)

    def finish(self, session_id: str, turn_id: str) -> None:
        """The turn is over, however it ended. A turn that is not live is ignored."""
        turn = self._turns.get(session_id)
        if turn is not None and turn.turn_id == turn_id:
            del self._turns[session_id]
            self._wake(session_id)

    def notice(self, session_id: str, text: str, *, reply_to: str | None = None, goto: str | None = None) -> None:
        """Show `text` (Markdown) in a session. The same `reply_to` again replaces the earlier notice."""
        kept = self._notices.setdefault(session_id, deque(maxlen=MAX_NOTICES))
        self._notices.move_to_end(session_id)
        while len(self._notices) > MAX_NOTICE_SESSIONS:
            self._notices.popitem(last=False)
        earlier = next((n for n in kept if reply_to is not None and n.reply_to == reply_to), None)
        if earlier is not None:
            kept.remove(earlier)
        kept.append(Notice(self._next(), text, time.time(), reply_to, goto))
        self._wake(session_id)

    def text(self, session_id: str) -> LiveText | None:
        """The unfinished answer in this session now, or None."""
        return self._turns.get(session_id)

    def notices(self, session_id: str, after: int = 0) -> list[Notice]:
        """Notices of this session with a number above `after`, oldest first."""
        return [notice for notice in self._notices.get(session_id, ()) if notice.number > after]

    @contextlib.contextmanager
    def subscribe(self, session_id: str, wake: Wake) -> Iterator[None]:
        """Call `wake` on the event loop after every change in this session. It must return at once and not raise."""
        self._wakes[session_id].append(wake)
        try:
            yield
        finally:
            wakes = self._wakes[session_id]
            wakes.remove(wake)
            if not wakes:
                del self._wakes[session_id]

    def _next(self) -> int:
        self._version += 1
        return self._version

    def _wake(self, session_id: str) -> None:
        for wake in tuple(self._wakes.get(session_id, ())):
            wake()
