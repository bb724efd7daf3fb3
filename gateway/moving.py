"""A chat lives on under another id: what the store needs to know to move everything of it.

Contract: the move is one idempotent transaction of the store; it may be told by either chat and by a failed send, in
any order and any number of times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.keys import chat_key
from session_store import MovedChat

if TYPE_CHECKING:
    from adapters.base import Place

__all__ = ["move_of"]


def move_of(place: Place, old_chat: str, new_chat: str) -> MovedChat:
    """The move of a chat of the account and kind of `place`."""
    return MovedChat(
        platform=place.platform,
        account=place.account,
        old_chat=old_chat,
        new_chat=new_chat,
        old_key=chat_key(replace(place, chat=old_chat)),
        new_key=chat_key(replace(place, chat=new_chat)),
    )
