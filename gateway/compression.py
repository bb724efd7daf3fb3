"""Compression: the older part of a long conversation gives way to a summary in what the agent sees.

Contract: `prepare` has the agent summarise, while the conversation is held, and changes nothing; the transaction
*compress* of the store does the rest at once. What stays in sight is the newest exchanges, whole. A conversation is
compressed by itself after a turn that brought it to the threshold, and before the first turn that this process begins
in it if it is there already; messages that come meanwhile wait in the inbox.
Failure: a summary that fails, is empty or is more than twice as long as was asked for leaves everything as it was
(`CompressionFailed`). By itself it is tried again after a pause that grows; the person is told once until it succeeds.
Limits: a summary has `SUMMARY_SECONDS`. A history that is more than the agent can be shown at once is summarised piece
by piece, at most `MOST_PIECES`; older messages than that are named in the summary, and found by the search only.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import structlog

from gateway.agents.base import AgentError, SummaryRequest
from gateway.ids import new_session_id
from gateway.notes import annotated
from gateway.phrases import inert
from gateway.window import Exchange, exchanges
from session_store import Compress, StoreError
from session_store.conversation import replay

if TYPE_CHECKING:
    from gateway.agents.base import Agent
    from gateway.context import Contexts
    from gateway.holding import Grip
    from gateway.live import LiveFeed
    from session_store import Fence, SessionDB, SessionRow, Usage

__all__ = ["CompressionFailed", "Compressor", "first_kept", "goes_on_as"]

SUMMARY_SECONDS = 180.0
MOST_PIECES = 32
#: What an agent is given at once for a summary, at most; more than the agents of the house would read whole.
MOST_TOKENS = 60_000
#: Characters of a text that a summary is made from; a tool's result may have less.
_TEXT_LENGTH, _RESULT_LENGTH = 12_000, 2_000
_LONGEST, _SHORTEST = 8_000, 400
_REMEMBERED = 10_000

_OLDER = "(What was said before this is not part of the summary; it can be searched.)"
_FAILED = (
    "This conversation has grown long, and compressing it failed: {} Nothing has changed; I see the newest part of it. "
    "It is tried again later; `/compress` tries at once."
)
_DONE = (
    "This conversation had grown long: what was said earlier is now a summary in what I see. It goes on as {}; "
    "everything is kept, and `/search` finds it."
)

_log = structlog.get_logger(__name__)


class CompressionFailed(Exception):
    """There is no summary; the message is a sentence that says why. usage: what the attempt cost."""

    def __init__(self, sentence: str, usage: Sequence[Usage] = ()) -> None:
        super().__init__(sentence)
        self.usage = tuple(usage)


class Compressor:
    """Compresses conversations of one process. threshold: percent of the budget; 0: never by itself."""

    def __init__(  # noqa: PLR0913 - the parts it works with, each once
        self, db: SessionDB, agent: Agent, contexts: Contexts, grip: Grip, live: LiveFeed, *, threshold: int
    ) -> None:
        self._db = db
        self._agent = agent
        self._contexts = contexts
        self._grip = grip
        self._live = live
        self._looked: OrderedDict[str, None] = OrderedDict()
        self.threshold = threshold

    # --- by itself ---------------------------------------------------------------------------------------------------

    async def before_turn(self, lane: str, session_key: str | None, session_id: str | None) -> None:
        """Look once at the conversation that a lane's messages go to, before the first turn of this process there."""
        if lane in self._looked or not self.threshold:
            return
        if session_id is None:
            session = await self._db.routes.session_for(session_key) if session_key is not None else None
            session_id = session["id"] if session is not None and session["ended_at"] is None else None
        if session_id is not None:
            await self._if_due(session_id)
        self._looked[lane] = None
        while len(self._looked) > _REMEMBERED:
            self._looked.popitem(last=False)

    async def after_turn(self, session_id: str) -> None:
        """Compress if the turn brought the conversation to the threshold.

        A conversation that was far below it when the turn began is looked at after its next turn.
        """
        if self.threshold and 2 * self._contexts.taken(session_id) >= self._due_tokens:
            await self._if_due(session_id)

    @property
    def _piece(self) -> int:
        """Tokens that are summarised at once."""
        return min(self._contexts.limit * 3 // 4, MOST_TOKENS)

    @property
    def _due_tokens(self) -> int:
        return self._contexts.limit * self.threshold // 100

    async def _if_due(self, session_id: str) -> None:
        try:
            await self._compress_if_due(session_id)
        except StoreError as error:
            # What was said is answered all the same; the next turn comes by here again.
            _log.warning("compression_postponed", session=session_id, error=str(error))

    async def _compress_if_due(self, session_id: str) -> None:
        seen = await self._contexts.seen(session_id)
        session = seen.view.session
        if session is None or (seen.tokens < self._due_tokens and not seen.shown.cut):
            return
        if await self._db.compressions.paused_until(session["root_id"] or session["id"]) > time.time():
            return
        async with self._grip.hold(session["id"], "compression") as held:
            if held.fence is not None and held.session is not None:
                await self._by_itself(held.fence, held.session)

    async def _by_itself(self, fence: Fence, session: SessionRow) -> None:
        try:
            wanted = await self.prepare(fence, session)
        except CompressionFailed as error:
            sentence = _FAILED.format(inert(str(error)))
            _log.warning("compression_failed", session=session["id"], error=str(error))
            if await self._db.compressions.failed(fence, session["id"], str(error), sentence):
                self._live.notice(session["id"], sentence)
            return
        if wanted is None:
            return
        sentence = _DONE.format(goes_on_as(wanted))
        done = await self._db.compressions.compress(replace(wanted, notice=sentence))
        _log.info("compressed", session=session["id"], child=done.session_id)
        self._live.notice(done.session_id, sentence)

    # --- the summary -------------------------------------------------------------------------------------------------

    async def prepare(
        self, fence: Fence, session: SessionRow, focus: str | None = None, *, asked: bool = False
    ) -> Compress | None:
        """Have what is old in a held conversation summarised; None if there is nothing to compress.

        focus: what to keep above all. asked: somebody wants it now, whatever the size.

        Raises:
            CompressionFailed: see the module.
        """
        limit = self._contexts.limit
        view = await self._db.context_view(session["id"], limit=MOST_PIECES * self._piece, annotate=annotated)
        parts = exchanges(view.rows)
        total = sum(part.tokens for part in parts)
        kept = first_kept(parts, min(limit // 4, total // 2) if asked else limit // 4, limit // 2)
        if kept == 0:
            return None
        usage: list[Usage] = []
        before = view.summary if view.whole else "\n".join(filter(None, [view.summary, _OLDER]))
        try:
            with anyio.fail_after(SUMMARY_SECONDS):
                summary = await self._summary(session["id"], parts[:kept], before, focus, usage)
        except CompressionFailed as error:
            await self._count(session["id"], usage)
            raise CompressionFailed(str(error), usage) from error
        except TimeoutError:
            await self._count(session["id"], usage)
            raise CompressionFailed("the summary took too long.", usage) from None
        return Compress(
            fence,
            session["id"],
            new_session_id("terminal" if session["source"] == "cli" else "gateway", time.time()),
            summary,
            parts[kept].first_id if kept < len(parts) else view.rows[-1]["id"] + 1,
            title=await self._db.compressions.wanted_title(session["id"]),
            usage=usage,
        )

    async def _summary(
        self, session_id: str, parts: Sequence[Exchange], before: str | None, focus: str | None, usage: list[Usage]
    ) -> str:
        """One summary of it all, made piece by piece."""
        length = max(_SHORTEST, min(_LONGEST, self._contexts.limit // 8))
        summary = before
        for rows in _pieces(parts, self._piece - length):
            history = [_clipped(message) for message in replay(rows)]
            if summary:
                history.insert(0, {"role": "system", "content": summary})
            request = SummaryRequest(session_id, history, "compression", focus, length)
            try:
                written = await self._agent.summarize(request)
            except AgentError as error:
                raise CompressionFailed(str(error)) from error
            except Exception as error:
                # An agent is foreign code: whatever it raises ends the attempt, not the gateway.
                _log.exception("summary_failed", session=session_id)
                raise CompressionFailed("something went wrong; it is in the log.") from error
            usage += written.usage
            summary = written.text.strip()
            if not summary:
                raise CompressionFailed("the summary was empty.")
            if len(summary) > 2 * length:
                raise CompressionFailed(f"the summary was far longer than the {length} characters asked for.")
        return summary or ""

    async def _count(self, session_id: str, usage: Sequence[Usage]) -> None:
        """What came to nothing has its cost, too."""
        try:
            await self._db.usage.record(session_id, usage, "summary")
        except StoreError as error:
            _log.warning("summary_cost_not_counted", session=session_id, error=str(error))


def goes_on_as(wanted: Compress) -> str:
    """The name of a continuation, as Markdown."""
    return f"“{inert(wanted.title)}”" if wanted.title else f"`{wanted.child_id}`"


def first_kept(parts: Sequence[Exchange], room: int, most: int) -> int:
    """The place of the first exchange that stays in sight: as many of the newest as `room` tokens hold.

    The last one stays even if it needs more, up to `most`.
    """
    place, left = len(parts), room
    while place and parts[place - 1].tokens <= left:
        place -= 1
        left -= parts[place].tokens
    if place and place == len(parts) and parts[-1].tokens <= most:
        place -= 1
    return place


def _pieces(parts: Sequence[Exchange], room: int) -> list[list[Any]]:
    """The rows of these exchanges in pieces of at most `room` tokens each, as far as whole exchanges go."""
    pieces: list[list[Any]] = []
    left = 0
    for part in parts:
        if not pieces or part.tokens > left:
            pieces.append([])
            left = room
        pieces[-1] += part.rows
        left -= part.tokens
    return pieces


def _clipped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message with a long text cut in the middle."""
    content = message.get("content")
    length = _RESULT_LENGTH if message.get("role") == "tool" else _TEXT_LENGTH
    if not isinstance(content, str) or len(content) <= length:
        return message
    left_out = len(content) - length
    half = length // 2
    return {**message, "content": f"{content[:half]}\n[{left_out} characters left out]\n{content[-half:]}"}
