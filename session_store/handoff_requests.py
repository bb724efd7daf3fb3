"""The request of a handoff or link: what may be asked for, and the row that it becomes.

Contract: a request is known by its op_id for ever. It is refused, in a sentence, when nothing was said in the
conversation, when it is on its way already and when it is there already. The asker's visibility is judged inside the
transaction, so that what is not theirs is not found.
"""

from __future__ import annotations

from typing import cast

from session_store.errors import HandoffRefused, NotFound
from session_store.lineage import live_tip, root_of
from session_store.models import NewHandoff
from session_store.places import place_id, place_of, present
from session_store.processes import this_boot
from session_store.routes import routes_of
from session_store.rows import HandoffRow
from session_store.sessions import session_row
from session_store.tx import Row, Rx, Tx
from session_store.visible import is_visible

__all__ = ["BY_ID", "BY_OP", "CLAIM_SECONDS", "END", "ROW", "as_row", "overdue", "request"]

CLAIM_SECONDS = 60.0
"""So long a request may wait for its gateway."""

ROW = """
SELECT id, op_id, kind, root_id, target_id, user_id, person_id, asked_at_id, state, stage, opening, place_id,
       note, holder, attempts, error, requested_at, claimed_at, ended_at, deadline, boot_id
FROM handoffs
"""
BY_ID = f"{ROW} WHERE id = ?"
BY_OP = f"{ROW} WHERE op_id = ?"
OPEN_OF = f"{ROW} WHERE root_id = ? AND state IN ('requested', 'claimed')"
# What went before, of one conversation and one target: where it went on then.
LAST_TO = """
SELECT place_id FROM handoffs WHERE root_id = ? AND target_id = ? AND state = 'completed' ORDER BY id DESC LIMIT 1
"""
_PLACES = ("target", "asked_at", "place")

ADD = """
INSERT INTO handoffs (op_id, kind, root_id, target_id, user_id, person_id, asked_at_id, deadline, boot_id,
                      requested_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
END = """
UPDATE handoffs SET state = ?2, error = ?3, ended_at = ?4 WHERE id = ?1 AND state IN ('requested', 'claimed')
    AND (?5 IS NULL OR (state = 'claimed' AND holder = ?5)) AND (?6 IS NULL OR state = ?6)
"""
SAID = """
SELECT 1 FROM sessions AS s JOIN messages AS m ON m.session_id = s.id
WHERE (s.root_id = ?1 OR s.id = ?1) AND m.role IN ('user', 'assistant') AND m.rewound = 0 LIMIT 1
"""


def request(tx: Tx, new: NewHandoff) -> HandoffRow:
    """Enter a request, or find it entered.

    Raises:
        NotFound: no such session, or the asker may not see it.
        HandoffRefused: nothing was said in it, it is on its way already, or it is there already.
    """
    known = tx.one(BY_OP, (new.op_id,))
    if known is not None:
        return as_row(tx, known)
    if session_row(tx, new.session_id) is None or not is_visible(tx, live_tip(tx, new.session_id), new.visible_to):
        raise NotFound(f"There is no session {new.session_id!r}. List the sessions to see which there are.")
    root = root_of(tx, new.session_id)
    if tx.one(SAID, (root,)) is None:
        raise HandoffRefused("Nothing was said in this session yet. Say something first; then there is a line to move.")
    _expire_own(tx, root)
    if tx.one(OPEN_OF, (root,)) is not None:
        raise HandoffRefused("This conversation is on its way to another place already. Wait until it has arrived.")
    target = place_id(tx, new.target.place)
    _refuse_where_it_is(tx, root, target)
    asked_at = None if new.asked_at is None else place_id(tx, new.asked_at)
    who = (new.target.user_id, new.person_id, asked_at)
    times = (tx.boot_now + CLAIM_SECONDS, this_boot(), tx.now)
    entered = tx.insert(ADD, (new.op_id, new.kind, root, target, *who, *times))
    return as_row(tx, tx.all(BY_ID, (entered,))[0])


def _expire_own(tx: Tx, root_id: str) -> None:
    """An overdue request that nobody has looked at is no reason to refuse a new one."""
    waiting = tx.one(OPEN_OF, (root_id,))
    if waiting is not None and waiting["state"] == "requested" and overdue(waiting, tx.boot_now):
        tx.run(END, (waiting["id"], "expired", "No gateway took it in time.", tx.now, None, "requested"))


def _refuse_where_it_is(tx: Tx, root_id: str, target: int) -> None:
    place = place_of(tx, target)
    last = tx.value(LAST_TO, (root_id, target))
    for route in routes_of(tx, root_id):
        same = place is not None and (route["platform"], route["account"], route["chat"]) == (
            place.platform,
            place.account,
            place.chat,
        )
        if same or (last is not None and route["place_id"] == last):
            raise HandoffRefused("The conversation is there already. Just write there to go on.")


def overdue(row: Row, boot_now: float) -> bool:
    """Whether a request has waited too long for its gateway; one from before a restart has."""
    return bool(row["boot_id"] != this_boot() or boot_now > row["deadline"])


def as_row(rx: Rx, row: Row) -> HandoffRow:
    """Return a row as readers get it, with its places."""
    places = {name: None if row[f"{name}_id"] is None else place_of(rx, row[f"{name}_id"]) for name in _PLACES}
    if places["target"] is not None:
        places["target"] = present(rx, places["target"])
    hidden = {"deadline", "boot_id", *(f"{name}_id" for name in _PLACES)}
    return cast("HandoffRow", {key: value for key, value in row.items() if key not in hidden} | places)
