"""Titles of stored sessions: give, count on, find.

Contract: a title belongs to one conversation per owner; rows without an owner (the library's) form a name space of
their own. A session may take over a title from an older segment of its own conversation. Rows made by other tools
carry no `title_key`; their titles are compared as they are written.
Failure: `TitleTaken` names the other session, but in a room only one of that room, since others read along there; a
title against the rules of `titles` raises `InvalidArgument`.
"""

from __future__ import annotations

from session_store.errors import InvalidArgument, TitleTaken
from session_store.lineage import live_tip, root_of, unknown_session
from session_store.models import Visibility
from session_store.titles import clean_title, numbered_title, split_number, title_key
from session_store.tx import Rx, Tx
from session_store.visible import is_visible, only_visible, visible_params

__all__ = ["free_title", "next_title", "resolve_title", "retitle", "title_holder"]

_SESSION = "SELECT id, owner, room_id FROM sessions WHERE id = ?"
_ROOM = "SELECT room_id FROM sessions WHERE id = ?"
_SET = "UPDATE sessions SET title = ?, title_key = ? WHERE id = ?"

# Who has this title in the owner's name space. ?1 owner, ?2 key, ?3 title as written.
_HOLDER = """
SELECT id FROM sessions WHERE COALESCE(owner, '') = COALESCE(?1, '') AND title_key = ?2
UNION ALL
SELECT id FROM sessions
WHERE title_key IS NULL AND title IS NOT NULL AND title = ?3 AND COALESCE(owner, '') = COALESCE(?1, '')
LIMIT 1
"""

# The highest number in a lineage, the bare title counting as 1. ?1 owner, ?2 key, ?3 title as written.
_HIGHEST = """
SELECT MAX(number) FROM (
    SELECT 1 AS number FROM sessions WHERE COALESCE(owner, '') = COALESCE(?1, '') AND title_key = ?2
    UNION ALL
    SELECT CAST(SUBSTR(title_key, LENGTH(?2) + 3) AS INTEGER) FROM sessions
    WHERE COALESCE(owner, '') = COALESCE(?1, '') AND title_key >= ?2 || ' #0' AND title_key < ?2 || ' #:'
        AND SUBSTR(title_key, LENGTH(?2) + 3) NOT GLOB '*[^0-9]*' AND LENGTH(title_key) <= LENGTH(?2) + 11
    UNION ALL
    SELECT 1 FROM sessions
    WHERE title_key IS NULL AND title IS NOT NULL AND title = ?3 AND COALESCE(owner, '') = COALESCE(?1, '')
    UNION ALL
    SELECT CAST(SUBSTR(title, LENGTH(?3) + 3) AS INTEGER) FROM sessions
    WHERE title_key IS NULL AND title IS NOT NULL AND title >= ?3 || ' #0' AND title < ?3 || ' #:'
        AND COALESCE(owner, '') = COALESCE(?1, '')
        AND SUBSTR(title, LENGTH(?3) + 3) NOT GLOB '*[^0-9]*' AND LENGTH(title) <= LENGTH(?3) + 11)
"""

# The session that a title means: the highest number of its lineage, else the bare title; then the latest.
# ?1 and ?2 visibility, ?3 key, ?4 title as written.
_RESOLVE = """
SELECT id FROM (
    SELECT s.id, s.started_at, 0 AS number FROM sessions s WHERE s.title_key = ?3 AND /*visible*/
    UNION ALL
    SELECT s.id, s.started_at, CAST(SUBSTR(s.title_key, LENGTH(?3) + 3) AS INTEGER) FROM sessions s
    WHERE s.title_key >= ?3 || ' #0' AND s.title_key < ?3 || ' #:' AND /*visible*/
        AND SUBSTR(s.title_key, LENGTH(?3) + 3) NOT GLOB '*[^0-9]*' AND LENGTH(s.title_key) <= LENGTH(?3) + 11
    UNION ALL
    SELECT s.id, s.started_at, 0 FROM sessions s
    WHERE s.title_key IS NULL AND s.title IS NOT NULL AND s.title = ?4 AND /*visible*/
    UNION ALL
    SELECT s.id, s.started_at, CAST(SUBSTR(s.title, LENGTH(?4) + 3) AS INTEGER) FROM sessions s
    WHERE s.title_key IS NULL AND s.title IS NOT NULL AND s.title >= ?4 || ' #0' AND s.title < ?4 || ' #:'
        AND /*visible*/
        AND SUBSTR(s.title, LENGTH(?4) + 3) NOT GLOB '*[^0-9]*' AND LENGTH(s.title) <= LENGTH(?4) + 11)
ORDER BY number DESC, started_at DESC, id DESC LIMIT 1
"""


def title_holder(rx: Rx, owner: str | None, title: str) -> str | None:
    """Return the id of the session that has this title in the owner's name space, or None."""
    holder = rx.value(_HOLDER, (owner, title_key(title), title))
    return None if holder is None else str(holder)


def retitle(tx: Tx, session_id: str, title: str | None) -> str | None:
    """Give the session a title, or take it away with None or ''. Returns the title as stored.

    Raises:
        NotFound: no such session.
        TitleTaken: another conversation of the same owner has it.
        InvalidArgument: longer than 100 characters.
    """
    session = tx.one(_SESSION, (session_id,))
    if session is None:
        raise unknown_session(session_id)
    cleaned = clean_title(title)
    if cleaned is None:
        tx.run(_SET, (None, None, session_id))
        return None
    holder = title_holder(tx, session["owner"], cleaned)
    if holder is not None and holder != session_id:
        if root_of(tx, holder) != root_of(tx, session_id):
            named = session["room_id"] in {None, tx.value(_ROOM, (holder,))}
            who = f"Session {holder}" if named else "Another session of yours"
            raise TitleTaken(f"{who} already has the title {cleaned!r}. Choose another one.")
        tx.run(_SET, (None, None, holder))
    tx.run(_SET, (cleaned, title_key(cleaned), session_id))
    return cleaned


def next_title(rx: Rx, title: str, owner: str | None) -> str:
    """Return the first free title after the last of the lineage of `title`; its bare form when there is none yet.

    Raises:
        InvalidArgument: no visible character, or longer than 100.
    """
    cleaned = clean_title(title)
    if cleaned is None:
        raise InvalidArgument("A title needs at least one visible character.")
    base, _ = split_number(cleaned)
    return free_title(rx, base, owner)


def free_title(rx: Rx, base: str, owner: str | None) -> str:
    """Return `base` if the owner has no session of its lineage, else the next number that nobody has."""
    highest = rx.value(_HIGHEST, (owner, title_key(base), base))
    if highest is None:
        return base
    number = int(highest) + 1
    while title_holder(rx, owner, numbered_title(base, number)) is not None:
        number += 1
    return numbered_title(base, number)


def resolve_title(rx: Rx, title: str, visible_to: Visibility | None) -> str | None:
    """Return the live tip of the conversation that `title` means among those the asker may see, or None.

    The highest number of the lineage is preferred: `X` finds `X #3`; a title with its number finds just that one.
    """
    try:
        cleaned = clean_title(title)
    except InvalidArgument:
        return None
    if cleaned is None:
        return None
    params = (*visible_params(visible_to), title_key(cleaned), cleaned)
    found = rx.value(only_visible(_RESOLVE, visible_to), params)
    if found is None:
        return None
    tip = live_tip(rx, str(found))
    return tip if is_visible(rx, tip, visible_to) else str(found)
