"""The transaction *claim*: from inbox rows to a running turn, or nothing at all.

Contract: in one transaction the session is found or made, the reset policy is judged at the time the message was
received, the lease is taken, the user message is stored under its inbox row, the turn is entered, the rows are taken
and the route is moved. The same turn_id again gives the same Claim. `busy`, `gone` and `changed` change nothing.
A session chosen by id is continued whatever ended it, and made under that id if it is not there; the reset policy is
for routes only, and never cuts a link. A route is followed to the live tip; behind a session that ended for another
reason than compression a fresh one starts.
Failure: whatever `judge` raises, and InvalidArgument for a request that cannot be, undo everything.
Limits: the oldest row is not searched for: who claims keeps the order of a lane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from session_store import inbox, leases, routes
from session_store.attachments import attach
from session_store.errors import InvalidArgument
from session_store.jsontext import from_json
from session_store.lineage import live_tip, root_of
from session_store.links import copy_question, is_linked
from session_store.messages import insert_message
from session_store.models import Claim, ClaimRequest, Fence, NewMessage
from session_store.notes import add_note
from session_store.outbox import Origin
from session_store.places import place_id, present, rooms_of, touch_member
from session_store.rows import SessionRow
from session_store.sessions import end_session_row, insert_session, reopen_session_row, session_row
from session_store.tx import Row, Rx, Tx

__all__ = [
    "TURN",
    "Judge",
    "as_claim",
    "blocked",
    "claim",
    "fence_of",
    "input_received_at",
    "is_held",
    "running_turn",
    "target_of",
    "the_turn",
]

Judge: TypeAlias = Callable[[SessionRow, float], str | None]
"""Given a session and the time (Unix seconds) its next message was received: why it must end before, or None."""

_COLUMNS = """id, root_id, session_id, session_key, place_id, person_id, lane, state, attempt, reason, holder, fence,
    created, reset_reason, previous_session_id, input_message_id, final_message_id, origin, started_at, ended_at"""
TURN = f"SELECT {_COLUMNS} FROM turns WHERE id = ?"  # noqa: S608 - joined from constants
RUNNING = f"SELECT {_COLUMNS} FROM turns WHERE root_id = ? AND state = 'running' LIMIT 1"  # noqa: S608 - joined from constants
ADD_TURN = """
INSERT INTO turns (id, root_id, session_id, session_key, place_id, person_id, lane, holder, fence, created,
                   reset_reason, previous_session_id, input_message_id, origin, started_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# A session keeps the prompt of its first turn that has one.
PROMPT = "UPDATE sessions SET system_prompt = ? WHERE id = ? AND system_prompt IS NULL"
INPUT = "SELECT state, holder, received_at, session_key, lane FROM inbox WHERE id = ?"
# Who a row is from by now, if the person that it was from (?2) is gone.
MERGED = """
SELECT person_id FROM inbox
WHERE id = ?1 AND person_id IS NOT ?2 AND NOT EXISTS (SELECT 1 FROM people WHERE id = ?2)
"""
PAYLOAD = "SELECT payload FROM inbox WHERE id = ?"


def running_turn(rx: Rx, root_id: str) -> Row | None:
    """Return the running turn of a conversation."""
    return rx.one(RUNNING, (root_id,))


def the_turn(rx: Rx, turn_id: str) -> Row:
    """Return a turn that is there."""
    return rx.all(TURN, (turn_id,))[0]


def fence_of(turn: Row) -> Fence:
    """Return the fence under which a turn was last taken."""
    return Fence(turn["root_id"], turn["id"], turn["holder"], turn["fence"])


def as_claim(rx: Rx, turn: Row) -> Claim:
    """Return a running turn as the claim that its holder has."""
    return Claim(
        "claimed",
        fence=fence_of(turn),
        session_id=turn["session_id"],
        message_id=turn["input_message_id"],
        created=bool(turn["created"]),
        reset_reason=turn["reset_reason"],
        previous_session_id=turn["previous_session_id"],
        attempt=turn["attempt"],
        spoken_in=rooms_of(rx, turn["person_id"]) if turn["person_id"] is not None else frozenset(),
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where the message goes. previous: the session left behind, ended now if there is a reason."""

    session_id: str
    root_id: str
    fresh: bool
    previous: str | None = None
    reason: str | None = None


def claim(tx: Tx, request: ClaimRequest, judge: Judge) -> Claim:
    """Claim a turn; see the module."""
    known = tx.one(TURN, (request.turn_id,))
    if known is not None:
        mine = known["holder"] == request.holder and leases.holds(tx, fence_of(known))
        return as_claim(tx, known) if mine else Claim("gone")
    received_at = input_received_at(tx, request)
    if received_at is None:
        return Claim("gone")
    if not _as_read(tx, request):
        return Claim("changed")
    request = _as_known(tx, _as_routed(tx, request))
    plan = _plan(tx, request, received_at, judge)
    if isinstance(plan, Claim):
        return plan
    number = leases.acquire(tx, plan.root_id, request.holder, request.turn_id, "turn")
    return Claim("busy") if number is None else _begin(tx, request, received_at, plan, number)


def _plan(tx: Tx, request: ClaimRequest, received_at: float, judge: Judge) -> _Plan | Claim:
    """Decide where the message goes, or return why it cannot go anywhere now. Writes nothing."""
    target = target_of(tx, request.session_id, request.session_key)
    if target is None:
        return _fresh(tx, request)
    if target["ended_at"] is not None and request.session_id is None:
        return _fresh(tx, request, target["id"])
    root_id = root_of(tx, target["id"])
    in_the_way = blocked(tx, root_id, tx.boot_now)
    if in_the_way is not None:
        return in_the_way
    reason = None if request.session_id is not None else judge(_with_activity(target), received_at)
    if reason is not None and not is_linked(tx, root_id):
        return _fresh(tx, request, target["id"], reason)
    return _Plan(target["id"], root_id, fresh=False)


def _fresh(tx: Tx, request: ClaimRequest, previous: str | None = None, reason: str | None = None) -> _Plan:
    session_id = request.session_id or request.new_session_id
    if session_row(tx, session_id) is not None:
        raise InvalidArgument(f"There is a session {session_id} already. Choose another id for the new one.")
    return _Plan(session_id, session_id, fresh=True, previous=previous, reason=reason)


def _begin(tx: Tx, request: ClaimRequest, received_at: float, plan: _Plan, number: int) -> Claim:
    """Write everything that makes the turn, the lease being taken."""
    place = place_id(tx, request.place)
    if plan.previous is not None and plan.reason is not None:
        end_session_row(tx, plan.previous, plan.reason)
    if plan.fresh:
        _make_session(tx, request, plan.session_id, place)
    else:
        reopen_session_row(tx, plan.session_id)
        if request.system_prompt is not None:
            tx.run(PROMPT, (request.system_prompt, plan.session_id))
    message_id = _store_input(tx, request, plan.session_id, place, received_at)
    who = (request.session_key, place, request.person_id, request.lane, request.holder, number)
    history = (int(plan.fresh), plan.reason, plan.previous, message_id, request.origin)
    tx.run(ADD_TURN, (request.turn_id, plan.root_id, plan.session_id, *who, *history, tx.now))
    for inbox_id in request.inbox_ids:
        inbox.take(tx, inbox_id, request.holder, request.turn_id)
    if request.session_key is not None:
        routes.point(tx, request.session_key, plan.session_id, place, request.person_id)
    if not plan.fresh:
        said = Origin(plan.session_id, message_id, request.turn_id, request.inbox_ids[0])
        copy_question(tx, plan.root_id, said, request.content)
    return as_claim(tx, the_turn(tx, request.turn_id))


def input_received_at(tx: Tx, request: ClaimRequest) -> float | None:
    """When the first input row was received; None if any row is not new or belongs to another process."""
    if not request.inbox_ids:
        raise InvalidArgument("A turn needs at least one inbox row.")
    rows = [tx.one(INPUT, (inbox_id,)) for inbox_id in request.inbox_ids]
    free = [
        row for row in rows if row is not None and row["state"] == "new" and row["holder"] in {None, request.holder}
    ]
    return float(free[0]["received_at"]) if len(free) == len(rows) else None


def _as_read(rx: Rx, request: ClaimRequest) -> bool:
    """Whether the rows still say what they said when they were read."""
    if request.texts is None:
        return True
    payloads = [from_json(rx.value(PAYLOAD, (inbox_id,))) or {} for inbox_id in request.inbox_ids]
    return [str(payload.get("text", "")) for payload in payloads] == list(request.texts)


def _as_routed(rx: Rx, request: ClaimRequest) -> ClaimRequest:
    """The request with key and lane as the rows have them now, if their chat has moved since they were read."""
    if present(rx, request.place).chat == request.place.chat:
        return request
    row = rx.all(INPUT, (request.inbox_ids[0],))[0]
    return replace(request, session_key=row["session_key"], lane=row["lane"], platform_message_id=None)


def _as_known(rx: Rx, request: ClaimRequest) -> ClaimRequest:
    """The request of the person that the sender is now, if a pairing has merged two since the rows were read."""
    known: str | None = rx.value(MERGED, (request.inbox_ids[0], request.person_id)) if request.person_id else None
    if known is None:
        return request
    return replace(request, person_id=known, owner=known if request.owner == request.person_id else request.owner)


def target_of(rx: Rx, session_id: str | None, session_key: str | None) -> SessionRow | None:
    """The tip that is asked for by id or by route, ended or not."""
    if session_id is None:
        return None if session_key is None else routes.session_for(rx, session_key)
    if session_row(rx, session_id) is None:
        return None
    return session_row(rx, live_tip(rx, session_id))


def is_held(rx: Rx, session_key: str | None, session_id: str | None, boot_now: float) -> bool:
    """Whether a claim by this id or key would be busy, with no orphan in the way that could be taken over first."""
    target = target_of(rx, session_id, session_key)
    if target is None or (target["ended_at"] is not None and session_id is None):
        return False
    in_the_way = blocked(rx, root_of(rx, target["id"]), boot_now)
    return in_the_way is not None and in_the_way.orphan is None


def blocked(rx: Rx, root_id: str, boot_now: float) -> Claim | None:
    """Why a conversation cannot be worked now, or None if it can."""
    lease = leases.lease_of(rx, root_id)
    running = running_turn(rx, root_id)
    if running is None:
        return None if leases.is_free(rx, lease, boot_now) else Claim("busy")
    # A turn whose process is gone goes first: it is older, and its input must not be lost.
    return Claim("busy", orphan=running["id"] if leases.is_orphaned(rx, lease, boot_now) else None)


def _with_activity(session: SessionRow) -> SessionRow:
    """The session with its last activity: a message, or that somebody took it up; rows of other tools have neither."""
    active = session["last_active"] if session["last_active"] is not None else session["started_at"]
    return cast("SessionRow", {**session, "last_active": max(active, session["resumed_at"] or active)})


def _make_session(tx: Tx, request: ClaimRequest, session_id: str, place: int) -> None:
    insert_session(
        tx,
        session_id,
        request.source,
        model=request.model,
        system_prompt=request.system_prompt,
        user_id=request.user_id,
        owner=request.owner,
        room_id=request.room_id,
        session_key=request.session_key,
        place_id=place,
    )


def _store_input(tx: Tx, request: ClaimRequest, session_id: str, place: int, received_at: float) -> int:
    """Store the user message as received then, and note who has spoken in the room."""
    if request.room_id is not None and request.person_id is not None:
        touch_member(tx, request.room_id, request.person_id)
    message_id = insert_message(
        tx,
        session_id,
        NewMessage("user", request.content),
        person_id=request.person_id,
        place_id=place,
        platform_message_id=request.platform_message_id,
        inbox_id=request.inbox_ids[0],
        turn_id=request.turn_id,
        timestamp=received_at,
    )
    add_note(tx, message_id, request.note, _made_of(request))
    attach(tx, message_id, request.attachments)
    return message_id


def _made_of(request: ClaimRequest) -> list[tuple[int, str]] | None:
    """Inbox row and text of each part, unless the content is the text of one row and nothing else."""
    if request.texts is None or (len(request.texts) == 1 and request.content == request.texts[0]):
        return None
    return list(zip(request.inbox_ids, request.texts, strict=True))
