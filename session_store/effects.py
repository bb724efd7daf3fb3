"""What a command changes in the store, in one transaction with whatever marks the command as done.

Contract: results by effect: StartSession -> id of the new session, Retitle -> the title as stored (None: removed),
RequestStop -> whether a turn was running, ResumeSession -> the live tip, OfferSessions -> None, RequestHandoff -> its
op_id, SetHome, TakeLocally and Unlink -> whether anything changed. Effects apply together or not at all: one that
cannot be (TitleTaken, InvalidArgument, NotFound, HandoffRefused) raises and undoes the transaction. A repeated
StartSession is known by its new session's id.
Limits: the session that is left ends only if no other place is linked to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from session_store import control, routes, taking_up
from session_store.binding import take_locally
from session_store.branching import branch
from session_store.compress import compress
from session_store.handoff_requests import request
from session_store.homes import set_home
from session_store.links import unlink
from session_store.models import (
    Branch,
    Compress,
    Effect,
    OfferSessions,
    RequestHandoff,
    RequestStop,
    ResumeSession,
    Retitle,
    SetHome,
    StartSession,
    TakeBack,
    TakeLocally,
    Unlink,
)
from session_store.places import place_id
from session_store.sessions import end_session_row, insert_session, retitle, session_row
from session_store.taking_back import take_back
from session_store.tx import Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Effects", "Result", "apply_all"]

Result: TypeAlias = str | bool | None
"""What one effect came to; see the module."""


def apply_all(tx: Tx, effects: Sequence[Effect]) -> list[Result]:
    """Apply effects in order; returns their results."""
    return [_apply(tx, effect) for effect in effects]


def _apply(tx: Tx, effect: Effect) -> Result:
    return _APPLIED[type(effect)](tx, effect)


def _start_session(tx: Tx, start: StartSession) -> str:
    if session_row(tx, start.new_session_id) is not None:
        return start.new_session_id
    left = taking_up.left_behind(tx, start.session_key, start.leaves)
    if left is not None and all(route["session_key"] == start.session_key for route in routes.routes_of(tx, left)):
        end_session_row(tx, left, start.reason)
    place = place_id(tx, start.place)
    insert_session(
        tx,
        start.new_session_id,
        start.source,
        model=start.model,
        user_id=start.user_id,
        owner=start.owner,
        room_id=start.room_id,
        session_key=start.session_key,
        place_id=place,
        title=start.title or None,
    )
    if start.session_key is not None:
        routes.point(tx, start.session_key, start.new_session_id, place, start.person_id)
    return start.new_session_id


#: How each effect is applied.
_APPLIED: Final[Mapping[type[Effect], Callable[[Tx, Any], Result]]] = {
    StartSession: _start_session,
    Retitle: lambda tx, effect: retitle(tx, effect.session_id, effect.title or ""),
    RequestStop: lambda tx, effect: control.request_stop(tx, effect.root_id, effect.person_id),
    ResumeSession: taking_up.resume,
    OfferSessions: taking_up.offer,
    SetHome: set_home,
    RequestHandoff: lambda tx, effect: request(tx, effect.handoff)["op_id"],
    TakeLocally: take_locally,
    Unlink: unlink,
    Compress: lambda tx, effect: compress(tx, effect).session_id,
    TakeBack: take_back,
    Branch: branch,
}


class Effects:
    """Effects of commands that did not come through the inbox (terminal, web page)."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def apply(self, effects: Sequence[Effect]) -> list[Result]:
        """Apply effects in one transaction; returns their results."""
        return await self._engine.write(lambda tx: apply_all(tx, effects))

    async def offered(self, asker: str) -> list[str]:
        """The sessions of the last numbered list that this asker was shown, in the order of the numbers."""
        now = time()
        return await self._engine.read(lambda rx: taking_up.offered(rx, asker, now))
