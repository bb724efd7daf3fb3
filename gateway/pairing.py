"""Pairing: a one-time code that the owner prints proves that an identity on a platform is theirs (or a named person's).

Contract: a code is 8 characters of an alphabet without look-alikes, stored only as an argon2 hash, lives for one hour
and works once. Five wrong codes from one identity lock it out for an hour; codes of a locked-out sender are not
looked at. Success, the identity and the welcome are one transaction, so a killed process has paired or has not.
Failure: a wrong, used or expired code gets no answer. A message that is delivered again counts once.
Limits: at most three codes are open per platform, which bounds the hashing per attempt; two hashes at a time.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

import anyio.to_thread
from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

from gateway.phrases import inert
from gateway.places import place_ref
from session_store import NewOutbox

if TYPE_CHECKING:
    from adapters.base import InboundMessage
    from session_store import SessionDB

__all__ = ["CODE_TTL_SECONDS", "PairingDesk", "looks_like_code"]

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_LENGTH = 8
CODE_TTL_SECONDS = 3600.0

_CODE = re.compile(rf"(?:/(?:start|pair)(?:@\w+)?\s+)?([{ALPHABET}]{{4}})[- ]?([{ALPHABET}]{{4}})", re.IGNORECASE)

# The code has 40 random bits and lives an hour: the default cost would only slow the owner's machine down.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19456, parallelism=1)

#: Each hash takes 19 MiB and a core: strangers who send codes must not take more than this many at a time.
_HASHES_AT_ONCE = 2


def looks_like_code(text: str) -> str | None:
    """The code in a message that is nothing but a code (also behind /start or /pair), else None."""
    match = _CODE.fullmatch(text.strip())
    return (match.group(1) + match.group(2)).upper() if match else None


class PairingDesk:
    """Makes and redeems codes."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._hashing = anyio.CapacityLimiter(_HASHES_AT_ONCE)

    async def issue(self, platform: str, name: str | None) -> str:
        """A new code for `platform`; with a name it makes that person's identity, without one the owner's."""
        code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
        code_hash = await anyio.to_thread.run_sync(_HASHER.hash, code, limiter=self._hashing)
        await self._db.pairing.create_code(platform, name, code_hash, CODE_TTL_SECONDS)
        return code

    async def redeem(self, message: InboundMessage, code: str) -> bool:
        """Try a code that somebody unproven sent; True when the sender is paired now."""
        place, sender = message.place, message.sender
        if sender.user_id is None or sender.is_bot:
            return False
        if await self._db.pairing.locked_until(place.platform, sender.realm, sender.user_id) is not None:
            return False
        candidates = await self._db.pairing.open_codes(place.platform)
        if not candidates:
            return False
        for code_id, code_hash, name in candidates:
            if not await anyio.to_thread.run_sync(_matches, code_hash, code, limiter=self._hashing):
                continue
            who = f"this account now speaks for {inert(name)}" if name else "this account is now yours"
            welcome = NewOutbox(
                place=place_ref(place), kind="notice", body=f"Paired: {who}. Send /help to see what can be done here."
            )
            person = await self._db.pairing.redeem(
                code_id, place.platform, sender.realm, sender.user_id, sender.name, welcome, message.dedupe_key
            )
            if person is not None:
                return True
        await self._db.pairing.failed(place.platform, sender.realm, sender.user_id, message.dedupe_key)
        return False


def _matches(code_hash: str, code: str) -> bool:
    try:
        return _HASHER.verify(code_hash, code)
    except VerifyMismatchError:
        return False
