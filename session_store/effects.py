"""What a command changes in the store, in one transaction with whatever marks the command as done.

Contract: results by effect: StartSession -> id of the new session, Retitle -> the title as stored (None: removed),
RequestStop -> whether a turn was running, ResumeSession -> the live tip, OfferSessions -> None, RequestHandoff -> its
op_id, SetHome, TakeLocally and Unlink -> whether anything changed. Effects apply together or not at all: one that
cannot be (TitleTaken, InvalidArgument, NotFound, HandoffRefused) raises and undoes the transaction. A repeated
StartSession is known by its new session's id.
Limits: the session that is left ends only if no other place is linked to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import time
from typing import TYPE_CHECKING, TypeAlias

from session_store import control, routes, taking_up
from session_store.binding import take_locally
from session_store.handoff_requests import request
from session_store.homes import set_home
from session_store.links import unlink
from session_store.models import (
    Effect,
    OfferSessions,
    RequestHandoff,
    RequestStop,
    ResumeSession,
    Retitle,
    SetHome,
    StartSession,
    TakeLocally,
    Unlink,
)
from session_store.places import place_id
from session_store.sessions import end_session_row, insert_session, retitle, session_row
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
    result: Result
    match effect:
        case StartSession():
            result = _start_session(tx, effect)
        case Retitle(session_id, title):
            result = retitle(tx, session_id, title or "")
        case RequestStop(root_id, person_id):
            result = control.request_stop(tx, root_id, person_id)
        case ResumeSession():
            result = taking_up.resume(tx, effect)
        case OfferSessions():
            taking_up.offer(tx, effect)
            result = None
        case SetHome():
            result = set_home(tx, effect)
        case RequestHandoff(handoff):
            result = request(tx, handoff)["op_id"]
        case TakeLocally():
            result = take_locally(tx, effect)
        case Unlink():
            result = unlink(tx, effect)
    return result


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
