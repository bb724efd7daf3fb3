"""The outbound edge: format, split, send in order per place, keep a receipt per part.

Contract: a part is marked *sending* before the I/O and sent, unknown, failed or waiting after it. Parts of one place go
out in order; places and accounts are independent, and a place with much to send takes turns with the others. A wait
that the platform asks for is honoured, for the place or the account it names. An outcome that nobody knows is settled
at once by `delivery.unknown`: sent again once, or left as unknown; the store counts both. An answer whose beginning is
shown already is put in the place of that message, as often as it takes; if that message cannot be edited, the answer
comes anew. What waits survives restarts and is tried for `GIVE_UP_SECONDS`. An answer whose topic or chat is gone goes
to the chat it belonged to, with a word about it.
Failure: what became of a send is written as soon as the store can; until then its place waits, and a process that dies
meanwhile has left an unknown outcome, like one that died while sending.
Limits: `AT_ONCE` sends at a time per account; nothing waits in memory, the queue is the outbox table.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio
import anyio.to_thread
import structlog

from adapters.base import Edits, Gone, OutboundPart, Receipt, Refused, RetryLater, UnknownOutcome
from gateway.bell import Bell
from gateway.moving import move_of
from gateway.places import place_of, place_ref
from session_store import NewOutbox, RenderedPart, StoreError

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from adapters.base import Adapter, Place
    from gateway.streaming import Streaming
    from session_store import OutboxRow, SessionDB

__all__ = ["Delivery", "patience"]

AT_ONCE = 8
GIVE_UP_SECONDS = 24 * 3600.0
#: A clock that jumped ahead must not fail what was hardly tried.
GIVE_UP_ATTEMPTS = 10
#: So many times a part is tried as soon as it may be; then ever longer is waited, up to this.
PROMPT_ATTEMPTS = 3
LONGEST_WAIT = 60.0
IDLE_SECONDS = 5.0
#: Between two looks for what is due, however much is committed.
LOOK_REST_SECONDS = 0.01
STORE_RETRY_SECONDS = 1.0
EDIT_AGAIN_SECONDS = 1.0
#: How often sends that dead processes left under way are looked for: a process of another container may seem alive
#: for a while after its end.
RECOVER_SECONDS = 20.0
#: Formatting a longer text takes long enough to be felt by everything else on the event loop.
LONG_TEXT = 8_000

_log = structlog.get_logger(__name__)

Account: TypeAlias = tuple[str, str]
_Write: TypeAlias = Callable[[], Awaitable[object]]


def patience(delay: float, attempts: int) -> float:
    """Seconds until a part is tried again that surely was not sent, after `attempts` earlier tries."""
    if attempts <= PROMPT_ATTEMPTS:
        return delay
    return max(delay, min(LONGEST_WAIT, 2.0 ** min(attempts - PROMPT_ATTEMPTS, 16)))


class Delivery:
    """Sends what the accounts of this process owe. Nothing of an account goes out before `open` names it."""

    def __init__(
        self,
        db: SessionDB,
        adapters: Mapping[Account, Adapter],
        holder: str,
        *,
        unknown: Literal["resend", "hold"],
        streaming: Streaming | None = None,
    ) -> None:
        self._db = db
        self._adapters = adapters
        self._holder = holder
        self._resend = unknown == "resend"
        self._streaming = streaming
        self._opened: set[Account] = set()
        self._busy: dict[int, Account] = {}
        #: Places that have had their turn in this round: a backlog of some keeps nobody else waiting.
        self._served: dict[Account, set[int]] = {}
        self._paused: dict[Account, float] = {}
        self._recovered = -RECOVER_SECONDS
        self._bell = Bell(db, "outbox", rest=LOOK_REST_SECONDS)
        self._closing = False
        self._halted = anyio.Event()
        self.ended = anyio.Event()

    def open(self, account: Account) -> None:
        """Send what this account owes from now on: its adapter has started."""
        self._opened.add(account)
        self._bell.ring()

    async def run(self) -> None:
        """Deliver until `close`; `ended` is set when it returns."""
        try:
            async with anyio.create_task_group() as tasks:
                while not self._halted.is_set():
                    try:
                        await self._recover()
                        found = await self._dispatch(tasks)
                        if self._closing and not found and not self._busy:
                            return
                        # What was found is under way, and its end is a reason to look again.
                        await self._bell.wait(IDLE_SECONDS if found else await self._until_due())
                    except StoreError as error:
                        _log.warning("outbox_unreadable", error=str(error))
                        await self._pause(STORE_RETRY_SECONDS)
        finally:
            self.ended.set()

    def close(self) -> None:
        """Send what is due now, then end; what waits for a later time is left in the outbox."""
        self._closing = True
        self._bell.ring()

    def halt(self) -> None:
        """Begin no further send, and wait for nothing but those under way."""
        self._halted.set()
        self._bell.ring()

    # --- what is due -------------------------------------------------------------------------------------------------

    async def _recover(self) -> None:
        """Settle what dead processes left under way."""
        if anyio.current_time() - self._recovered >= RECOVER_SECONDS:
            settled = await self._db.outbox.recover(list(self._adapters), self._resend)
            self._recovered = anyio.current_time()
            if settled:
                _log.warning("outcomes_unknown", parts=settled, resend=self._resend)

    def _open_accounts(self) -> list[Account]:
        now = anyio.current_time()
        return [account for account in self._opened if self._paused.get(account, 0.0) <= now]

    async def _until_due(self) -> float:
        """Seconds to wait at most before looking again."""
        now = anyio.current_time()
        waits = [pause - now for pause in self._paused.values()]
        # A full account is looked at again when one of its sends has ended.
        free = [account for account in self._open_accounts() if self._room(account)]
        due = await self._db.outbox.next_due(free) if free else None
        if due is not None:
            waits.append(due - time.time())
        return min([IDLE_SECONDS, *(wait for wait in waits if wait > 0)])

    def _room(self, account: Account) -> int:
        return AT_ONCE - sum(busy == account for busy in self._busy.values())

    async def _dispatch(self, tasks: TaskGroup) -> bool:
        """Begin what is due, one row per place; returns whether anything is."""
        accounts = [account for account in self._open_accounts() if self._room(account) > 0]
        served = set().union(*(self._served.get(account, ()) for account in accounts))
        rows = await self._db.outbox.due(accounts, limit=2 * AT_ONCE, last=served) if accounts else []
        waiting = {(row["platform"], row["account"]) for row in rows if row["place_id"] not in served}
        for account in accounts:
            if account not in waiting:
                self._served.pop(account, None)
        for row in rows:
            account = (row["platform"], row["account"])
            if row["place_id"] not in self._busy and self._room(account) > 0 and not self._halted.is_set():
                self._busy[row["place_id"]] = account
                self._served.setdefault(account, set()).add(row["place_id"])
                tasks.start_soon(self._deliver, row)
        return bool(rows)

    async def _deliver(self, row: OutboxRow) -> None:
        try:
            adapter = self._adapters[row["platform"], row["account"]]
            if row["rendered"] is not None:
                await self._send(row, adapter)
            elif (parts := await self._formatted(row, adapter)) is not None:
                await self._send(row, adapter, parts)
        except StoreError as error:
            _log.warning("delivery_postponed", outbox_id=row["id"], error=str(error))
            await self._pause(STORE_RETRY_SECONDS)
        except Exception as error:  # noqa: BLE001 - one row must not stop the others, whatever is wrong with it
            _log.exception("delivery_failed", outbox_id=row["id"])
            reason = f"it could not be sent: {type(error).__name__}: {error}"
            await self._record(row, lambda: self._db.outbox.fail(row["id"], reason))
        finally:
            self._busy.pop(row["place_id"], None)
            self._bell.ring()

    async def _formatted(self, row: OutboxRow, adapter: Adapter) -> list[RenderedPart] | None:
        """The parts of an answer; None if it cannot be formatted and has failed."""
        try:
            if len(row["body"]) > LONG_TEXT:
                parts = await anyio.to_thread.run_sync(adapter.render, row["body"])
            else:
                parts = adapter.render(row["body"])
            return [RenderedPart(part.plain, json.dumps(part.payload, ensure_ascii=False)) for part in parts]
        except Exception as error:  # noqa: BLE001 - one answer that cannot be formatted must not stop the others
            _log.exception("formatting_failed", outbox_id=row["id"])
            await self._db.outbox.fail(row["id"], f"it could not be formatted: {error}")
            return None

    # --- sending -----------------------------------------------------------------------------------------------------

    async def _send(self, row: OutboxRow, adapter: Adapter, parts: Sequence[RenderedPart] | None = None) -> None:
        """Send a row; parts: what it is split into first, of which the row is the first then."""
        if row["finishes"] is not None and row["turn_id"] is not None and self._streaming is not None:
            await self._streaming.end(row["turn_id"])
        try:
            if not await self._db.outbox.begin(row["id"], self._holder, parts):
                return
        except StoreError as error:
            # It may be marked all the same; nothing was sent, and nobody else would settle it while we live.
            reason = str(error)
            await self._record(row, lambda: self._db.outbox.retry(row["id"], 0.0, reason))
            return
        part = OutboundPart(
            plain=parts[0].body if parts else row["body"],
            payload=json.loads(parts[0].rendered if parts else row["rendered"] or "{}"),
            reply_to=row["reply_to"],
            idempotency_key=f"tl{row['id']}",
        )
        # A mail needs the name, for its subject.
        place = replace(place_of(row), name=row["place_name"], parent=row["place_parent"])
        try:
            receipt = await _handed_over(adapter, place, part, row["finishes_message"])
        except RetryLater as error:
            outcome = self._later(row, error)
        except Gone as error:
            outcome = self._gone(row, place, error)
        except Refused as error:
            outcome = self._alone(row, str(error)) if row["finishes_message"] else self._failed(row, str(error))
        except UnknownOutcome as error:
            outcome = self._unknown(row, str(error))
        except Exception as error:  # noqa: BLE001 - whatever a library raises here, nobody knows whether it was sent
            _log.exception("send_failed", outbox_id=row["id"])
            outcome = self._unknown(row, f"{type(error).__name__}: {error}")
        else:
            outcome = self._sent(row, place, receipt)
        await self._record(row, outcome)

    async def _record(self, row: OutboxRow, write: _Write) -> None:
        """Write what became of a send, as soon as the store can."""
        while True:
            try:
                await write()
            except StoreError as error:
                _log.warning("receipt_postponed", outbox_id=row["id"], error=str(error))
                if self._halted.is_set():
                    return
                await self._pause(STORE_RETRY_SECONDS)
            else:
                return

    def _sent(self, row: OutboxRow, place: Place, receipt: Receipt) -> _Write:
        async def write() -> None:
            await self._db.outbox.sent(row["id"], receipt.message_id)
            if row["kind"] == "answer" and row["turn_id"] is not None and self._streaming is not None:
                # While its turn runs, this is the beginning of the answer.
                self._streaming.posted(row["turn_id"], None if receipt.thread_gone else receipt.message_id)
            if receipt.thread_gone:
                await self._db.routes.unbind(place_ref(place))
            # A note about a notice would be noted itself, and so on.
            if receipt.note is not None and row["kind"] != "notice":
                _log.warning("delivered_elsewhere", outbox_id=row["id"], note=receipt.note)
                notice = NewOutbox(place_ref(replace(place, thread="")), "notice", receipt.note)
                await self._db.outbox.add([notice], session_id=row["session_id"], op_id=f"note:{row['line']}")

        return write

    def _later(self, row: OutboxRow, error: RetryLater) -> _Write:
        old = time.time() - (row["again_at"] or row["created_at"]) > GIVE_UP_SECONDS
        if old and row["attempts"] >= GIVE_UP_ATTEMPTS:
            return self._failed(row, f"given up after a day: {error}")
        if error.whole_account:
            self._paused[row["platform"], row["account"]] = anyio.current_time() + error.delay
        delay = patience(error.delay, row["attempts"] + 1)
        return lambda: self._db.outbox.retry(row["id"], delay, str(error))

    def _gone(self, row: OutboxRow, place: Place, error: Gone) -> _Write:
        """To the chat itself when its topic is gone, to the chat it became when it moved; else it has failed.

        Nothing may lead to a topic that is gone any more: the next message of that chat has a route of its own. A topic
        that is only closed keeps its route.
        """
        if error.moved_to and error.moved_to != place.chat:
            return self._moved(row, place, error.moved_to, str(error))
        if row["finishes_message"]:
            return self._alone(row, str(error))
        if not (error.thread_only and place.thread):
            return self._failed(row, str(error))
        reason, words = str(error), f"This was for a topic that is {'closed' if error.closed else 'gone'}. {error}"
        _log.warning("delivered_elsewhere", outbox_id=row["id"], error=reason)

        async def write() -> None:
            if not error.closed:
                await self._db.routes.unbind(place_ref(place))
            await self._db.outbox.redirect(row["id"], place_ref(replace(place, thread="")), reason, words)

        return write

    def _moved(self, row: OutboxRow, place: Place, new_chat: str, reason: str) -> _Write:
        """Everything of the chat goes to its new id, this row with it."""
        _log.warning("chat_moved", outbox_id=row["id"], error=reason)

        async def write() -> None:
            await self._db.moves.move_chat(move_of(place, place.chat, new_chat))
            await self._db.outbox.retry(row["id"], 0.0, reason)

        return write

    def _failed(self, row: OutboxRow, error: str) -> _Write:
        _log.warning("not_delivered", outbox_id=row["id"], error=error)
        return lambda: self._db.outbox.fail(row["id"], error)

    def _alone(self, row: OutboxRow, error: str) -> _Write:
        """Send the answer as a message of its own; what is wrong with its place, if anything, shows then."""
        _log.info("answer_comes_anew", outbox_id=row["id"], error=error)
        return lambda: self._db.outbox.stand_alone(row["id"], error)

    def _unknown(self, row: OutboxRow, error: str) -> _Write:
        if row["finishes_message"] is not None:
            return self._later(row, RetryLater(error, EDIT_AGAIN_SECONDS))
        _log.warning("outcome_unknown", outbox_id=row["id"], error=error, resend=self._resend)
        return lambda: self._db.outbox.unknown(row["id"], error, self._resend)

    async def _pause(self, seconds: float) -> None:
        """Wait, unless everything is to end."""
        with anyio.move_on_after(seconds):
            await self._halted.wait()


async def _handed_over(adapter: Adapter, place: Place, part: OutboundPart, message_id: str | None) -> Receipt:
    """Send a part, or put it in the place of a message that is there."""
    if message_id is None:
        return await adapter.send(place, part)
    if not isinstance(adapter, Edits):
        raise Refused("The account cannot edit messages.")
    await adapter.edit(place, message_id, part)
    return Receipt(message_id)
