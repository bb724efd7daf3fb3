"""The transaction *claim* for a question that was answered before: the answer is taken back, a new turn begins.

Contract: in one transaction: the lease is taken, everything that was answered to the last question is taken back (what
people said meanwhile stays), a turn is entered whose input is the stored question as it reads now, and the inbox row of
the request is taken as the turn's. The question is never stored twice. The same turn_id again gives the same Claim.
`busy` and `gone` change nothing, and neither does None: there is no question here that could be answered again.
Limits: a question that only the summary of a compressed conversation knows cannot be answered again.
"""

from __future__ import annotations

from dataclasses import dataclass

from session_store import inbox, leases, routes
from session_store.changed import joined
from session_store.claim import ADD_TURN, as_claim, blocked, fence_of, input_received_at, target_of, the_turn
from session_store.claim import TURN as THE_TURN
from session_store.content import encode_content, plain_text
from session_store.decoding import decode_message
from session_store.jsontext import from_json, to_json
from session_store.lineage import root_of
from session_store.models import Claim, ClaimRequest
from session_store.places import place_id
from session_store.rows import SessionRow
from session_store.sessions import reopen_session_row
from session_store.taking_back import rewind
from session_store.tx import Row, Rx, Tx
from session_store.view import seen_from, segments

__all__ = ["Again", "claim_again", "said_in"]

_LAST = """
SELECT id, turn_id FROM messages
WHERE session_id IN (SELECT value FROM json_each(?1)) AND id >= ?2 AND rewound = 0 AND role = 'user'
ORDER BY id DESC LIMIT 1
"""
# What a turn began with, if it is still seen.
_BEGAN = """
SELECT m.id FROM turns AS t JOIN messages AS m ON m.id = t.input_message_id
WHERE t.id = ?1 AND m.rewound = 0 AND m.id >= ?2
"""
_ASKED = """
SELECT m.*, n.parts FROM turns AS t JOIN messages AS m ON m.id = t.input_message_id
LEFT JOIN message_notes AS n ON n.message_id = m.id WHERE t.id = ?
"""
_ITS_TURN = "UPDATE messages SET turn_id = ? WHERE id = ?"
# The new answer is to the present text: nobody needs to be told of the change any more.
_TOLD = "UPDATE message_versions SET told_after = 9223372036854775807 WHERE message_id = ?"


@dataclass(frozen=True, slots=True)
class Again:
    """A claim, and what the person wrote in the question."""

    claim: Claim
    said: str = ""


def claim_again(tx: Tx, request: ClaimRequest) -> Again | None:
    """Claim a turn that answers the last question of a conversation again; see the module."""
    claim = _claim(tx, request)
    if claim is None or claim.status != "claimed":
        return None if claim is None else Again(claim)
    return Again(claim, said_in(tx, request.turn_id) or "")


def _claim(tx: Tx, request: ClaimRequest) -> Claim | None:
    known = tx.one(THE_TURN, (request.turn_id,))
    if known is not None:
        mine = known["holder"] == request.holder and leases.holds(tx, fence_of(known))
        return as_claim(tx, known) if mine else Claim("gone")
    if input_received_at(tx, request) is None:
        return Claim("gone")
    target = target_of(tx, request.session_id, request.session_key)
    if target is None or (target["ended_at"] is not None and request.session_id is None):
        return None
    root_id = root_of(tx, target["id"])
    in_the_way = blocked(tx, root_id, tx.boot_now)
    if in_the_way is not None:
        return in_the_way
    question = _question(tx, target)
    if question is None:
        return None
    number = leases.acquire(tx, root_id, request.holder, request.turn_id, "turn")
    return Claim("busy") if number is None else _begin(tx, request, root_id, target["id"], question, number)


def _question(rx: Rx, tip: SessionRow) -> int | None:
    """The message that the last answer was to."""
    mark = seen_from(rx, tip)
    last = rx.one(_LAST, (to_json(segments(rx, tip)), mark))
    if last is None:
        return None
    began: int | None = rx.value(_BEGAN, (last["turn_id"], mark))
    return began if began is not None else int(last["id"])


def _begin(tx: Tx, request: ClaimRequest, root_id: str, session_id: str, question: int, number: int) -> Claim:  # noqa: PLR0913, PLR0917 - each is one fact of the turn
    place = place_id(tx, request.place)
    reopen_session_row(tx, session_id)
    rewind(tx, session_id, question + 1, users=False)
    tx.run(_ITS_TURN, (request.turn_id, question))
    tx.run(_TOLD, (question,))
    who = (request.session_key, place, request.person_id, request.lane, request.holder, number)
    history = (0, None, None, question, request.origin)
    tx.run(ADD_TURN, (request.turn_id, root_id, session_id, *who, *history, tx.now))
    for inbox_id in request.inbox_ids:
        inbox.take(tx, inbox_id, request.holder, request.turn_id)
    if request.session_key is not None:
        routes.point(tx, request.session_key, session_id, place, request.person_id)
    return as_claim(tx, the_turn(tx, request.turn_id))


def said_in(rx: Rx, turn_id: str) -> str | None:
    """What the person wrote in the message that a turn answers, without the words of its files."""
    asked = rx.one(_ASKED, (turn_id,))
    if asked is None:
        return None
    parts = from_json(asked.pop("parts"))
    if isinstance(parts, list):
        return joined([str(text) for _, text in parts])
    content = decode_message(asked)["content"]
    return content if isinstance(content, str) else plain_text(_stored(asked))


def _stored(row: Row) -> str:
    return str(row["content"] if isinstance(row["content"], str) else encode_content(row["content"]))
