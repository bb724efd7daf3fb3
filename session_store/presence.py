"""When an account was last served, and what was last taken in there: from where to catch up after an absence.

Contract: `seen` writes one time per account, again and again while it is served; `last_seen` is the last of them, up to
which everything that came was surely taken in. `newest` names, for each place of an account, the largest message id
that was recorded.
Limits: `newest` is for platforms whose message ids are numbers that grow, whole or with a fraction of one length, and
stand at the end of the key (`m:<id>`, `m:<chat>:<id>`), as far back as keys are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from session_store.models import PlaceRef
from session_store.tx import Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Presence"]

SET = "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
GET = "SELECT value FROM state_meta WHERE key = ?"
# The largest message id of each place of an account, of the ?3 places where something was recorded last. Padded with
# zeros, ids are in order as text; as numbers, some would lose their last digits.
NEWEST = """
SELECT p.platform, p.account, p.chat_type, p.chat, p.thread, p.name,
       LTRIM(MAX(SUBSTR('0000000000000000000000000000000'
                        || SUBSTR(i.dedupe_key, LENGTH(RTRIM(i.dedupe_key, '0123456789.')) + 1), -32)), '0') AS id
FROM inbox AS i JOIN places AS p ON p.id = i.place_id
WHERE i.platform = ?1 AND i.account = ?2 AND i.dedupe_key >= 'm:' AND i.dedupe_key < 'm;'
      AND RTRIM(i.dedupe_key, '0123456789.') GLOB '*:' AND i.dedupe_key GLOB '*[0-9]'
GROUP BY i.place_id ORDER BY MAX(i.id) DESC LIMIT ?3
"""


def _key(account: tuple[str, str]) -> str:
    return f"account:{account[0]}/{account[1]}:last_seen"


def seen(tx: Tx, accounts: Sequence[tuple[str, str]]) -> None:
    """These accounts are served now."""
    for account in accounts:
        tx.run(SET, (_key(account), repr(tx.now)))


def last_seen(rx: Rx, account: tuple[str, str]) -> float | None:
    """Return when an account was last served, None if it never was."""
    value: str | None = rx.value(GET, (_key(account),))
    return None if value is None else float(value)


def newest(rx: Rx, account: tuple[str, str], limit: int) -> list[tuple[PlaceRef, str]]:
    """Return places of an account with the largest message id recorded there, most recently used first."""
    return [
        (
            PlaceRef(row["platform"], row["account"], row["chat_type"], row["chat"], row["thread"], row["name"]),
            str(row["id"]),
        )
        for row in rx.all(NEWEST, (*account, limit))
    ]


class Presence:
    """Life signs of accounts; each method is one query or one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def seen(self, accounts: Sequence[tuple[str, str]]) -> None:
        """Note that these accounts (platform, account) are served now."""
        await self._engine.write(lambda tx: seen(tx, accounts))

    async def last_seen(self, account: tuple[str, str]) -> float | None:
        """When this account was last served (Unix seconds), None if it never was."""
        return await self._engine.read(lambda rx: last_seen(rx, account))

    async def newest(self, account: tuple[str, str], limit: int = 50) -> list[tuple[PlaceRef, str]]:
        """The newest message id known in each place of an account, of the `limit` places used last."""
        return await self._engine.read(lambda rx: newest(rx, account, limit))
