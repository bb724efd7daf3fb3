"""Sessions: create, end, reopen, title, find.

Contract: a session row is made once and only ever completed; a repeated create fills what is still empty and changes
nothing else. The first reason of an end stays. Children inherit owner and room from their parent; continuations and
branches also key and place. Any id of a conversation may be held: appending, reopening and replay act on its live tip.
Failure: see each operation; wrong arguments raise `InvalidArgument`, unknown sessions `NotFound` or give None/False.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from session_store import export, finding, listing, retention
from session_store.errors import InvalidArgument, TitleTaken
from session_store.jsontext import to_json
from session_store.lineage import (
    COMPRESSION,
    adopt_continuations,
    conversation_of,
    live_tip,
    root_of,
    unknown_session,
)
from session_store.models import PlaceRef, Visibility
from session_store.naming import free_title, next_title, resolve_title, retitle, title_holder
from session_store.rows import PruneKept, SessionExport, SessionListRow, SessionRow, SessionStats
from session_store.titles import split_number, title_key
from session_store.tx import Param, Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = [
    "SessionKind",
    "Sessions",
    "end_session_row",
    "insert_session",
    "live_tip",
    "reopen_session_row",
    "retitle",
    "root_of",
    "session_row",
]

SessionKind: TypeAlias = Literal["live", "branch", "scheduled", "tool"]

_SELECT = "SELECT * FROM sessions WHERE id = ?"

_INSERT = """
INSERT INTO sessions (id, source, user_id, model, model_config, system_prompt, parent_session_id, started_at, owner,
    room_id, session_key, place_id, root_id, kind, last_active)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_PLACE = "SELECT 1 FROM places WHERE id = ?"

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
    """Make the session; if it exists, fill what is empty in its row (what cannot be, as a taken title, is left out).

    started_at: Unix seconds; the clock when not given. A parent that compression ended makes a live child the
    continuation of its conversation.

    Raises:
        InvalidArgument: empty id or source, unknown kind or place, title too long, or a config that is no JSON.
        NotFound: a new session names a parent that is not there.
        TitleTaken: a new session asks for a title that another conversation of its owner has.
    """
    if not session_id or not source:
        raise InvalidArgument("A session needs an id and a source.")
    if kind not in get_args(SessionKind):
        raise InvalidArgument(f"The kind {kind!r} is unknown. Use one of: {', '.join(get_args(SessionKind))}.")
    config = model_config if isinstance(model_config, str) else to_json(model_config)
    existing = session_row(tx, session_id)
    place_id = _known_place(tx, place_id, required=existing is None)
    given = (user_id, model, config, system_prompt, owner, room_id, session_key, place_id)
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


def _known_place(rx: Rx, place_id: int | None, *, required: bool) -> int | None:
    if place_id is None or rx.one(_PLACE, (place_id,)) is not None:
        return place_id
    if required:
        raise InvalidArgument(f"There is no place {place_id}. Enter the place first, or give none.")
    return None


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
    session = session_row(tx, session_id)
    if session is not None and (session["ended_at"], session["end_reason"]) != (None, None):
        tx.run(_REOPEN, (live_tip(tx, session_id),))
    return session is not None


