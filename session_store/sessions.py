"""Sessions: create, end, reopen, title, find.

Contract: a session row is made once and only ever completed; a repeated create fills what is still empty and changes
nothing else. The first reason of an end stays. Children inherit owner and room from their parent; continuations and
branches also key and place. Any id of a conversation may be held: appending, reopening and replay act on its live tip.
Failure: see each operation; wrong arguments raise `InvalidArgument`, unknown sessions `NotFound` or give None/False.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

from session_store.errors import InvalidArgument, TitleTaken
from session_store.jsontext import to_json
from session_store.lineage import COMPRESSION, adopt_continuations, live_tip, root_of, unknown_session
from session_store.naming import free_title, retitle, title_holder
from session_store.rows import SessionRow
from session_store.titles import split_number, title_key
from session_store.tx import Param, Rx, Tx

__all__ = [
    "end_session_row",
    "insert_session",
    "live_tip",
    "reopen_session_row",
    "retitle",
    "root_of",
    "session_row",
]

SessionKind = Literal["live", "branch", "scheduled", "tool"]

_SELECT = "SELECT * FROM sessions WHERE id = ?"

_INSERT = """
INSERT INTO sessions (id, source, user_id, model, model_config, system_prompt, parent_session_id, started_at, owner,
    room_id, session_key, place_id, root_id, kind, last_active)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

# What a child takes over from its parent.
_PARENT = "SELECT owner, room_id, session_key, place_id, end_reason FROM sessions WHERE id = ?"

# A repeated create: what is set stays, what is empty is filled.
_FILL = """
UPDATE sessions SET
    user_id = COALESCE(user_id, ?), model = COALESCE(model, ?), model_config = COALESCE(model_config, ?),
    system_prompt = COALESCE(system_prompt, ?), owner = COALESCE(owner, ?), room_id = COALESCE(room_id, ?),
    session_key = COALESCE(session_key, ?), place_id = COALESCE(place_id, ?)
WHERE id = ?
"""

# A parent that was not known at birth; never one that is missing or descends from the session itself.
_FILL_PARENT = """
UPDATE sessions SET parent_session_id = ?1
WHERE id = ?2 AND parent_session_id IS NULL AND EXISTS (SELECT 1 FROM sessions WHERE id = ?1)
    AND ?2 NOT IN (
        WITH RECURSIVE up(id, parent) AS (
            SELECT id, parent_session_id FROM sessions WHERE id = ?1
            UNION
            SELECT s.id, s.parent_session_id FROM sessions s JOIN up ON s.id = up.parent
        )
        SELECT id FROM up)
"""

_TITLE = "UPDATE sessions SET title = ?, title_key = ? WHERE id = ?"
_END = "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL"
_REOPEN = "UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = ?"


def session_row(rx: Rx, session_id: str) -> SessionRow | None:
    """Return the row of this very session, or None."""
    return cast("SessionRow | None", rx.one(_SELECT, (session_id,)))


def insert_session(  # noqa: PLR0913 - one parameter per column that callers may set
    tx: Tx,
    session_id: str,
    source: str,
    *,
    model: str | None = None,
    model_config: Mapping[str, Any] | str | None = None,
    system_prompt: str | None = None,
    user_id: str | None = None,
    parent_session_id: str | None = None,
    owner: str | None = None,
    room_id: str | None = None,
    session_key: str | None = None,
    place_id: int | None = None,
    kind: SessionKind = "live",
    title: str | None = None,
    started_at: float | None = None,
) -> None:
    """Make the session; if it exists, fill what is empty in its row (a taken title is left out then).

    started_at: Unix seconds; the clock when not given. A parent that compression ended makes a live child the
    continuation of its conversation.

    Raises:
        InvalidArgument: empty id or source, unknown kind, title too long, or a config that JSON cannot express.
        NotFound: a new session names a parent that is not there.
        TitleTaken: a new session asks for a title that another conversation of its owner has.
    """
    if not session_id or not source:
        raise InvalidArgument("A session needs an id and a source.")
    if kind not in get_args(SessionKind):
        raise InvalidArgument(f"The kind {kind!r} is unknown. Use one of: {', '.join(get_args(SessionKind))}.")
    config = model_config if isinstance(model_config, str) else to_json(model_config)
    given = (user_id, model, config, system_prompt, owner, room_id, session_key, place_id)
    existing = session_row(tx, session_id)
    if existing is not None:
        _complete(tx, existing, given, parent_session_id, title)
        return
    root_id = session_id
    if parent_session_id is not None:
        parent = tx.one(_PARENT, (parent_session_id,))
        if parent is None:
            raise unknown_session(parent_session_id)
        owner, room_id = owner or parent["owner"], room_id or parent["room_id"]
        continues = kind == "live" and source != "tool" and parent["end_reason"] == COMPRESSION
        if continues or kind == "branch":
            session_key, place_id = session_key or parent["session_key"], place_id or parent["place_id"]
        if continues:
            root_id = root_of(tx, parent_session_id)
    began = started_at if started_at is not None and math.isfinite(started_at) else tx.now
    born = (session_id, source, user_id, model, config, system_prompt, parent_session_id, began)
    tx.run(_INSERT, (*born, owner, room_id, session_key, place_id, root_id, kind, began))
    if title is not None:
        retitle(tx, session_id, title)


def _complete(
    tx: Tx, existing: SessionRow, given: tuple[Param, ...], parent_session_id: str | None, title: str | None
) -> None:
    session_id, owner, current = existing["id"], given[4], existing["title"]
    moves = existing["owner"] is None and isinstance(owner, str)
    if moves and current is not None and title_holder(tx, str(owner), current) is not None:
        # The new owner has this title already; both keep a name of their own.
        current = free_title(tx, split_number(current)[0], str(owner))
        tx.run(_TITLE, (current, title_key(current), session_id))
    tx.run(_FILL, (*given, session_id))
    if parent_session_id is not None and tx.run(_FILL_PARENT, (parent_session_id, session_id)):
        parent = tx.one(_PARENT, (parent_session_id,))
        if parent is not None and parent["end_reason"] == COMPRESSION:
            adopt_continuations(tx, parent_session_id)
    if current is None and title is not None:
        with contextlib.suppress(TitleTaken, InvalidArgument):
            retitle(tx, session_id, title)


def end_session_row(tx: Tx, session_id: str, reason: str) -> bool:
    """End the session unless it has ended already; True if this call did it. Unknown sessions give False."""
    ended = tx.run(_END, (tx.now, reason, session_id)) == 1
    if ended and reason == COMPRESSION:
        adopt_continuations(tx, session_id)
    return ended


def reopen_session_row(tx: Tx, session_id: str) -> bool:
    """Open the conversation again: its live tip has no end any more. False for an unknown session."""
    if session_row(tx, session_id) is None:
        return False
    tx.run(_REOPEN, (live_tip(tx, session_id),))
    return True
