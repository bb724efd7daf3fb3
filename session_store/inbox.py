"""What came in and is not yet handled: the durable queue at the inner edge.

Contract: `accept` is the first thing that happens to an event; the platform is told only after its commit. A row is
unique per platform, account and dedupe key for ever after, so any number of deliveries is one row. States: new ->
taken (by a turn) -> done; or new -> done (`complete`: commands and the like, with their effects and replies in the same
transaction); or set_aside, a row that could not be handled and waits for a person to look. Payloads go when a row is
done; its key stays 30 days.
Failure: every operation leads on from named states only, so a repeated one changes nothing.
Limits: `pending` shows at most `limit` rows, fairly over the lanes, so that a flooded lane hides no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from session_store import bots
from session_store.effects import Result, apply_all
from session_store.jsontext import from_json, to_json
from session_store.lineage import root_of
from session_store.models import Accepted, Effect, NewInbox, NewOutbox
from session_store.outbox import KEEP_SECONDS, Account, Origin, accounts_json, add_rows
from session_store.people import ensure_allowed
from session_store.places import place_id
from session_store.processes import boot_clock, token_alive
from session_store.rows import InboxRow
from session_store.sessions import session_row
from session_store.tx import Row, Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Head", "Inbox", "accept", "give_back", "mark_done", "origin_of", "retake", "take"]

_CHUNK = 1000

KNOWN = "SELECT id FROM inbox WHERE platform = ? AND account = ? AND dedupe_key = ?"
ADD = """
INSERT INTO inbox (platform, account, dedupe_key, kind, place_id, session_key, session_id, lane, person_id, sender,
                   payload, received_at, holder)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_COLUMNS = """
SELECT i.id, i.platform, i.account, i.dedupe_key, i.kind, i.place_id, p.chat_type, p.chat, p.thread,
       p.name AS place_name, i.session_key, i.session_id, i.lane, i.person_id, i.sender, i.payload, i.received_at,
       i.state, i.attempts, i.turn_id, i.holder, i.error
"""
_ROW = f"{_COLUMNS} FROM inbox AS i JOIN places AS p ON p.id = i.place_id"
# New rows of the accounts ?1 that the process ?2 may work: the first of every lane, then the second, ... at most ?3.
PENDING = f"""
WITH open AS (
    SELECT i.id, ROW_NUMBER() OVER (PARTITION BY i.lane ORDER BY i.id) AS place_in_lane
    FROM json_each(?1) AS a JOIN inbox AS i
      ON i.state IN ('new', 'taken') AND i.platform = json_extract(a.value, '$[0]')
         AND i.account = json_extract(a.value, '$[1]')
    WHERE i.state = 'new' AND (i.holder IS NULL OR i.holder = ?2)
)
{_ROW} WHERE i.id IN (SELECT id FROM open ORDER BY place_in_lane, id LIMIT ?3) ORDER BY i.id
"""  # noqa: S608 - joined from constants
# The first new row of every lane that is not busy (?3), and whether more are behind it; otherwise as above.
HEADS = f"""
{_COLUMNS},
EXISTS (SELECT 1 FROM inbox AS b WHERE b.state = 'new' AND b.lane = i.lane AND b.id > i.id) AS more
FROM inbox AS i JOIN places AS p ON p.id = i.place_id WHERE i.id IN (
    SELECT MIN(o.id)
    FROM json_each(?1) AS a JOIN inbox AS o
      ON o.state IN ('new', 'taken') AND o.platform = json_extract(a.value, '$[0]')
         AND o.account = json_extract(a.value, '$[1]')
    WHERE o.state = 'new' AND (o.holder IS NULL OR o.holder = ?2) AND o.lane NOT IN (SELECT value FROM json_each(?3))
    GROUP BY o.lane ORDER BY MIN(o.id) LIMIT ?4)
ORDER BY i.id
"""  # noqa: S608 - joined from constants
# The first new row of the lane ?1 that the process ?2 may work, of the accounts ?3.
NEXT_IN = f"""
{_ROW} WHERE i.id = (
    SELECT o.id FROM inbox AS o
    WHERE o.state = 'new' AND o.lane = ?1 AND (o.holder IS NULL OR o.holder = ?2)
          AND EXISTS (SELECT 1 FROM json_each(?3) AS a
                      WHERE json_extract(a.value, '$[0]') = o.platform AND json_extract(a.value, '$[1]') = o.account)
    ORDER BY o.id LIMIT 1)
"""  # noqa: S608 - joined from constants
ONE = f"{_ROW} WHERE i.id = ?"
# The oldest message of a lane that nobody has begun to answer.
WAITS_IN = "SELECT MIN(id) AS id FROM inbox WHERE state = 'new' AND kind = 'message' AND lane = ?"
# The new rows of one album in a lane; albums are small (ten parts at most on the platforms we know).
ALBUM = f"""
{_ROW} WHERE i.state = 'new' AND i.lane = ? AND json_extract(i.payload, '$.group_id') = ? ORDER BY i.id LIMIT 100
"""
# The new rows of the lane of row ?1 from that row on, if it is new itself, of the same process; at most ?2.
FOLLOWING = f"""
{_ROW} JOIN inbox AS f ON f.id = ?1
WHERE f.state = 'new' AND i.state = 'new' AND i.lane = f.lane AND i.id >= f.id AND i.holder IS f.holder
ORDER BY i.id LIMIT ?2
"""
OF_TURN = f"{_ROW} WHERE i.turn_id = ? ORDER BY i.id LIMIT 1000"
ASIDE = f"{_ROW} WHERE i.state = 'set_aside' ORDER BY i.id DESC LIMIT ?"
STATE = "SELECT state FROM inbox WHERE id = ?"
# New rows that only one process may work and whose session belongs to the conversation ?1.
RESERVED = """
SELECT i.id, i.holder FROM inbox AS i LEFT JOIN sessions AS s ON s.id = i.session_id
WHERE i.state IN ('new', 'taken') AND i.state = 'new' AND i.holder IS NOT NULL AND i.session_id IS NOT NULL
      AND COALESCE(s.root_id, i.session_id) = ?1
ORDER BY i.id LIMIT 1000
"""
# New rows of one account that only one process may work, newest first.
KEPT = f"""
{_ROW} WHERE i.state IN ('new', 'taken') AND i.state = 'new' AND i.platform = ? AND i.account = ?
    AND i.holder IS NOT NULL
ORDER BY i.id DESC LIMIT 1000
"""
RESERVE = "UPDATE inbox SET holder = ? WHERE id = ? AND state = 'new'"
TAKE = (
    "UPDATE inbox SET state = 'taken', holder = ?, turn_id = ?, attempts = attempts + 1 WHERE id = ? AND state = 'new'"
)
GIVE_BACK = "UPDATE inbox SET state = 'new', turn_id = NULL, holder = NULL WHERE turn_id = ? AND state = 'taken'"
RETAKE = "UPDATE inbox SET holder = ?, attempts = attempts + ? WHERE turn_id = ? AND state = 'taken'"
ORIGIN = "SELECT MIN(id) AS id FROM inbox WHERE turn_id = ?"
TURN_DONE = "UPDATE inbox SET state = 'done', payload = NULL, done_at = ? WHERE turn_id = ? AND state = 'taken'"
DONE = "UPDATE inbox SET state = 'done', payload = NULL, done_at = ? WHERE id = ? AND state = 'new'"
SET_ASIDE = """
UPDATE inbox SET state = 'set_aside', error = ?, done_at = ? WHERE id = ? AND state IN ('new', 'taken')
"""
COUNT_OPEN = "SELECT state, COUNT(*) AS n FROM inbox WHERE state IN ('new', 'taken') GROUP BY state"
COUNT_ASIDE = "SELECT COUNT(*) AS n FROM inbox WHERE state = 'set_aside'"
FORGET = "DELETE FROM inbox WHERE id IN (SELECT id FROM inbox WHERE done_at IS NOT NULL AND done_at < ? LIMIT ?)"


