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
from gateway.bell import Bell
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
        self._bell = Bell(db)
        self._closing = False
        self._halted = False
        self.ended = anyio.Event()
        self.counts: Counter[str] = Counter()

    async def run(self) -> None:
        """Deliver until `close`; `ended` is set when it returns."""
        self.counts["unknown"] += await self._db.outbox.recover(list(self._adapters), self._resend)
        try:
            async with anyio.create_task_group() as tasks:
                while not self._halted:
                    try:
                        began = await self._dispatch(tasks)
                        if self._closing and not began and not self._busy:
                            return
                        await self._bell.wait(await self._until_due())
                    except StoreError as error:
                        _log.warning("outbox_unreadable", error=str(error))
                        await anyio.sleep(STORE_RETRY_SECONDS)
        finally:
            self.ended.set()

    def close(self) -> None:
        """Send what is due now, then end; what waits for a later time is left in the outbox."""
        self._closing = True
        self._bell.ring()

    def halt(self) -> None:
        """Begin no further send."""
        self._halted = True
        self._bell.ring()

    def _open_accounts(self) -> list[tuple[str, str]]:
        now = time.monotonic()
        return [account for account in self._adapters if self._paused.get(account, 0.0) <= now]

    async def _until_due(self) -> float:
        """Seconds to wait at most before looking again."""
        due = await self._db.outbox.next_due(self._open_accounts())
        waits = [pause - time.monotonic() for pause in self._paused.values()]
        if due is not None:
            waits.append(due - time.time())
        return min([IDLE_SECONDS, *(wait for wait in waits if wait > 0)])

    async def _dispatch(self, tasks: TaskGroup) -> int:
        """Begin what is due, one row per place; returns how many were begun."""
        began = 0
        if len(self._busy) < AT_ONCE:
            for row in await self._db.outbox.due(self._open_accounts(), limit=2 * AT_ONCE):
                if row["place_id"] not in self._busy and len(self._busy) < AT_ONCE and not self._halted:
                    self._busy.add(row["place_id"])
                    tasks.start_soon(self._deliver, row)
                    began += 1
        return began

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
            self._bell.ring()

    async def _expand(self, row: OutboxRow, adapter: Adapter) -> None:
        try:
            parts = adapter.render(row["body"])
        except Exception as error:  # noqa: BLE001 - one answer that cannot be formatted must not stop the others
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
        except Exception as error:  # noqa: BLE001 - whatever a library raises here, nobody knows whether it was sent
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
