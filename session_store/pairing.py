"""Pairing: a one-time code makes a sender's identity a person's, once, and guessing is stopped.

Contract: the store keeps only hashes of codes; the caller compares. At most three codes are open per platform: a fourth
withdraws the oldest, so that nobody locks the owner out and little can be guessed. Redeeming is one transaction: code
used, person found or made, identity theirs, the message that carried the code recorded as handled, the notice queued;
so a message delivered again does nothing. Five failures of one sender lock it for an hour; a message counts once.
A sender who was merely allowed before becomes that person with everything that was theirs, in the same transaction.
Failure: a code that is used, expired or withdrawn, a locked sender, and an identity that the config names give None.
Limits: failures are kept for a day and at most 10,000 senders, the longest silent are forgotten first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING, NamedTuple

from session_store.jsontext import from_json
from session_store.models import NewOutbox
from session_store.outbox import Origin, add_rows
from session_store.people import OWNER, assign, identity, person_named, show_as
from session_store.places import place_id
from session_store.tx import Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["LOCK_SECONDS", "MAX_FAILURES", "MAX_OPEN", "OpenCode", "Pairing", "Sender"]

MAX_OPEN = 3
"""Codes that are open at a time per platform."""

MAX_FAILURES = 5
"""Wrong codes of one sender before it is locked."""

LOCK_SECONDS = 3600.0
"""How long a sender stays locked."""

_KEEP_SECONDS = 86_400.0
_KEEP_SENDERS = 10_000
_KEEP_KEYS = 10

KNOWN_CODE = "SELECT id FROM pairing_codes WHERE platform = ? AND code_hash = ? AND used_at IS NULL AND expires_at > ?"
ADD_CODE = "INSERT INTO pairing_codes (platform, name, code_hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?)"
# All but the newest codes ?2 of a platform, and everything that can no longer be redeemed.
WITHDRAW = """
DELETE FROM pairing_codes WHERE platform = ?1 AND (used_at IS NOT NULL OR expires_at <= ?3 OR id NOT IN (
    SELECT id FROM pairing_codes WHERE platform = ?1 AND used_at IS NULL AND expires_at > ?3 ORDER BY id DESC LIMIT ?2))