def accept(tx: Tx, row: NewInbox) -> Accepted:
    """Record an event, or find it recorded."""
    known = tx.one(KNOWN, (row.place.platform, row.place.account, row.dedupe_key))
    if known is not None:
        return Accepted(known["id"], created=False)
    if not bots.heard(tx, row):
        return Accepted(0, created=False)
    key = (row.place.platform, row.place.account, row.dedupe_key)
    where = (place_id(tx, row.place), row.session_key, row.session_id, row.lane)
    event = (_who(tx, row), to_json(row.sender), to_json(_kept(tx, row.payload)), row.received_at, row.holder)
    return Accepted(tx.insert(ADD, (*key, row.kind, *where, *event)), created=True)


def _kept(tx: Tx, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is stored of an event: what was written in it and in what it quotes, perhaps without its secrets."""
    if not tx.redact:
        return payload
    kept = dict(payload)
    if isinstance(kept.get("text"), str):
        kept["text"] = tx.kept(kept["text"])
    quoted = kept.get("quoted")
    if isinstance(quoted, Mapping) and isinstance(quoted.get("text"), str):
        kept["quoted"] = {**quoted, "text": tx.kept(quoted["text"])}
    return kept


def _who(tx: Tx, row: NewInbox) -> str | None:
    """The person of a row; somebody who is merely allowed becomes one at their first event."""
    new = row.entrant
    return row.person_id if new is None else ensure_allowed(tx, row.place.platform, new.account, new.user_id, new.name)


def take(tx: Tx, inbox_id: int, holder: str, turn_id: str) -> None:
    """A turn takes a new row as its input."""
    tx.run(TAKE, (holder, turn_id, inbox_id))


def retake(tx: Tx, turn_id: str, holder: str, *, counts: bool) -> None:
    """A turn's rows go to the process that takes the turn over."""
    tx.run(RETAKE, (holder, int(counts), turn_id))


def give_back(tx: Tx, turn_id: str) -> None:
    """A turn's rows are new again: the turn cannot be worked, what came in can."""
    tx.run(GIVE_BACK, (turn_id,))


def origin_of(rx: Rx, turn_id: str) -> int | None:
    """Return the first inbox row of a turn."""
    origin: int | None = rx.value(ORIGIN, (turn_id,))
    return origin


def mark_done(tx: Tx, turn_id: str) -> None:
    """A turn's rows are handled: their payloads go, their keys stay."""
    tx.run(TURN_DONE, (tx.now, turn_id))


def complete(tx: Tx, inbox_id: int, outbox: Sequence[NewOutbox], effects: Sequence[Effect]) -> list[Result]:
    """Handle a new row at once: effects, replies and "done" together; returns the effects' results.

    A row that is not new any more is left as it is, nothing is added and the list is empty.
    """
    if tx.value(STATE, (inbox_id,)) != "new":
        return []
    results = apply_all(tx, effects)
    add_rows(tx, outbox, Origin(inbox_id=inbox_id))
    tx.run(DONE, (tx.now, inbox_id))
    return results


def set_aside(tx: Tx, inbox_id: int, error: str, outbox: Sequence[NewOutbox]) -> bool:
    """Put a row that cannot be handled where a person can look at it; False if it is done or set aside already."""
    if not tx.run(SET_ASIDE, (error, tx.now, inbox_id)):
        return False
    add_rows(tx, outbox, Origin(inbox_id=inbox_id))
    return True


def adopt(tx: Tx, session_id: str, holder: str) -> list[InboxRow]:
    """Take over the new rows that dead processes kept for themselves in a conversation; returns them, oldest first."""
    root = session_id if session_row(tx, session_id) is None else root_of(tx, session_id)
    reserved = tx.all(RESERVED, (root,))
    left = [
        row["id"] for row in reserved if row["holder"] != holder and not token_alive(tx, row["holder"], tx.boot_now)
    ]
    tx.run_many(RESERVE, [(holder, inbox_id) for inbox_id in left])
    return [_as_inbox(row) for inbox_id in left for row in tx.all(ONE, (inbox_id,))]


def left_behind(rx: Rx, account: Account, boot_now: float) -> list[InboxRow]:
    """Return the new rows of an account that a process kept for itself and did not live to work, newest first."""
    return [_as_inbox(row) for row in rx.all(KEPT, account) if not token_alive(rx, row["holder"], boot_now)]


def counts(rx: Rx) -> dict[str, int]:
    """Return how many rows are new, taken and set aside."""
    found = {"new": 0, "taken": 0, "set_aside": rx.value(COUNT_ASIDE)}
    return found | {row["state"]: row["n"] for row in rx.all(COUNT_OPEN)}


def _as_inbox(row: Row) -> InboxRow:
    decoded = {"sender": from_json(row["sender"]) or {}, "payload": from_json(row["payload"]) or {}}
    return cast("InboxRow", row | decoded)


class Head(NamedTuple):
    """The first new row of a lane. more: whether others were behind it."""

    row: InboxRow
    more: bool


class Inbox:
    """The queue at the inner edge; each method is one query or one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def accept(self, row: NewInbox) -> Accepted:
        """Record an event, or find it recorded. Confirm it to the platform only after this has returned."""
        size = len(str(row.payload))
        return await self._engine.write(lambda tx: accept(tx, row), size=size)

    async def pending(self, accounts: Sequence[Account], holder: str, limit: int = 200) -> list[InboxRow]:
        """New rows of these accounts that this process may work, by id; every lane is heard before any lane twice."""
        given = (accounts_json(accounts), holder, limit)
        return await self._engine.read(lambda rx: [_as_inbox(row) for row in rx.all(PENDING, given)])

    async def of_turn(self, turn_id: str) -> list[InboxRow]:
        """The input rows of a turn; payloads are there until the turn is settled."""
        return await self._engine.read(lambda rx: [_as_inbox(row) for row in rx.all(OF_TURN, (turn_id,))])

    async def heads(
        self, accounts: Sequence[Account], holder: str, limit: int = 64, busy_lanes: Sequence[str] = ()
    ) -> list[Head]:
        """The first new row of every lane but the busy ones, by id: what a dispatcher may begin now."""
        given = (accounts_json(accounts), holder, to_json(busy_lanes), limit)
        rows = await self._engine.read(lambda rx: rx.all(HEADS, given))
        return [Head(more=bool(row.pop("more")), row=_as_inbox(row)) for row in rows]

    async def next_in(self, lane: str, accounts: Sequence[Account], holder: str) -> InboxRow | None:
        """The first new row of one lane that this process may work, or None; cheap however many rows wait elsewhere."""
        given = (lane, holder, accounts_json(accounts))
        row = await self._engine.read(lambda rx: rx.one(NEXT_IN, given))
        return None if row is None else _as_inbox(row)

    async def waits_in(self, lane: str) -> int | None:
        """The oldest message of a lane that no turn has taken yet, None if none waits."""
        first: int | None = await self._engine.read(lambda rx: rx.value(WAITS_IN, (lane,)))
        return first

    async def get(self, inbox_id: int) -> InboxRow | None:
        """One row in whatever state; None once it was forgotten."""
        row = await self._engine.read(lambda rx: rx.one(ONE, (inbox_id,)))
        return None if row is None else _as_inbox(row)

    async def album(self, lane: str, group_id: str) -> list[InboxRow]:
        """The new rows of one album in a lane, in order."""
        return [_as_inbox(row) for row in await self._engine.read(lambda rx: rx.all(ALBUM, (lane, group_id)))]

    async def following(self, inbox_id: int, limit: int) -> list[InboxRow]:
        """A new row and those that wait behind it in its lane, in order; empty if it is not new any more."""
        rows = await self._engine.read(lambda rx: rx.all(FOLLOWING, (inbox_id, limit)))
        return [_as_inbox(row) for row in rows]

    async def adopt(self, session_id: str, holder: str) -> list[InboxRow]:
        """Take over what dead terminals had accepted for this conversation and not begun: the rows, oldest first."""
        return await self._engine.write(lambda tx: adopt(tx, session_id, holder))

    async def left_behind(self, account: Account) -> list[InboxRow]:
        """What dead terminals had accepted and not begun, in whatever conversation, newest first; `adopt` takes it."""
        return await self._engine.read(lambda rx: left_behind(rx, account, boot_clock()))

    async def complete(
        self, inbox_id: int, *, outbox: Sequence[NewOutbox] = (), effects: Sequence[Effect] = ()
    ) -> list[Result]:
        """Handle a new row in one transaction; returns the results of the effects (see effects.py).

        Empty when the row was handled before. TitleTaken and InvalidArgument of an effect leave the row new.
        """
        return await self._engine.write(lambda tx: complete(tx, inbox_id, outbox, effects))

    async def work_at_once(self, row: NewInbox, effects: Sequence[Effect]) -> list[Result]:
        """Record an event that is handled already, with its effects, in one transaction; returns their results.

        Empty, and nothing is changed, when the event is known. Errors are those of `complete`; then nothing is kept.
        """
        return await self._engine.write(lambda tx: complete(tx, accept(tx, row).inbox_id, (), effects))

    async def known(self, account: Account, dedupe_key: str) -> InboxRow | None:
        """What is recorded of an event, in whatever state; None for a new one."""

        def look(rx: Rx) -> InboxRow | None:
            row = rx.one(KNOWN, (*account, dedupe_key))
            return None if row is None else _as_inbox(rx.all(ONE, (row["id"],))[0])

        return await self._engine.read(look)

    async def set_aside(self, inbox_id: int, error: str, outbox: Sequence[NewOutbox] = ()) -> bool:
        """Put a row that cannot be handled aside, with a word to the person; False if it was done or aside already."""
        return await self._engine.write(lambda tx: set_aside(tx, inbox_id, error, outbox))

    async def set_aside_rows(self, limit: int = 50) -> list[InboxRow]:
        """Rows set aside, newest first."""
        return await self._engine.read(lambda rx: [_as_inbox(row) for row in rx.all(ASIDE, (limit,))])

    async def counts(self) -> dict[str, int]:
        """How many rows are `new`, `taken` and `set_aside`."""
        return await self._engine.read(counts)

    async def forget(self, older_than: float = KEEP_SECONDS) -> int:
        """Remove rows done or set aside more than `older_than` seconds ago; returns how many."""
        removed = 0
        while True:
            gone = await self._engine.write(lambda tx: tx.run(FORGET, (tx.now - older_than, _CHUNK)))
            removed += gone
            if gone < _CHUNK:
                return removed
