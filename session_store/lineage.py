"""Conversations: which sessions belong together, which is the first, which is the live last one.

Contract: a conversation is a chain of sessions joined by compression edges only: the parent was ended by
'compression' and the child is a live session (not a branch, not a scheduled or tool run). Sessions that other tools
made carry no `root_id`; for them the edges are walked. Of several continuations of one parent the tip goes through
the one that was compressed itself, else the one still open, else the last active one; clocks play no part before that.
Failure: an unknown session raises `NotFound`.
Limits: a chain is followed for 1,000 steps; a ring made by a foreign tool ends there and is never an endless loop.
"""

from __future__ import annotations

from session_store.errors import NotFound
from session_store.tx import Rx, Tx

__all__ = [
    "CHAIN_OF_TIPS",
    "COMPRESSION",
    "IS_TIP",
    "adopt_continuations",
    "conversation_of",
    "live_tip",
    "root_of",
    "unknown_session",
]

COMPRESSION = "compression"

# The condition of a compression edge, for the child `c` of a parent that compression ended.
_CONTINUES = "c.kind = 'live' AND c.source <> 'tool'"

# Of several continuations the one that the conversation went on in.
_PREFERRED = """
    SELECT c.id FROM sessions c
    WHERE c.parent_session_id = chain.id AND /*continues*/
    ORDER BY c.end_reason IS 'compression' DESC, c.ended_at IS NULL DESC,
             COALESCE(c.last_active, c.started_at) DESC, c.rowid DESC
    LIMIT 1
""".replace("/*continues*/", _CONTINUES)

#: For the WHERE of a query over `sessions s`: is this row the tip of its conversation? The walk up to the root and down
#: again happens only for rows that continue another one.
IS_TIP = """(
    (s.end_reason IS NOT 'compression'
        OR NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_session_id = s.id AND /*continues*/))
    AND (s.parent_session_id IS NULL OR s.kind <> 'live'
        OR (SELECT p.end_reason FROM sessions p WHERE p.id = s.parent_session_id) IS NOT 'compression'
        OR s.id = (
            WITH RECURSIVE up(id, hop) AS (
                SELECT s.id, 0
                UNION ALL
                SELECT p.id, hop + 1
                FROM up
                JOIN sessions c ON c.id = up.id AND /*continues*/
                JOIN sessions p ON p.id = c.parent_session_id AND p.end_reason = 'compression'
                WHERE hop < 1000
            ), chain(id, hop) AS (
                SELECT (SELECT id FROM up ORDER BY hop DESC LIMIT 1), 0
                UNION ALL
                SELECT (/*preferred*/), hop + 1
                FROM chain JOIN sessions e ON e.id = chain.id AND e.end_reason = 'compression'
                WHERE hop < 1000
            )
            SELECT id FROM chain WHERE id IS NOT NULL ORDER BY hop DESC LIMIT 1)))
""".replace("/*preferred*/", _PREFERRED).replace("/*continues*/", _CONTINUES)

#: Common table expressions over `page(tip)`: `chain` has every segment from each tip up to its root (highest hop).
CHAIN_OF_TIPS = """chain(tip, id, hop) AS (
    SELECT tip, tip, 0 FROM page
    UNION ALL
    SELECT chain.tip, p.id, hop + 1
    FROM chain
    JOIN sessions c ON c.id = chain.id AND /*continues*/
    JOIN sessions p ON p.id = c.parent_session_id AND p.end_reason = 'compression'
    WHERE hop < 1000
)""".replace("/*continues*/", _CONTINUES)

_END_REASON = "SELECT end_reason FROM sessions WHERE id = ?"

# Follow the preferred continuation from one session to the last of its chain.
_TIP = """
WITH RECURSIVE chain(id, hop) AS (
    SELECT ?1, 0
    UNION ALL
    SELECT (/*preferred*/), hop + 1
    FROM chain JOIN sessions e ON e.id = chain.id AND e.end_reason = 'compression'
    WHERE hop < 1000
)
SELECT id FROM chain WHERE id IS NOT NULL ORDER BY hop DESC LIMIT 1
""".replace("/*preferred*/", _PREFERRED)

# Walk up: a stored root is a jump, a compression edge is a step; the row above which there is nothing is the root.
_ROOT = """
WITH RECURSIVE up(id, hop) AS (
    SELECT ?1, 0
    UNION ALL
    SELECT s.id, hop + 1
    FROM up
    JOIN sessions c ON c.id = up.id
    JOIN sessions s ON s.id = CASE
        WHEN c.root_id <> c.id THEN c.root_id
        WHEN /*continues*/ THEN
            (SELECT p.id FROM sessions p WHERE p.id = c.parent_session_id AND p.end_reason = 'compression')
        END
    WHERE hop < 1000
)
SELECT s.id FROM up JOIN sessions s ON s.id = up.id ORDER BY hop DESC LIMIT 1
""".replace("/*continues*/", _CONTINUES)

# All sessions of the conversation whose root is given, oldest first (a parent is always inserted before its child).
_MEMBERS = """
WITH RECURSIVE segment(id) AS (
    SELECT ?1
    UNION
    SELECT c.id
    FROM segment
    JOIN sessions p ON p.id = segment.id AND p.end_reason = 'compression'
    JOIN sessions c ON c.parent_session_id = p.id AND /*continues*/
)
SELECT id FROM sessions
WHERE id IN (SELECT id FROM segment) OR root_id = ?1
ORDER BY rowid LIMIT 100000
""".replace("/*continues*/", _CONTINUES)

# A continuation made before its parent was ended belongs to the parent's conversation from then on.
_ADOPT = """
UPDATE sessions SET root_id = ?1
WHERE root_id IN (SELECT id FROM sessions WHERE parent_session_id = ?2 AND kind = 'live' AND source <> 'tool')
"""


def unknown_session(session_id: str) -> NotFound:
    """Return the error for a session that is not there."""
    return NotFound(f"There is no session {session_id!r}. List the sessions to see which there are.")


def live_tip(rx: Rx, session_id: str) -> str:
    """Return the live last session of the conversation that `session_id` belongs to; itself if not compressed.

    Raises:
        NotFound: no such session.
    """
    row = rx.one(_END_REASON, (session_id,))
    if row is None:
        raise unknown_session(session_id)
    return session_id if row["end_reason"] != COMPRESSION else str(rx.value(_TIP, (session_id,)))


def root_of(rx: Rx, session_id: str) -> str:
    """Return the first session of the conversation that `session_id` belongs to.

    Raises:
        NotFound: no such session.
    """
    root = rx.value(_ROOT, (session_id,))
    if root is None:
        raise unknown_session(session_id)
    return str(root)


def conversation_of(rx: Rx, session_id: str) -> list[str]:
    """Return the ids of all sessions of the conversation, the first one first.

    Raises:
        NotFound: no such session.
    """
    return [row["id"] for row in rx.all(_MEMBERS, (root_of(rx, session_id),))]


def adopt_continuations(tx: Tx, session_id: str) -> None:
    """Move the children of a session just ended by compression into its conversation."""
    tx.run(_ADOPT, (root_of(tx, session_id), session_id))
