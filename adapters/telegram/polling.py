"""The long poll: every update handed on at least once, in order per chat, and confirmed only afterwards.

Contract: an update is confirmed (by asking for what follows it) when `deliver` has returned for it and for every update
before it. An update whose delivery failed keeps everything from it on unconfirmed and is tried again; what was already
delivered is not handed on twice by this process. Chats do not wait for each other inside a batch. An update that cannot
be understood is reported and then confirmed: it must not block what follows. Every failure waits before the next try.
Limits: 100 updates in memory; one delivery is given `DELIVER_SECONDS`.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from telegram.error import Conflict, InvalidToken, RetryAfter, TelegramError

from adapters.asked import asked_wait
from adapters.base import AdapterState, Deliver, InboundMessage
from adapters.network import reason_of
from adapters.telegram.connection import Connection

__all__ = ["DELIVER_SECONDS", "Poller", "backoff", "problem_of"]

POLL_SECONDS = 30
DELIVER_SECONDS = 60.0
_RIVAL_SECONDS = 5
_FIRST_WAIT = 1.0
_LONGEST_WAIT = 30.0
#: A bot that asks in vain now and then is better than one that hears nothing for days.
_LONGEST_ASKED = 3600.0
#: How long until a refused token is tried again: only a person can mend it.
_TOKEN_WAIT = 60.0
_RAW_CHARACTERS = 16_000

_log = structlog.get_logger(__name__)

Parse = Callable[[Mapping[str, Any]], InboundMessage | None]
Report = Callable[[AdapterState, str | None], None]
SetAside = Callable[[str, str], Awaitable[None]]
"""Given the reason and the raw form of an update that cannot be read: keeps a record of it, or raises."""


def backoff(failures: int) -> float:
    """Return the seconds to wait after so many failures in a row: 1, 2, 4 ... 30, less up to a third at random."""
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(failures - 1, 16))
    return longest * random.uniform(0.67, 1.0)  # noqa: S311  (spreads load, guards nothing)


def problem_of(error: BaseException) -> str:
    """Return a sentence for people about what keeps the account from receiving."""
    if isinstance(error, Conflict):
        return (
            "Another program reads this bot's messages with the same token: stop it, or get a new token from BotFather."
        )
    if isinstance(error, InvalidToken):
        return "Telegram refuses the bot's token: check platforms.telegram.token, or get a new one from BotFather."
    if isinstance(error, RetryAfter):
        return "Telegram asks this bot to slow down; receiving goes on by itself."
    if not isinstance(error, TelegramError | TimeoutError):
        return f"Receiving from Telegram fails in an unforeseen way ({error!r}); this is tried again until it works."
    return f"Telegram cannot be reached ({reason_of(error)}); this is tried again until it works."


class Poller:
    """Fetches, parses, delivers and confirms, until cancelled."""

    def __init__(
        self, connection: Connection, parse: Parse, deliver: Deliver, report: Report, set_aside: SetAside
    ) -> None:
        self._connection = connection
        self._parse = parse
        self._deliver = deliver
        self._report = report
        self._set_aside = set_aside
        self._offset: int | None = None
        self._delivered: set[int] = set()

    async def run(self) -> None:
        """Poll for ever; ends only by cancellation."""
        failures = 0
        seconds = POLL_SECONDS
        while True:
            before = self._offset
            try:
                updates = await self._connection.updates(before, seconds)
                refused = await self._take(updates)
            except Exception as error:  # noqa: BLE001  (a loop that must outlive whatever one round meets)
                failures += 1
                # A short poll shows at once that the line works again; that a rival has gone, only some seconds do.
                seconds = _RIVAL_SECONDS if isinstance(error, Conflict) else 0
                await self._failed(error, failures)
                continue
            seconds = POLL_SECONDS
            if refused is not None or (updates and self._offset == before):
                failures += 1
                self._report(AdapterState.RETRYING, refused or "Telegram sends updates that cannot be confirmed.")
                await asyncio.sleep(backoff(failures))
                continue
            failures = 0
            self._report(AdapterState.CONNECTED, None)

    async def _failed(self, error: Exception, failures: int) -> None:
        problem = self._connection.without_token(problem_of(error))
        _log.warning("telegram_poll_failed", problem=problem, failures=failures)
        refused = isinstance(error, InvalidToken)
        self._report(AdapterState.FAILED if refused else AdapterState.RETRYING, problem)
        if isinstance(error, Conflict) and "webhook" in error.message.lower():
            await self._remove_webhook()
        wait = backoff(failures)
        if refused:
            wait = _TOKEN_WAIT
        elif isinstance(error, RetryAfter):
            wait = asked_wait(error.retry_after, wait, _LONGEST_ASKED)
        await asyncio.sleep(wait)

    async def _remove_webhook(self) -> None:
        try:
            await self._connection.remove_webhook()
        except TelegramError as error:
            _log.warning("telegram_webhook_stays", reason=self._connection.without_token(str(error)))

    async def _take(self, updates: list[Any]) -> str | None:
        """Deliver a batch and move the offset; returns a problem when something could not be delivered."""
        numbers: list[int] = []
        chats: dict[str, list[tuple[int, InboundMessage]]] = {}
        for update in updates:
            number = update.get("update_id") if isinstance(update, dict) else None
            if not isinstance(number, int):
                await self._unreadable(update, "it has no number")
                continue
            numbers.append(number)
            if number in self._delivered:
                continue
            try:
                message = self._parse(update)
            except Exception as error:  # noqa: BLE001  (whatever is wrong with it, it must not block the others)
                if await self._unreadable(update, f"{type(error).__name__}: {error}"):
                    self._delivered.add(number)
                continue
            if message is None:
                self._delivered.add(number)
            else:
                chats.setdefault(message.place.chat, []).append((number, message))
        async with asyncio.TaskGroup() as tasks:
            lines = [tasks.create_task(self._deliver_in_order(line)) for line in chats.values()]
        self._confirm(numbers)
        return next((problem for line in lines if (problem := line.result()) is not None), None)

    async def _deliver_in_order(self, line: list[tuple[int, InboundMessage]]) -> str | None:
        """Deliver the messages of one chat; stops at the first that fails and returns what is wrong."""
        for number, message in line:
            try:
                async with asyncio.timeout(DELIVER_SECONDS):
                    await self._deliver(message)
            except Exception as error:  # noqa: BLE001  (any failure means: not durable, so not confirmed)
                _log.warning("telegram_delivery_failed", update_id=number, error=repr(error))
                reason = str(error) or type(error).__name__
                return f"A message could not be taken in ({reason}); it stays with Telegram and is tried again."
            self._delivered.add(number)
        return None

    async def _unreadable(self, update: Any, reason: str) -> bool:
        """Leave a visible record of an update that nobody will see otherwise; False if that must be tried again."""
        raw = json.dumps(update, ensure_ascii=False, default=repr)[:_RAW_CHARACTERS]
        try:
            async with asyncio.timeout(DELIVER_SECONDS):
                await self._set_aside(self._connection.without_token(reason), self._connection.without_token(raw))
        except Exception as error:  # noqa: BLE001  (not recorded, so not confirmed)
            _log.warning("telegram_update_not_set_aside", error=repr(error))
            return False
        return True

    def _confirm(self, numbers: list[int]) -> None:
        if numbers:
            missing = [number for number in numbers if number not in self._delivered]
            self._offset = min(missing) if missing else max(numbers) + 1
            offset = self._offset
            self._delivered = {number for number in self._delivered if number >= offset}