"""
# Open codes, newest first.
OPEN = """
SELECT id, code_hash, name FROM pairing_codes
WHERE platform = ? AND used_at IS NULL AND expires_at > ? ORDER BY id DESC LIMIT 20
"""
USE = "UPDATE pairing_codes SET used_at = ?1 WHERE id = ?2 AND platform = ?3 AND used_at IS NULL AND expires_at > ?1"
NAME_OF = "SELECT name FROM pairing_codes WHERE id = ?"
CODE_MESSAGE = "SELECT id FROM inbox WHERE platform = ? AND account = ? AND dedupe_key = ?"
# The message that carried the code, recorded as handled; the code itself is not stored.
ADD_CODE_MESSAGE = """
INSERT INTO inbox (platform, account, dedupe_key, kind, place_id, lane, person_id, received_at, state, done_at)
VALUES (?1, ?2, ?3, 'command', ?4, ?3, ?5, ?6, 'done', ?6)
"""
FAILURES = """
SELECT failures, keys, locked_until FROM pairing_failures WHERE platform = ? AND account = ? AND user_id = ?
"""
COUNT_FAILURE = """
INSERT INTO pairing_failures (platform, account, user_id, failures, keys, locked_until, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (platform, account, user_id) DO UPDATE SET failures = excluded.failures, keys = excluded.keys,
    locked_until = excluded.locked_until, updated_at = excluded.updated_at
"""
FORGIVE = "DELETE FROM pairing_failures WHERE platform = ? AND account = ? AND user_id = ?"
# Old failures, and the longest silent senders beyond the limit.
FORGET_FAILURES = """
DELETE FROM pairing_failures WHERE updated_at < ?1 OR rowid IN (
    SELECT rowid FROM pairing_failures ORDER BY updated_at DESC LIMIT -1 OFFSET ?2)
"""


class OpenCode(NamedTuple):
    """A code that can be redeemed. name: the person it is for, None for the owner."""

    id: int
    code_hash: str
    name: str | None


@dataclass(frozen=True, slots=True)
class Sender:
    """An identity as a platform names it; account is the name space of the user id, display for people only."""

    platform: str
    account: str
    user_id: str
    display: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """The columns that identify it."""
        return self.platform, self.account, self.user_id


def create_code(tx: Tx, platform: str, name: str | None, code_hash: str, ttl: float) -> int:
    """Open a code for `ttl` seconds; returns its id. The same hash again is the same code."""
    known = tx.one(KNOWN_CODE, (platform, code_hash, tx.now))
    if known is not None:
        return int(known["id"])
    code_id = tx.insert(ADD_CODE, (platform, name, code_hash, tx.now, tx.now + ttl))
    tx.run(WITHDRAW, (platform, MAX_OPEN, tx.now))
    return code_id


def locked_until(rx: Rx, sender: Sender, now: float) -> float | None:
    """Return until when a sender is locked, or None if it is not."""
    row = rx.one(FAILURES, sender.key)
    until: float | None = None if row is None else row["locked_until"]
    return until if until is not None and until > now else None


def redeem(tx: Tx, code_id: int, sender: Sender, notice: NewOutbox, dedupe_key: str) -> str | None:
    """Redeem a code; see `Pairing.redeem`."""
    known = identity(tx, *sender.key)
    message = (notice.place.platform, notice.place.account, dedupe_key)
    if tx.one(CODE_MESSAGE, message) is not None:
        return None if known is None else known[0]
    if locked_until(tx, sender, tx.now) is not None or (known is not None and known[1] == "config"):
        return None
    if not tx.run(USE, (tx.now, code_id, sender.platform)):
        return None
    person_id = person_named(tx, tx.value(NAME_OF, (code_id,)) or OWNER)
    assign(tx, *sender.key, (person_id, "pairing"))
    show_as(tx, person_id, sender.display)
    inbox_id = tx.insert(ADD_CODE_MESSAGE, (*message, place_id(tx, notice.place), person_id, tx.now))
    add_rows(tx, [notice], Origin(inbox_id=inbox_id))
    tx.run(FORGIVE, sender.key)
    return person_id


def failed(tx: Tx, sender: Sender, dedupe_key: str) -> float | None:
    """Count a wrong code; returns until when the sender is locked now, if it is."""
    tx.run(FORGET_FAILURES, (tx.now - _KEEP_SECONDS, _KEEP_SENDERS))
    row = tx.one(FAILURES, sender.key)
    until: float | None = None if row is None else row["locked_until"]
    if until is not None and until > tx.now:
        return until
    keys: list[str] = [] if row is None else from_json(row["keys"])
    if dedupe_key in keys:
        return None
    failures = 1 if row is None or until is not None else row["failures"] + 1
    until = tx.now + LOCK_SECONDS if failures >= MAX_FAILURES else None
    counted = json.dumps([*keys, dedupe_key][-_KEEP_KEYS:], ensure_ascii=False)
    tx.run(COUNT_FAILURE, (*sender.key, failures, counted, until, tx.now))
    return until


class Pairing:
    """One-time codes and wrong guesses; each method is one query or one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def create_code(self, platform: str, name: str | None, code_hash: str, ttl: float) -> int:
        """Open a code for `ttl` seconds, for a named person or (None) the owner; returns its id.

        The oldest is withdrawn when more than three would be open.
        """
        return await self._engine.write(lambda tx: create_code(tx, platform, name, code_hash, ttl))

    async def open_codes(self, platform: str) -> list[OpenCode]:
        """The codes that can be redeemed now, newest first; the caller compares the hashes."""
        now = time()
        rows = await self._engine.read(lambda rx: rx.all(OPEN, (platform, now)))
        return [OpenCode(row["id"], row["code_hash"], row["name"]) for row in rows]

    async def redeem(  # noqa: PLR0913, PLR0917 - the code, the sender's parts, the answer, the message
        self,
        code_id: int,
        platform: str,
        account: str,
        user_id: str,
        display: str | None,
        notice: NewOutbox,
        dedupe_key: str,
    ) -> str | None:
        """Use a code for a sender; returns the person the sender is now, or None if the code cannot be used.

        notice: what the sender is told, queued in the same transaction. dedupe_key: of the message with the code; for
        the same message again the person is returned and nothing changes.
        """
        sender = Sender(platform, account, user_id, display)
        return await self._engine.write(lambda tx: redeem(tx, code_id, sender, notice, dedupe_key))

    async def failed(self, platform: str, account: str, user_id: str, dedupe_key: str) -> float | None:
        """Count a wrong code of a sender; returns until when (Unix seconds) it is locked, None if it is not."""
        sender = Sender(platform, account, user_id)
        return await self._engine.write(lambda tx: failed(tx, sender, dedupe_key))

    async def locked_until(self, platform: str, account: str, user_id: str) -> float | None:
        """Until when (Unix seconds) a sender is locked, None if it is not."""
        sender, now = Sender(platform, account, user_id), time()
        return await self._engine.read(lambda rx: locked_until(rx, sender, now))