class Sessions:
    """The documented operations on sessions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def create_session(  # noqa: PLR0913, PLR0917 - the documented parameters
        self,
        session_id: str,
        source: str,
        model: str | None = None,
        model_config: Mapping[str, Any] | str | None = None,
        system_prompt: str | None = None,
        user_id: str | None = None,
        parent_session_id: str | None = None,
        *,
        owner: str | None = None,
        room_id: str | None = None,
        session_key: str | None = None,
        place_id: int | None = None,
        kind: SessionKind = "live",
        title: str | None = None,
        started_at: float | None = None,
    ) -> str:
        """Make a session, or fill what is still empty in the one that has this id. Returns the id.

        Raises:
            InvalidArgument, NotFound, TitleTaken: see `insert_session`.
        """
        await self._engine.write(
            lambda tx: insert_session(
                tx,
                session_id,
                source,
                model=model,
                model_config=model_config,
                system_prompt=system_prompt,
                user_id=user_id,
                parent_session_id=parent_session_id,
                owner=owner,
                room_id=room_id,
                session_key=session_key,
                place_id=place_id,
                kind=kind,
                title=title,
                started_at=started_at,
            ),
            size=len(system_prompt or ""),
        )
        return session_id

    async def get_session(self, session_id: str) -> SessionRow | None:
        """Return the row of this very session, or None."""
        return await self._engine.read(lambda rx: session_row(rx, session_id))

    async def get_tip(self, session_id: str) -> SessionRow | None:
        """Return the row of the live last session of the conversation that a session belongs to, or None."""

        def query(rx: Rx) -> SessionRow | None:
            return None if session_row(rx, session_id) is None else session_row(rx, live_tip(rx, session_id))

        return await self._engine.read(query)

    async def end_session(self, session_id: str, end_reason: str) -> bool:
        """End the session. The first reason stays: True if this call ended it, False if it had ended or is unknown."""
        return await self._engine.write(lambda tx: end_session_row(tx, session_id, end_reason))

    async def reopen_session(self, session_id: str) -> bool:
        """Open the conversation of this session again at its live tip. False if the session is unknown."""
        return await self._engine.write(lambda tx: reopen_session_row(tx, session_id))

    async def conversation_of(self, session_id: str) -> list[str]:
        """Return the ids of all segments of the conversation, root first; none for an unknown session."""
        return await self._engine.read(
            lambda rx: conversation_of(rx, session_id) if session_row(rx, session_id) is not None else []
        )

    async def set_session_title(self, session_id: str, title: str | None) -> bool:
        """Give the session a title; None or '' takes it away. False if the session is unknown.

        Raises:
            TitleTaken: another conversation of the same owner has it.
            InvalidArgument: longer than 100 characters.
        """

        def op(tx: Tx) -> bool:
            if session_row(tx, session_id) is None:
                return False
            retitle(tx, session_id, title)
            return True

        return await self._engine.write(op)

    async def resolve_session_by_title(self, title: str, *, visible_to: Visibility | None = None) -> str | None:
        """Return the latest session of the lineage that the title means, or None (see `naming.resolve_title`)."""
        return await self._engine.read(lambda rx: resolve_title(rx, title, visible_to))

    async def get_next_title_in_lineage(self, base_title: str, *, owner: str | None = None) -> str:
        """Return the next free title: `X #3` after `X` and `X #2`; `X` itself when there is none yet.

        owner: the person or room in whose name space to look; None is that of the library.

        Raises:
            InvalidArgument: no visible character, or longer than 100.
        """
        return await self._engine.read(lambda rx: next_title(rx, base_title, owner))

    async def resolve_session(self, ref: str, *, visible_to: Visibility | None = None) -> list[str]:
        """Return the ids that `ref` may mean: an id, a title, or the beginning of either (see `finding`)."""
        return await self._engine.read(lambda rx: finding.resolve(rx, ref, visible_to))

    async def find_sessions(self, ref: str, *, visible_to: Visibility | None = None) -> list[SessionListRow]:
        """Return the conversations that `ref` may mean, by their live tips; more than one: it is ambiguous."""
        return await self._engine.read(lambda rx: finding.find(rx, ref, visible_to))

    async def last_used_at(self, place: PlaceRef, *, visible_to: Visibility | None = None) -> SessionListRow | None:
        """Return the conversation in which somebody last spoke at this place, wherever it was begun."""
        return await self._engine.read(lambda rx: finding.last_used_at(rx, place, visible_to))

    async def list_sessions(
        self,
        source: str | None = None,
        limit: int = 20,
        offset: int = 0,
        *,
        visible_to: Visibility | None = None,
        search: str | None = None,
    ) -> list[SessionListRow]:
        """Return conversations, newest activity first; filtered before limited. search: text within the title."""
        return await self._engine.read(
            lambda rx: listing.list_rows(rx, source, limit, offset, visible_to=visible_to, search=search)
        )

    async def list_row(self, session_id: str) -> SessionListRow | None:
        """Return the conversation of this session as a list shows it; None for an unknown session."""

        def query(rx: Rx) -> list[SessionListRow]:
            known = session_row(rx, session_id) is not None
            return listing.describe(rx, [live_tip(rx, session_id)]) if known else []

        return next(iter(await self._engine.read(query)), None)

    async def stats(self) -> SessionStats:
        """Return how many sessions and messages there are, sessions by source, and the size on disk."""
        return await self._engine.read(listing.stats)

    async def export_session(self, session_id: str) -> SessionExport | None:
        """Return the session with all its messages, ready to be written as JSON; None if unknown."""
        return await export.export(self._engine, session_id)

    async def export_all(self, source: str | None = None) -> list[SessionExport]:
        """Return all sessions (of one source) with their messages. Everything at once: see `iter_sessions`."""
        return [exported async for exported in self.iter_sessions(source)]

    def iter_sessions(
        self, source: str | None = None, *, visible_to: Visibility | None = None
    ) -> AsyncIterator[SessionExport]:
        """Yield sessions with their messages, one in memory at a time, in the order of their ids."""
        return export.iter_exports(self._engine, source, visible_to)

    async def prune_candidates(
        self, older_than_days: float = 90, source: str | None = None, *, visible_to: Visibility | None = None
    ) -> list[SessionListRow]:
        """Return what `prune_sessions` would delete, the longest untouched first. visible_to: only what they may see.

        Raises:
            InvalidArgument: negative days.
        """
        before = retention.cutoff(time.time(), older_than_days)
        return await self._engine.read(lambda rx: retention.prunable(rx, before, source, visible_to))

    async def prune_kept_back(self, older_than_days: float = 90, source: str | None = None) -> PruneKept:
        """Return how many conversations are as old but are not pruned, by the reason.

        Raises:
            InvalidArgument: negative days.
        """
        before = retention.cutoff(time.time(), older_than_days)
        return await self._engine.read(lambda rx: retention.kept_back(rx, before, source))

    async def prune_sessions(self, older_than_days: float = 90, source: str | None = None) -> int:
        """Delete ended conversations without activity for so many days; returns how many.

        Raises:
            InvalidArgument: negative days.
        """
        return await retention.prune(self._engine, retention.cutoff(time.time(), older_than_days), source)

    async def clear_messages(self, session_id: str) -> int:
        """Delete the messages of the whole conversation, keep its session rows; returns how many went."""
        return await self._engine.write(lambda tx: retention.clear_conversation(tx, session_id))

    async def delete_session(self, session_id: str) -> bool:
        """Delete the whole conversation of this session. False if the session is unknown."""
        return await self._engine.write(lambda tx: retention.delete_conversation(tx, session_id))
