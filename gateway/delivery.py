"""The outbound edge: format, split, send in order per place, keep a receipt per part.

Contract: a part is marked *sending* before the I/O and sent, unknown, failed or waiting after it. Parts of one place go
out in order; places are independent. A wait that the platform asks for is honoured, for the place or the account it
names. An outcome that nobody knows is settled at once by `delivery.unknown`: sent again once, or left as unknown; both
are counted. What is waiting survives restarts and is tried for `GIVE_UP_SECONDS`.
Limits: `AT_ONCE` sends at a time per process; nothing waits in memory, the queue is the outbox table.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import anyio
import structlog

from adapters.base import Gone, OutboundPart, Refused, RetryLater, UnknownOutcome
from gateway.places import place_of
from session_store import RenderedPart, StoreError

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from adapters.base import Adapter
    from session_store import OutboxRow, SessionDB

__all__ = ["Delivery", "backoff"]

AT_ONCE = 16
GIVE_UP_SECONDS = 24 * 3600.0
LONGEST_BACKOFF = 300.0
IDLE_SECONDS = 5.0
STORE_RETRY_SECONDS = 1.0

_log = structlog.get_logger(__name__)


def backoff(attempts: int) -> float:
    """Seconds to wait after `attempts` failed tries: 1, 2, 4 ... at most five minutes."""
    return min(LONGEST_BACKOFF, 2.0 ** max(0, min(attempts, 16) - 1))


class Delivery:
    """Sends what the accounts of this process owe."""

    def __init__(
        self,
        db: SessionDB,
        adapters: Mapping[tuple[str, str], Adapter],
        holder: str,
        *,
        unknown: Literal["resend", "hold"],
    ) -> None:
        self._db = db
        self._adapters = adapters
        self._holder = holder
        self._resend = unknown == "resend"
        self._busy: set[int] = set()
        self._paused: dict[tuple[str, str], float] = {}
        self._wake = anyio.Event()
        self._closing = False
        self.counts: Counter[str] = Counter()

    async def run(self) -> None:
        """Deliver until `close`; then returns when sends in flight have ended."""
        accounts = list(self._adapters)
        recovered = await self._db.outbox.recover(accounts, self._resend)
        self.counts["unknown"] += recovered
        changes = self._db.changes.subscribe()
        async with anyio.create_task_group() as tasks:
            while not self._closing:
                try:
                    await self._dispatch(tasks)
                    timeout = await self._until_due()
                except StoreError as error:
                    _log.warning("outbox_unreadable", error=str(error))
                    await anyio.sleep(STORE_RETRY_SECONDS)
                    continue
                self._wake = anyio.Event()
                async with anyio.create_task_group() as both:

                    async def watch(seconds: float = timeout, group: TaskGroup = both) -> None:
                        await changes.wait(seconds)
                        group.cancel_scope.cancel()

                    both.start_soon(watch)
                    await self._wake.wait()
                    both.cancel_scope.cancel()

    def close(self) -> None:
        """Begin no further send."""
        self._closing = True
        self._wake.set()

    async def flush(self) -> None:
        """Return when nothing is due any more (what waits for a later time is left)."""
        while await self._db.outbox.due(self._open_accounts(), limit=1) or self._busy:
            await anyio.sleep(0.05)

    def _open_accounts(self) -> list[tuple[str, str]]:
        now = time.monotonic()
        return [account for account in self._adapters if self._paused.get(account, 0.0) <= now]

    async def _until_due(self) -> float:
        due = await self._db.outbox.next_due(list(self._adapters))
        until = IDLE_SECONDS if due is None else max(0.05, due - time.time())
        now = time.monotonic()
        waits = [pause - now for pause in self._paused.values() if pause > now]
        return min([until if due is not None and due > time.time() else IDLE_SECONDS, *waits, IDLE_SECONDS])

    async def _dispatch(self, tasks: TaskGroup) -> None:
        free = AT_ONCE - len(self._busy)
        if free <= 0:
            return
        for row in await self._db.outbox.due(self._open_accounts(), limit=AT_ONCE):
            if row["place_id"] in self._busy or len(self._busy) >= AT_ONCE or self._closing:
                continue
            self._busy.add(row["place_id"])
            tasks.start_soon(self._deliver, row)

    async def _deliver(self, row: OutboxRow) -> None:
        try:
            adapter = self._adapters[row["platform"], row["account"]]
            if row["rendered"] is None:
                await self._expand(row, adapter)
            else:
                await self._send(row, adapter)
        except StoreError as error:
            _log.warning("delivery_postponed", outbox_id=row["id"], error=str(error))
            await anyio.sleep(STORE_RETRY_SECONDS)
        finally:
            self._busy.discard(row["place_id"])
            self._wake.set()

    async def _expand(self, row: OutboxRow, adapter: Adapter) -> None:
        try:
            parts = adapter.render(row["body"])
        except Exception as error:
            _log.exception("formatting_failed", outbox_id=row["id"])
            await self._db.outbox.fail(row["id"], f"it could not be formatted: {error}")
            return
        rendered = [RenderedPart(part.plain, json.dumps(part.payload, ensure_ascii=False)) for part in parts]
        if rendered:
            await self._db.outbox.expand(row["id"], rendered)
        else:
            await self._db.outbox.fail(row["id"], "there was nothing to send")

    async def _send(self, row: OutboxRow, adapter: Adapter) -> None:
        if not await self._db.outbox.begin(row["id"], self._holder):
            return
        part = OutboundPart(
            plain=row["body"],
            payload=json.loads(row["rendered"] or "{}"),
            reply_to=row["reply_to"] if row["part"] == 1 else None,
            idempotency_key=f"tl{row['id']}",
        )
        try:
            receipt = await adapter.send(place_of(row), part)
        except RetryLater as error:
            await self._later(row, error)
        except (Gone, Refused) as error:
            self.counts["failed"] += 1
            _log.warning("not_delivered", outbox_id=row["id"], error=str(error))
            await self._db.outbox.fail(row["id"], str(error))
        except UnknownOutcome as error:
            await self._unknown(row, str(error))
        except Exception as error:
            _log.exception("send_failed", outbox_id=row["id"])
            await self._unknown(row, f"{type(error).__name__}: {error}")
        else:
            self.counts["sent"] += 1
            await self._db.outbox.sent(row["id"], receipt.message_id)

    async def _later(self, row: OutboxRow, error: RetryLater) -> None:
        if time.time() - row["created_at"] > GIVE_UP_SECONDS:
            self.counts["failed"] += 1
            await self._db.outbox.fail(row["id"], f"given up after a day: {error}")
            return
        if error.whole_account:
            self._paused[row["platform"], row["account"]] = time.monotonic() + error.delay
        self.counts["retried"] += 1
        await self._db.outbox.retry(row["id"], max(error.delay, backoff(row["attempts"])), str(error))

    async def _unknown(self, row: OutboxRow, error: str) -> None:
        self.counts["unknown"] += 1
        _log.warning("outcome_unknown", outbox_id=row["id"], error=error, resend=self._resend)
        await self._db.outbox.unknown(row["id"], error, self._resend)
