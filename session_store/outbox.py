"""What must go out and is not yet sent: the durable queue at the outer edge.

Contract: rows of one place go out one after another, in the order in which they were stored; the parts of one answer
keep together. Only the head of a place's line is ever due, so a row that must wait blocks its own place and no other.
States: waiting -> sending (before the I/O) -> sent | unknown | failed, or back to waiting with a delay; settled rows
block nothing; what was sent and came back has failed. `begin` is compare-and-swap. Every operation says from which
states it leads on, so that a repeated or late one changes nothing wrongly.
Failure: a row left in sending by a dead process has an unknown outcome (`recover`), which is sent again once or held.
Limits: the caller sets the delays; a delay set by a clock that has been put back since is over.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import cast

from session_store.models import NewOutbox, PlaceRef, RenderedPart
from session_store.outbox_care import ROW, OutboxCare
from session_store.places import place_id, present
from session_store.processes import token_alive
from session_store.rows import OutboxRow
from session_store.tx import Row, Rx, Tx

__all__ = ["KEEP_SECONDS", "Account", "Origin", "Outbox", "accounts_json", "add_rows"]

Account = tuple[str, str]
"""Platform and account of it."""

KEEP_SECONDS = 30 * 86_400.0
"""How long settled rows are kept."""

_CHUNK = 1000
#: A part whose process died is sent again so often: most deaths fall before the request left, and several may come in
#: a row. A connection that broke is one resend only (decision 0011).
_RESENDS_AFTER_DEATHS = 5

# A row that is not yet split into parts; its line is its own id.
ADD = """
INSERT INTO outbox (op_id, platform, account, place_id, session_id, message_id, turn_id, inbox_id, kind, body, reply_to,
                    created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12)
"""
SET_LINE = "UPDATE outbox SET line = id WHERE id = ?"
BY_OP = "SELECT id FROM outbox WHERE op_id = ?"
# The heads of the lines of all places of the accounts ?1: one index step per place, whatever lies behind the head.
_HEADS = """
WITH RECURSIVE
account (platform, account) AS (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?1)
),
line (platform, account, place_id) AS (
    SELECT platform, account,
           (SELECT MIN(o.place_id) FROM outbox AS o
            WHERE o.state IN ('waiting', 'sending') AND o.platform = account.platform AND o.account = account.account)
    FROM account
    UNION ALL
    SELECT platform, account,
           (SELECT MIN(o.place_id) FROM outbox AS o
            WHERE o.state IN ('waiting', 'sending') AND o.platform = line.platform AND o.account = line.account
                  AND o.place_id > line.place_id)
    FROM line WHERE place_id IS NOT NULL
),
head (id) AS (
    SELECT (SELECT o.id FROM outbox AS o
            WHERE o.state IN ('waiting', 'sending') AND o.platform = line.platform AND o.account = line.account
                  AND o.place_id = line.place_id
            ORDER BY o.line, o.part LIMIT 1)
    FROM line WHERE place_id IS NOT NULL
)
"""
# Heads that may be sent at ?2, at most ?3 of each account: those of the places ?4 last, else the oldest first. A row
# touched after ?2 was delayed by a clock since put back.
DUE = f"""
{_HEADS},
due (id, number) AS (
    SELECT o.id, ROW_NUMBER() OVER (
        PARTITION BY o.platform, o.account
        ORDER BY o.place_id IN (SELECT value FROM json_each(?4)), o.line, o.part)
    FROM head JOIN outbox AS o ON o.id = head.id
    WHERE o.state = 'waiting' AND (o.next_at <= ?2 OR o.updated_at > ?2 + 1)
)
{ROW}
FROM due JOIN outbox AS o ON o.id = due.id JOIN places AS p ON p.id = o.place_id
WHERE due.number <= ?3 ORDER BY o.place_id IN (SELECT value FROM json_each(?4)), o.line, o.part
"""  # noqa: S608 - joined from constants
# The earliest time at which a waiting head may be sent.
NEXT_DUE = f"""
{_HEADS} SELECT MIN(o.next_at) AS next_at FROM head JOIN outbox AS o ON o.id = head.id WHERE o.state = 'waiting'
"""  # noqa: S608 - joined from constants
SOURCE = "SELECT session_id, turn_id, inbox_id FROM outbox WHERE id = ?"
UNSPLIT = "SELECT id FROM outbox WHERE id = ? AND rendered IS NULL AND state = 'waiting'"
# The row becomes the first part of its answer.
SPLIT_HEAD = "UPDATE outbox SET part = 1, parts = ?, body = ?, rendered = ?, updated_at = ? WHERE id = ?"
# A further part of the answer whose first part is row ?1.
SPLIT_MORE = """
INSERT INTO outbox (line, platform, account, place_id, session_id, message_id, turn_id, inbox_id, kind, part, parts,
                    body, rendered, created_at, updated_at)
