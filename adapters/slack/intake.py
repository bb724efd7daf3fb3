"""From the payload of an envelope to `deliver`: in order per conversation, conversations side by side.

Contract: `take` returns when the event is durable (or is none of ours to keep), and only then may the envelope be
confirmed; it raises `MalformedEvent` for what can never be understood and anything else for what must come again.
Slack's library hands envelopes on all at once, so what is at hand of one conversation is put in order of Slack's own
times first; for that, the first of a burst waits `LINGER_SECONDS`. One failed delivery holds up no other: Slack brings
it again minutes later. One app may serve several workspaces over any of its sockets; `Exchange` finds whose an event
is.
Limits: one delivery is given `DELIVER_SECONDS`; how many may wait is the socket's affair.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import structlog

from adapters.base import Deliver, InboundMessage, Verdict
from adapters.slack.catching import Marks
from adapters.slack.directory import Directory
from adapters.slack.events import Rules, assistant_thread, inbound, own_post
from adapters.slack.fields import as_mapping, as_ts, ts_order
from adapters.slack.liveness import Echoes
from adapters.slack.origin import Me, belongs
from adapters.slack.responses import Responses

__all__ = ["DELIVER_SECONDS", "Exchange", "Intake", "NobodyServes", "Stopped"]

LINGER_SECONDS = 0.02
DELIVER_SECONDS = 60.0
_MOST_TOLD = 100
_KEPT = frozenset({Verdict.ACCEPTED, Verdict.DUPLICATE})

_log = structlog.get_logger(__name__)


class NobodyServes(Exception):
    """The event is for a workspace that no account of this process serves; another process may."""


class Stopped(Exception):
    """The account was stopped before the event was delivered."""

    def __init__(self) -> None:
        super().__init__("The account was stopped; the event stays with Slack.")


@dataclass(slots=True)
class _Job:
    """One event that waits for its turn."""

    body: Mapping[str, Any]
    again: bool
    received_at: float
    done: asyncio.Future[None]


@dataclass(slots=True)
class _Line:
    """What waits in one conversation, lowest time first, and who works on it."""

    jobs: list[tuple[tuple[int, int], int, _Job]] = field(default_factory=list)
    worker: asyncio.Task[None] | None = None


class Intake:
    """Takes in the events of one account."""

    def __init__(  # noqa: PLR0913, PLR0917  (one for each thing that it needs to know)
        self,
        me: Me,
        rules: Rules,
        directory: Directory,
        echoes: Echoes,
        marks: Marks,
        responses: Responses,
        deliver: Deliver,
    ) -> None:
        self.me = me
        self.marks = marks
        self._responses = responses
        self._rules = rules
        self._directory = directory
        self._echoes = echoes
        self._deliver = deliver
        self._lines: dict[str, _Line] = {}
        self._numbers = itertools.count()
        self._closed = False
        self._open = asyncio.Event()
        self._open.set()

    def hold(self) -> None:
        """Let live events wait, so that what came before them can be taken in first."""
        self._open.clear()

    def release(self) -> None:
        """Let live events go on."""
        self._open.set()

    async def take_live(self, body: Mapping[str, Any], *, again: bool) -> None:
        """Deliver what an envelope brings, when it is its turn."""
        await self._open.wait()
        await self.take(body, again=again)

    async def take(self, body: Mapping[str, Any], *, again: bool) -> None:
        """Deliver what the payload carries; see the module's contract. again: Slack says that it sent it before."""
        received_at = time.time()
        message = self._read(body, received_at)
        self._echoes.heard(own_post(body, self.me))
        if (thread := assistant_thread(body)) is not None:
            self._directory.remember_assistant(*thread)
        if message is None:
            return
        if self._closed:
            raise Stopped
        self._responses.note(body, message)
        place = message.place
        key = place.chat if place.private else f"{place.chat} {place.thread}"
        line = self._lines.setdefault(key, _Line())
        job = _Job(body, again, received_at, asyncio.get_running_loop().create_future())
        heapq.heappush(line.jobs, (_moment(body, message), next(self._numbers), job))
        if line.worker is None:
            line.worker = asyncio.create_task(self._work(key, line), name="slack intake")
        await job.done

    async def close(self) -> None:
        """Deliver no more; what was not delivered stays with Slack."""
        self._closed = True
        self._open.set()
        workers = [line.worker for line in self._lines.values() if line.worker is not None]
        for worker in workers:
            worker.cancel()
        if workers:
            await asyncio.wait(workers)
        for line in list(self._lines.values()):
            # A worker that had not begun when it was cancelled has told nobody.
            _give_up(line)

    def _read(self, body: Mapping[str, Any], received_at: float) -> InboundMessage | None:
        return inbound(body, self.me, self._rules, self._directory, received_at)

    async def _work(self, key: str, line: _Line) -> None:
        job: _Job | None = None
        try:
            await asyncio.sleep(LINGER_SECONDS)
            while line.jobs:
                *_, job = heapq.heappop(line.jobs)
                await self._finish(job)
                job = None
        finally:
            del self._lines[key]
            if job is not None and not job.done.done():
                job.done.set_exception(Stopped())
            _give_up(line)

    async def _finish(self, job: _Job) -> None:
        try:
            async with asyncio.timeout(DELIVER_SECONDS):
                await self._directory.prepare(job.body, threads=not self._rules.dm_threads, again=job.again)
                message = self._read(job.body, job.received_at)
                if message is not None and await self._deliver(message) in _KEPT:
                    self.marks.note(message.place, message.message_id)
        except Exception as error:  # noqa: BLE001  (any failure means: not durable, so not confirmed)
            # Nobody may be waiting any more: the socket that it came by may be gone.
            if not job.done.done():
                job.done.set_exception(error)
        else:
            if not job.done.done():
                job.done.set_result(None)


class Exchange:
    """The accounts of this process that share the sockets of one app."""

    def __init__(self) -> None:
        self._intakes: list[Intake] = []
        self._told: set[str] = set()

    @classmethod
    def of(cls, app_token: str, base_url: str) -> Exchange:
        """Return the one exchange of an app; it lives as long as somebody holds it."""
        return _EXCHANGES.setdefault((app_token, base_url), cls())

    def join(self, intake: Intake) -> None:
        """Let an account have its events from now on."""
        self._intakes.append(intake)

    def leave(self, intake: Intake) -> None:
        """Give an account no more events."""
        if intake in self._intakes:
            self._intakes.remove(intake)

    async def take(self, body: Mapping[str, Any], *, again: bool) -> None:
        """Hand the payload to the account that it is for, and return when that has it."""
        intake = next((intake for intake in self._intakes if belongs(body, intake.me)), None)
        if intake is None:
            team = str(body.get("team_id"))
            if team not in self._told and len(self._told) < _MOST_TOLD:
                self._told.add(team)
                _log.warning("slack_workspace_not_served", team=team)
            raise NobodyServes(f"No account of this process serves the workspace {team}.")
        await intake.take_live(body, again=again)


_EXCHANGES: WeakValueDictionary[tuple[str, str], Exchange] = WeakValueDictionary()


def _give_up(line: _Line) -> None:
    for *_, waiting in line.jobs:
        if not waiting.done.done():
            waiting.done.set_exception(Stopped())


def _moment(body: Mapping[str, Any], message: InboundMessage) -> tuple[int, int]:
    """Return when it happened by Slack's clock; for a command, which Slack gives no time, when it came."""
    event = as_mapping(body, "event") or {}
    ts = as_ts(event, "ts") or as_ts(event, "event_ts")
    return ts_order(ts or f"{message.received_at:.6f}")
