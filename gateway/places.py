"""Translation between the place that adapters speak of and the address that the store keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from adapters.base import ChatType, Place
from session_store import PlaceRef

if TYPE_CHECKING:
    from session_store import InboxRow, OutboxRow

__all__ = ["LOCAL_PLATFORMS", "TERMINAL", "place_of", "place_of_ref", "place_ref", "web_place"]

#: Entrances that show a session by reading the store; nothing is ever sent to them through the outbox.
LOCAL_PLATFORMS = frozenset({"cli", "web"})

#: The terminal has one place; its sessions are chosen by id.
TERMINAL = Place(platform="cli", account="main", chat_type="dm", chat="terminal", name="terminal")


def web_place(person_id: str) -> Place:
    """The web chat of a person."""
    return Place(platform="web", account="main", chat_type="dm", chat=person_id, name="web")


def place_ref(place: Place) -> PlaceRef:
    """The store's form of a place."""
    return PlaceRef(place.platform, place.account, place.chat_type, place.chat, place.thread, place.name, place.parent)


def place_of_ref(ref: PlaceRef) -> Place:
    """The place of a stored address."""
    return Place(ref.platform, ref.account, cast("ChatType", ref.chat_type), ref.chat, ref.thread, ref.name, ref.parent)


def place_of(row: InboxRow | OutboxRow) -> Place:
    """The place that a queue row carries."""
    return Place(
        platform=row["platform"],
        account=row["account"],
        chat_type=cast("ChatType", row["chat_type"]),
        chat=row["chat"],
        thread=row["thread"],
    )