SELECT line, platform, account, place_id, session_id, message_id, turn_id, inbox_id, kind, ?2, parts,
       ?3, ?4, created_at, ?5
FROM outbox WHERE id = ?1
"""
DROP = "UPDATE outbox SET state = 'dropped', error = ?, updated_at = ? WHERE id = ? AND state = 'waiting'"
BEGIN = """
UPDATE outbox SET state = 'sending', holder = ?, attempts = attempts + 1, updated_at = ?
WHERE id = ? AND state = 'waiting'
"""
# A receipt counts also when the outcome was judged unknown meanwhile, even if the row waits to be sent again.
SENT = """
UPDATE outbox SET state = 'sent', platform_message_id = ?, holder = NULL, error = NULL, updated_at = ?
WHERE id = ? AND state IN ('sending', 'unknown', 'waiting')
"""
RETRY = """
UPDATE outbox SET state = 'waiting', next_at = ?, error = ?, holder = NULL, updated_at = ?
WHERE id = ? AND state = 'sending'
"""
UNKNOWN = (
    "UPDATE outbox SET state = 'unknown', error = ?, holder = NULL, updated_at = ? WHERE id = ? AND state = 'sending'"
)
# An unknown outcome is sent again at once, a bounded number of times.
RESEND = """
UPDATE outbox SET state = 'waiting', resends = resends + 1, next_at = 0, error = ?, holder = NULL, updated_at = ?
WHERE id = ? AND state = 'sending' AND resends < ?
"""
# An edit may be made any number of times: one of unknown outcome is simply made again.
EDIT_AGAIN = """
UPDATE outbox SET state = 'waiting', next_at = ?1, error = ?2, holder = NULL, updated_at = ?3
WHERE id = ?4 AND state = 'sending' AND EXISTS (
    SELECT 1 FROM outbox AS s WHERE s.id = outbox.finishes AND s.place_id = outbox.place_id AND s.state = 'sent'
        AND s.platform_message_id IS NOT NULL)
"""
# The message that was to be edited cannot be: the part is a message of its own.
STAND_ALONE = """
UPDATE outbox SET finishes = NULL, state = 'waiting', next_at = 0, error = ?, holder = NULL, updated_at = ?
WHERE id = ? AND state = 'sending'
"""
# What is still to be sent of the answer that row ?4 belongs to goes to another place, and answers no message there.
REDIRECT = """
UPDATE outbox SET place_id = ?1, state = 'waiting', next_at = 0, reply_to = NULL, error = ?2, holder = NULL,
    updated_at = ?3
WHERE line = (SELECT line FROM outbox WHERE id = ?4) AND state IN ('waiting', 'sending')
"""
FAIL = """
UPDATE outbox SET state = 'failed', error = ?, holder = NULL, updated_at = ?
WHERE id = ? AND state IN ('waiting', 'sending')
"""
# Sends under way on the given accounts, with who makes them.
UNDER_WAY = """
SELECT o.id, o.holder FROM json_each(?1) AS a JOIN outbox AS o
  ON o.state IN ('waiting', 'sending') AND o.platform = json_extract(a.value, '$[0]')
     AND o.account = json_extract(a.value, '$[1]')
WHERE o.state = 'sending' ORDER BY o.id LIMIT 1000
"""
# The row with the platform's id ?3, if it counts as sent.
SENT_AS = """
SELECT id FROM outbox
WHERE state = 'sent' AND platform = ?1 AND account = ?2 AND platform_message_id = ?3 ORDER BY id DESC LIMIT 1
"""
CAME_BACK = """
UPDATE outbox SET state = 'failed', error = ?, updated_at = ? WHERE id = ? AND state = 'sent'
"""
COUNT_OPEN = "SELECT state, COUNT(*) AS n FROM outbox WHERE state IN ('waiting', 'sending') GROUP BY state"
COUNT_SETTLED = """
SELECT state, COUNT(*) AS n FROM outbox WHERE state IN ('sent', 'unknown', 'failed', 'dropped') GROUP BY state
"""
SWEEP = """
DELETE FROM outbox WHERE id IN (
    SELECT id FROM outbox WHERE state IN ('sent', 'unknown', 'failed', 'dropped') AND updated_at < ? LIMIT ?)
