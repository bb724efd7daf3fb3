"""Home places, and who is met at a place: what must be known to bring a conversation to a chat that somebody names.

Contract: a person has one home per platform and account; setting it again replaces it, and it lasts as long as they are
who set it: an identity that is taken from them takes its homes along. `known` finds chats that this store has seen, by
id or by name; `people_at` tells whose direct chat one is.
Limits: a chat that nobody has written in is not known. Names are those that the platform told last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_store.models import Home, PlaceRef, SetHome
from session_store.places import place_id, place_of, present
from session_store.tx import Row, Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["HomePlaces", "set_home"]

SET = """
INSERT INTO home_places (person_id, platform, account, place_id, user_id, set_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (person_id, platform, account) DO UPDATE SET place_id = excluded.place_id, user_id = excluded.user_id,
    set_at = excluded.set_at
"""
# A person's homes on one platform, the account that was set last first; none that was set as somebody who they are not
# any more: that chat may be another one's by now.
OF_PERSON = """
SELECT h.place_id, h.user_id FROM home_places AS h
WHERE h.person_id = ? AND h.platform = ? AND (h.user_id IS NULL OR EXISTS (
    SELECT 1 FROM identities AS i
    WHERE i.platform = h.platform AND i.user_id = h.user_id AND i.person_id = h.person_id))
ORDER BY h.set_at DESC LIMIT 100
"""
# Chats of a platform by their id, or by the last part of it (a Slack channel without its workspace), or by their name.
KNOWN = """
SELECT platform, account, chat_type, chat, MAX(CASE WHEN thread = '' THEN name END) AS name FROM places
WHERE platform = ?1 AND (chat = ?2 OR substr(chat, -length('/' || ?2)) = '/' || ?2 OR (thread = '' AND name = ?2))
GROUP BY platform, account, chat_type, chat ORDER BY MAX(id) DESC LIMIT 20
"""
# Who has written at an address, by what is still known of it: routes, queued events, moves and homes.
PEOPLE_AT = """
WITH here(id) AS (
    SELECT id FROM places WHERE platform = ?1 AND account = ?2 AND chat_type = ?3 AND chat = ?4)
SELECT r.person_id FROM routes AS r WHERE r.place_id IN (SELECT id FROM here)
UNION SELECT i.person_id FROM inbox AS i WHERE i.place_id IN (SELECT id FROM here)
UNION SELECT h.person_id FROM home_places AS h WHERE h.place_id IN (SELECT id FROM here)
UNION SELECT s.owner FROM sessions AS s WHERE s.place_id IN (SELECT id FROM here)
LIMIT 100
"""
IDENTITIES = "SELECT DISTINCT user_id FROM identities WHERE person_id = ? AND platform = ? ORDER BY user_id LIMIT 20"


def set_home(tx: Tx, effect: SetHome) -> bool:
    """Make a chat the person's home on its platform."""
    home, row = effect.home, place_id(tx, effect.home.place)
    where = (home.place.platform, home.place.account, row)
    return tx.run(SET, (effect.person_id, *where, home.user_id, tx.now)) > 0


def _home(rx: Rx, row: Row) -> list[Home]:
    place = place_of(rx, row["place_id"])
    return [] if place is None else [Home(present(rx, place), row["user_id"])]


class HomePlaces:
    """Homes and chats as readers see them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def of_person(self, person_id: str, platform: str) -> list[Home]:
        """The person's homes on a platform, one per account, the last set first."""
        return await self._engine.read(
            lambda rx: [home for row in rx.all(OF_PERSON, (person_id, platform)) for home in _home(rx, row)]
        )

    async def set(self, person_id: str, home: Home) -> None:
        """Make a chat the person's home on its platform and account."""
        await self._engine.write(lambda tx: set_home(tx, SetHome(person_id, home)))

    async def known(self, platform: str, chat: str) -> list[PlaceRef]:
        """The chats that a person may mean by an id or a name, the newest first, without threads."""
        return await self._engine.read(
            lambda rx: [PlaceRef(**{**row, "thread": ""}) for row in rx.all(KNOWN, (platform, chat))]
        )

    async def people_at(self, place: PlaceRef) -> frozenset[str]:
        """Who has written in this chat, as far as that is still known."""
        where = (place.platform, place.account, place.chat_type, place.chat)
        rows = await self._engine.read(lambda rx: rx.all(PEOPLE_AT, where))
        return frozenset(row["person_id"] for row in rows if row["person_id"])

    async def identities(self, person_id: str, platform: str) -> list[str]:
        """The user ids of a person on a platform."""
        rows = await self._engine.read(lambda rx: rx.all(IDENTITIES, (person_id, platform)))
        return [row["user_id"] for row in rows]
