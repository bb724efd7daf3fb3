"""Visibility inside queries: one condition, used by everything that lists, finds, resumes or exports sessions.

Contract: `only_visible` puts the condition where a query template says `/*visible*/`; the template's sessions table is
called `s` and its parameters 1 and 2 are those of `visible_params`. A blank owner is nobody's: only the library caller
(`visible_to=None`) sees such rows. Inside a room, what is seen lives in that room.
"""

from __future__ import annotations

import json

from session_store.models import Visibility
from session_store.tx import Param, Rx

__all__ = ["is_visible", "only_visible", "visible_params"]

_ONE = "SELECT 1 FROM sessions s WHERE s.id = ?3 AND /*visible*/"

# The plus keeps SQLite from walking all sessions of an owner where the query has a better index.
_CONDITION = """(
    +s.owner IN (SELECT value FROM json_each(?1) WHERE value <> '')
    AND (?2 IS NULL OR s.room_id = ?2 OR s.owner = ?2))"""
_EVERYONE = "(?1 IS NULL AND ?2 IS NULL)"


def only_visible(template: str, visible_to: Visibility | None) -> str:
    """Return the query with the condition that fits the asker."""
    return template.replace("/*visible*/", _EVERYONE if visible_to is None else _CONDITION)


def visible_params(visible_to: Visibility | None) -> tuple[Param, Param]:
    """Return parameters 1 (the owners as JSON) and 2 (the room) of a query made by `only_visible`."""
    if visible_to is None:
        return None, None
    return json.dumps(sorted(visible_to.owners)), visible_to.within_room


def is_visible(rx: Rx, session_id: str, visible_to: Visibility | None) -> bool:
    """Tell whether the session exists and the asker may see it."""
    return rx.one(only_visible(_ONE, visible_to), (*visible_params(visible_to), session_id)) is not None
