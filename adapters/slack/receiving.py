"""One socket at a time, for ever: opened, watched, replaced.

Contract: `run` ends only by cancellation. When Slack asks for a new socket, the new one is up before the old one is
closed, and what came over the old one is still confirmed there. Every failure waits before the next try, as long as
Slack names or else longer each time; a socket that lived for a while is replaced at once.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Protocol

import structlog

from adapters.base import AdapterState
from adapters.slack.connection import Connection, TooManyRequests
from adapters.slack.problems import final_problem, passing_problem
from adapters.slack.sockets import Line

__all__ = ["Receiver", "Report", "Watch", "backoff"]

_FIRST_WAIT = 1.0
_LONGEST_WAIT = 30.0
#: How long until a refused token is tried again: only a person can mend it.
_TOKEN_WAIT = 60.0
#: A socket that lived shorter counts as a failure.
_STEADY_SECONDS = 10.0
_DRAIN_SECONDS = 2.0

_log = structlog.get_logger(__name__)

Report = Callable[[AdapterState, str | None], None]


class Watch(Protocol):
    """Who is told what becomes of the sockets."""

    def suspected(self) -> bool:
        """Tell whether the socket is open but brings nothing."""
        ...

    def connecting(self) -> None:
        """Take note that a socket is being made."""
        ...

    def connected(self) -> None:
        """Take note that it is up."""
        ...

    def lost(self) -> None:
        """Take note that it is of no use any more."""
        ...


def backoff(failures: int) -> float:
    """Return the seconds to wait after so many failures in a row: 1, 2, 4 ... 30, less up to a third at random."""
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(failures - 1, 16))
    return longest * random.uniform(0.67, 1.0)  # noqa: S311  (spreads load, guards nothing)


class Receiver:
    """Keeps one account's socket up."""

    def __init__(
        self,
        connection: Connection,
        make_line: Callable[[], Line],
        account: str,
        report: Report,
        watch: Watch,
    ) -> None:
        self._connection = connection
        self._make_line = make_line
        self._account = account
        self._report = report
        self._watch = watch

    async def run(self, url: str | None) -> None:
        """Receive until cancelled; url: the address of a socket that was asked for already."""
        failures = 0
        current: Line | None = None
        async with asyncio.TaskGroup() as retiring:
            try:
                while True:
                    try:
                        line = await self._connected(url)
                    except Exception as error:  # noqa: BLE001  (a loop that must outlive whatever one round meets)
                        failures += 1
                        await asyncio.sleep(self._failed(error, failures))
                        continue
                    finally:
                        url = None
                    if current is not None:
                        retiring.create_task(_retire(current))
                    current, began = line, time.monotonic()
                    self._watch.connected()
                    self._report(AdapterState.CONNECTED, None)
                    reason = await line.ended(self._watch.suspected)
                    self._watch.lost()
                    _log.info("slack_socket_replaced", account=self._account, reason=reason)
                    failures = 0 if time.monotonic() - began >= _STEADY_SECONDS else failures + 1
                    if failures > 1:
                        self._report(AdapterState.RETRYING, "Slack ends each connection soon; a new one is made.")
                        await asyncio.sleep(backoff(failures - 1))
            finally:
                if current is not None:
                    await current.close()

    async def _connected(self, url: str | None) -> Line:
        url = url or await self._connection.open_socket()
        self._watch.connecting()
        line = self._make_line()
        try:
            await line.connect(url)
        except BaseException:
            await line.close()
            raise
        return line

    def _failed(self, error: Exception, failures: int) -> float:
        """Say what is wrong and return how long to wait."""
        problem = final_problem(error, self._account, "app_token")
        if problem is not None:
            self._report(AdapterState.FAILED, problem)
            return _TOKEN_WAIT
        problem = self._connection.without_secrets(passing_problem(error))
        self._report(AdapterState.RETRYING, problem)
        _log.warning("slack_socket_failed", account=self._account, problem=problem, failures=failures)
        return error.seconds if isinstance(error, TooManyRequests) else backoff(failures)


async def _retire(line: Line) -> None:
    try:
        await line.drain(_DRAIN_SECONDS)
    finally:
        await line.close()
