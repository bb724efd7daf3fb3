"""The owner of the home: who sits at the terminal and behind the web page's token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.places import TERMINAL
from gateway.visibility import visibility

if TYPE_CHECKING:
    from session_store import SessionDB, Visibility

__all__ = ["OWNER", "owner_sees"]

#: Person id of the owner in the store.
OWNER = "owner"


async def owner_sees(db: SessionDB) -> Visibility:
    """What the owner sees in a private place of theirs: their sessions and those of rooms they have spoken in."""
    return visibility(OWNER, TERMINAL, None, await db.places.rooms_of(OWNER), shared=False)