"""


def accounts_json(accounts: Sequence[Account]) -> str:
    """Accounts as the parameter of a statement."""
    return json.dumps([list(account) for account in accounts], ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Origin:
    """What outgoing rows come from."""

    session_id: str | None = None
    message_id: int | None = None
    turn_id: str | None = None
    inbox_id: int | None = None


def add_rows(tx: Tx, rows: Sequence[NewOutbox], origin: Origin, *, op_id: str | None = None) -> list[int]:
    """Queue rows in this order; returns their ids. With an op_id a repeated call returns the same ids."""
    source = (origin.session_id, origin.message_id, origin.turn_id, origin.inbox_id)
    ids: list[int] = []
    for number, row in enumerate(rows):
        key = row.op_id or (None if op_id is None else f"{op_id}:{number}")
        known = None if key is None else tx.one(BY_OP, (key,))
        if known is not None:
            ids.append(known["id"])
            continue
        where = (row.place.platform, row.place.account, place_id(tx, row.place))
        # In a chat that has moved, the same number names another message.
        reply_to = row.reply_to if present(tx, row.place).chat == row.place.chat else None
        new = tx.insert(ADD, (key, *where, *source, row.kind, tx.kept(row.body), reply_to, tx.now))
        tx.run(SET_LINE, (new,))
        ids.append(new)
    return ids


def due(rx: Rx, accounts: Sequence[Account], now: float, limit: int, last: Collection[int] = ()) -> list[OutboxRow]:
    """Return the heads that may be sent now, at most `limit` of each account; see `Outbox.due`."""
    return cast("list[OutboxRow]", rx.all(DUE, (accounts_json(accounts), now, limit, json.dumps(list(last)))))


def expand(tx: Tx, outbox_id: int, parts: Sequence[RenderedPart]) -> None:
    """Replace an unsplit row by its parts; the first keeps its id. Nothing to send drops it. Again: no change."""
    if tx.one(UNSPLIT, (outbox_id,)) is None:
        return
    if not parts:
        tx.run(DROP, ("The formatter left nothing to send.", tx.now, outbox_id))
        return
    tx.run(SPLIT_HEAD, (len(parts), parts[0].body, parts[0].rendered, tx.now, outbox_id))
    for number, part in enumerate(parts[1:], start=2):
        tx.run(SPLIT_MORE, (outbox_id, number, part.body, part.rendered, tx.now))


def begin(tx: Tx, outbox_id: int, holder: str, parts: Sequence[RenderedPart] | None) -> bool:
    """Mark a row as being sent, split into `parts` first if there are any; False if it is not to be sent now."""
    if parts is not None:
        expand(tx, outbox_id, parts)
    return tx.run(BEGIN, (holder, tx.now, outbox_id)) > 0


def settle_unknown(tx: Tx, outbox_id: int, error: str, *, resend: bool, most: int = 1) -> bool:
    """Settle a send with unknown outcome; True if it is sent again, which it is `most` times (an edit always)."""
    if tx.run(EDIT_AGAIN, (tx.now, error, tx.now, outbox_id)):
        return True
    if resend and tx.run(RESEND, (error, tx.now, outbox_id, most)):
        return True
    tx.run(UNKNOWN, (error, tx.now, outbox_id))
    return False


def recover(tx: Tx, accounts: Sequence[Account], *, resend: bool, own: str | None = None) -> int:
    """Settle the sends that dead processes left under way, and those of `own`; returns how many (at most 1000)."""
    settled = 0
    judged: dict[str | None, bool] = {own: False, None: False}
    for row in tx.all(UNDER_WAY, (accounts_json(accounts),)):
        holder: str | None = row["holder"]
        if holder is not None and holder not in judged:
            judged[holder] = token_alive(tx, holder, tx.boot_now)
        if not judged[holder]:
            settle_unknown(
                tx, row["id"], "The process stopped while it was sending.", resend=resend, most=_RESENDS_AFTER_DEATHS
            )
            settled += 1
    return settled


def redirect(tx: Tx, outbox_id: int, place: PlaceRef, error: str, notice: str) -> bool:
    """Send the rest of an answer to another place of its account, then a notice there; False if nothing is left."""
    if not tx.run(REDIRECT, (place_id(tx, place), error, tx.now, outbox_id)):
        return False
    source = tx.all(SOURCE, (outbox_id,))[0]
    origin = Origin(source["session_id"], None, source["turn_id"], source["inbox_id"])
    add_rows(tx, [NewOutbox(place, "notice", notice)], origin)
    return True


def counts(rx: Rx) -> dict[str, int]:
    """Return how many rows are in each state; states without rows are missing."""
    rows: list[Row] = [*rx.all(COUNT_OPEN), *rx.all(COUNT_SETTLED)]
    return {row["state"]: row["n"] for row in rows}


class Outbox(OutboxCare):
    """The queue at the outer edge; each method is one query or one transaction."""

    async def add(
        self,
        rows: Sequence[NewOutbox],
        *,
        inbox_id: int | None = None,
        session_id: str | None = None,
        op_id: str | None = None,
    ) -> list[int]:
        """Queue rows outside a turn. op_id: makes a repeated call harmless (same ids, nothing added)."""
        size = sum(len(row.body) for row in rows)
        origin = Origin(session_id=session_id, inbox_id=inbox_id)
        return await self._engine.write(lambda tx: add_rows(tx, rows, origin, op_id=op_id), size=size)

    async def due(self, accounts: Sequence[Account], limit: int = 64, *, last: Collection[int] = ()) -> list[OutboxRow]:
        """Heads of their places' lines that may be sent now, oldest first, at most `limit` of each account.

        last: places whose turn comes after that of all others. A row without `rendered` must be split when it is begun.
        """
        now = time.time()
        return await self._engine.read(lambda rx: due(rx, accounts, now, limit, last))

    async def next_due(self, accounts: Sequence[Account]) -> float | None:
        """When the next waiting head may be sent (Unix seconds, may be past), or None if nothing waits."""
        when: float | None = await self._engine.read(lambda rx: rx.value(NEXT_DUE, (accounts_json(accounts),)))
        return when

    async def begin(self, outbox_id: int, holder: str, parts: Sequence[RenderedPart] | None = None) -> bool:
        """Record that the send starts now. False: somebody else has it, or it is settled; do not send.

        parts: what the row is replaced by in the same transaction, in its position of the line, unless it was before.
        It is the first of them then; without any there is nothing to send.
        """
        size = sum(len(part.body) + len(part.rendered) for part in parts or ())
        return await self._engine.write(lambda tx: begin(tx, outbox_id, holder, parts), size=size)

    async def sent(self, outbox_id: int, platform_message_id: str | None) -> None:
        """Record the receipt of a send."""
        await self._engine.write(lambda tx: tx.run(SENT, (platform_message_id, tx.now, outbox_id)))

    async def retry(self, outbox_id: int, delay: float, error: str) -> None:
        """Record that a send surely did not happen and is due again in `delay` seconds."""
        await self._engine.write(lambda tx: tx.run(RETRY, (tx.now + delay, error, tx.now, outbox_id)))

    async def unknown(self, outbox_id: int, error: str, resend: bool) -> bool:  # noqa: FBT001 - the rule of the place
        """Record that nobody knows whether a send happened. With `resend` it is sent once more: True if so."""
        return await self._engine.write(lambda tx: settle_unknown(tx, outbox_id, error, resend=resend))

    async def redirect(self, outbox_id: int, place: PlaceRef, error: str, notice: str) -> bool:
        """Move what is left of an answer to another place of its account, with a notice (Markdown) after it.

        For answers whose place is gone. False, and no notice, if nothing of it is still to be sent.
        """
        return await self._engine.write(lambda tx: redirect(tx, outbox_id, place, error, notice))

    async def stand_alone(self, outbox_id: int, error: str) -> None:
        """Record that the message which a part was to take the place of cannot be edited: it is sent as a new one."""
        await self._engine.write(lambda tx: tx.run(STAND_ALONE, (error, tx.now, outbox_id)))

    async def fail(self, outbox_id: int, error: str) -> None:
        """Record that a row cannot be sent."""
        await self._engine.write(lambda tx: tx.run(FAIL, (error, tx.now, outbox_id)))

    async def came_back(self, account: Account, platform_message_id: str, error: str) -> bool:
        """Record that what was sent did not arrive after all; False if no row counts as sent under this id."""
        found = await self._engine.read(lambda rx: rx.value(SENT_AS, (*account, platform_message_id)))
        if found is None:
            return False
        return await self._engine.write(lambda tx: tx.run(CAME_BACK, (error, tx.now, found)) > 0)

    async def recover(self, accounts: Sequence[Account], resend: bool, *, own: str | None = None) -> int:  # noqa: FBT001 - the rule of the place
        """Settle sends that were under way when their process died; returns how many, at most 1000 per call.

        own: the caller's token, if none of its own sends is under way (delivery starts again in a living process).
        """
        return await self._engine.write(lambda tx: recover(tx, accounts, resend=resend, own=own))

    async def counts(self) -> dict[str, int]:
        """How many rows are in each state; states without rows are missing."""
        return await self._engine.read(counts)

    async def sweep(self, older_than: float = KEEP_SECONDS) -> int:
        """Remove rows settled more than `older_than` seconds ago; returns how many."""
        removed = 0
        while True:
            gone = await self._engine.write(lambda tx: tx.run(SWEEP, (tx.now - older_than, _CHUNK)))
            removed += gone
            if gone < _CHUNK:
                return removed
