"""Who someone is over all platforms: people, and the identities that belong to them.

Contract: the owner of the home is the person 'owner', also by name. The config is in command of what it names: it takes
an identity from pairing or from a merely allowed person, and gives back what it no longer names. Other sources never
change an identity of the config. A name is one person, wherever it came from. When the only identity of an unnamed
person turns out to be somebody else's, both are one person from then on (see merging.py); sessions of a named person
stay theirs.
Failure: an identity that the config names for two people raises InvalidArgument and nothing changes.
Limits: user ids are opaque and case-sensitive. account '' of an identity matches every account of its platform.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, cast

from session_store.errors import InvalidArgument
from session_store.merging import merge_if_gone
from session_store.rows import PersonRow
from session_store.tx import Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["OWNER", "People", "Via", "assign", "ensure_allowed", "identity", "person_named", "show_as"]

OWNER = "owner"
"""Id and name of the person who owns the home."""

Via = Literal["config", "pairing", "allowed"]
"""What made an identity: the config file, a pairing code, or the list of allowed senders."""

# Who an identity is: the config before pairing before a mere permission, this account before all accounts.
FIND = """
SELECT person_id, via FROM identities WHERE platform = ? AND user_id = ? AND account IN (?, '')
ORDER BY CASE via WHEN 'config' THEN 0 WHEN 'pairing' THEN 1 ELSE 2 END, account = '' LIMIT 1
"""
EXACT = "SELECT person_id, via FROM identities WHERE platform = ? AND account = ? AND user_id = ?"
# Whose an identity is under this account, or under any for the account ''.
ALL_OF = "SELECT person_id FROM identities WHERE platform = ?1 AND user_id = ?2 AND (account = ?3 OR ?3 = '') LIMIT 100"
DROP_ALLOWED = "DELETE FROM identities WHERE platform = ? AND user_id = ? AND account <> '' AND via = 'allowed'"
ASSIGN = """
INSERT INTO identities (platform, account, user_id, person_id, via, created_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (platform, account, user_id) DO UPDATE SET person_id = excluded.person_id, via = excluded.via,
    created_at = excluded.created_at
"""
# Identities of the config that are not among the wanted ones (?1: JSON list of [platform, user id]).
UNNAMED = """
DELETE FROM identities WHERE via = 'config' AND NOT (account = '' AND EXISTS (
    SELECT 1 FROM json_each(?1) AS w
    WHERE json_extract(w.value, '$[0]') = identities.platform AND json_extract(w.value, '$[1]') = identities.user_id))
"""
GET = "SELECT id, name, display, created_at FROM people WHERE id = ?"
BY_NAME = "SELECT id FROM people WHERE name = ?"
ADD_PERSON = "INSERT INTO people (id, name, display, created_at) VALUES (?, ?, ?, ?)"
SHOW_AS = "UPDATE people SET display = ?1 WHERE id = ?2 AND display IS NOT ?1"


def identity(rx: Rx, platform: str, account: str, user_id: str) -> tuple[str, Via] | None:
    """Return whose identity this is and by what, or None if nobody's."""
    row = rx.one(FIND, (platform, user_id, account))
    return None if row is None else (row["person_id"], row["via"])


def assign(tx: Tx, platform: str, account: str, user_id: str, owner: tuple[str, Via]) -> None:
    """Make an identity a person's, whoever's it was; a former person who had no other becomes that person."""
    former = {row["person_id"] for row in tx.all(ALL_OF, (platform, user_id, account))}
    if account == "":
        # An identity of all accounts takes the place of those of single ones that were merely allowed.
        tx.run(DROP_ALLOWED, (platform, user_id))
    tx.run(ASSIGN, (platform, account, user_id, *owner, tx.now))
    for person_id in sorted(former - {owner[0]}):
        merge_if_gone(tx, person_id, owner[0])


def person_named(tx: Tx, name: str) -> str:
    """Find or make the person of a name; returns the id."""
    row = tx.one(BY_NAME, (name,))
    return str(row["id"]) if row is not None else _add_person(tx, name, None)


def show_as(tx: Tx, person_id: str, display: str | None) -> None:
    """Keep the name under which a person was last seen; no name changes nothing."""
    if display:
        tx.run(SHOW_AS, (display, person_id))


def _add_person(tx: Tx, name: str | None, display: str | None) -> str:
    person_id = OWNER if name == OWNER else f"p{secrets.token_hex(6)}"
    tx.run(ADD_PERSON, (person_id, name, display, tx.now))
    return person_id


Identities = Mapping[str, Sequence[str]]


def sync_config(tx: Tx, owner: Identities, people: Mapping[str, Identities]) -> None:
    """Make the identities of the config what the file says; see `People.sync_config`."""
    person_named(tx, OWNER)
    wanted: dict[tuple[str, str], str] = {}
    for name, platform, user_id in _named(owner, people):
        first = wanted.setdefault((platform, user_id), name)
        if first != name:
            raise InvalidArgument(
                f"The {platform} identity {user_id} is named for {first} and for {name}. Name it once and start again."
            )
    tx.run(UNNAMED, (json.dumps(list(wanted), ensure_ascii=False),))
    persons = {name: person_named(tx, name) for name in people}
    persons[OWNER] = OWNER
    for (platform, user_id), name in wanted.items():
        row = tx.one(EXACT, (platform, "", user_id))
        if row is None or row["via"] == "allowed" or row["person_id"] != persons[name]:
            assign(tx, platform, "", user_id, (persons[name], "config"))


def _named(owner: Identities, people: Mapping[str, Identities]) -> Iterator[tuple[str, str, str]]:
    for name, identities in [(OWNER, owner), *people.items()]:
        for platform, user_ids in identities.items():
            for user_id in user_ids:
                yield name, platform, user_id


def ensure_allowed(tx: Tx, platform: str, account: str, user_id: str, display: str | None) -> str:
    """Return the person of an allowed sender, made at first sight; keeps the newest display name of such a person."""
    known = identity(tx, platform, account, user_id)
    if known is None:
        person_id = _add_person(tx, None, display)
        assign(tx, platform, account, user_id, (person_id, "allowed"))
        return person_id
    if known[1] == "allowed":
        show_as(tx, known[0], display)
    return known[0]


class People:
    """People and their identities; each method is one query or one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def sync_config(self, owner: Identities, people: Mapping[str, Identities]) -> None:
        """Bring the store in line with the config: platform -> user ids, of the owner and of each named person.

        A person is made for every name; identities that the config named before and names no longer are removed. An
        identity that was paired to the same person stays paired, so that it outlives its line in the config.
        """
        await self._engine.write(lambda tx: sync_config(tx, owner, people))

    async def person_of(self, platform: str, account: str, user_id: str) -> tuple[str, Via] | None:
        """Whose identity this is and what made it so; None for a stranger. account: the name space of the user id."""
        return await self._engine.read(lambda rx: identity(rx, platform, account, user_id))

    async def get(self, person_id: str) -> PersonRow | None:
        """One person, or None."""
        return cast("PersonRow | None", await self._engine.read(lambda rx: rx.one(GET, (person_id,))))
