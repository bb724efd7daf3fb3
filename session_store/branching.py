"""A branch: a conversation of its own that begins with what another one has come to.

Contract: under the fence of the conversation, in one transaction: a session of kind `branch` is made with the same
source, owner, room, user, model and system prompt, the live session as its parent; what is seen of the conversation
(summary and tail, see view.py) is copied into it with its notes and files, so that neither of the two ever changes the
other; the place goes on in the branch. The parent goes on as it was: it is not ended, not hidden, and other places
still lead to it. A copied message names its original in its `op_id`. The same `branch_id` again changes nothing.
Failure: TitleTaken or InvalidArgument for a title that cannot be, FenceLost when the conversation was taken over;
nothing is changed then.
Limits: at most `MAX_COPIED` messages, the newest ones; older ones stay with the parent.
"""

from __future__ import annotations

from session_store import leases, routes
from session_store.jsontext import to_json
from session_store.lineage import live_tip
from session_store.models import Branch
from session_store.naming import free_title, retitle
from session_store.places import place_id
from session_store.sessions import insert_session, session_row
from session_store.titles import MAX_TITLE, split_number
from session_store.tx import Tx
from session_store.view import seen_from, segments, summary_op

__all__ = ["MAX_COPIED", "branch"]

MAX_COPIED = 10_000
_SUFFIX = " (branch)"

# What is copied of each message; the copy is no answer to an inbox row and part of no turn.
_COLUMNS = """role, content, tool_call_id, tool_calls, tool_name, timestamp, token_count, finish_reason, reasoning,
    reasoning_content, reasoning_details, codex_reasoning_items, codex_message_items, person_id, place_id"""
# The tail: ?1 branch, ?2 segments as JSON, ?3 the first that is seen, ?4 how many.
_COPY = f"""
INSERT INTO messages (session_id, op_id, {_COLUMNS})
SELECT ?1, 'branch:' || ?1 || ':' || id, {_COLUMNS} FROM (
    SELECT * FROM messages
    WHERE session_id IN (SELECT value FROM json_each(?2)) AND id >= ?3 AND rewound = 0
        AND (op_id IS NULL OR op_id NOT GLOB 'summary:*')
    ORDER BY id DESC LIMIT ?4)
ORDER BY id
"""  # noqa: S608 - joined from constants
_COPY_SUMMARY = f"""
INSERT INTO messages (session_id, op_id, {_COLUMNS})
SELECT ?1, ?2, {_COLUMNS} FROM messages WHERE op_id = ?3
"""  # noqa: S608 - joined from constants
# Originals by copy: ?1 branch.
_ORIGINALS = """
FROM messages AS c JOIN messages AS m ON m.id = CAST(SUBSTR(c.op_id, LENGTH('branch:' || ?1 || ':') + 1) AS INTEGER)
"""
_OF_BRANCH = "WHERE c.session_id = ?1 AND c.op_id GLOB 'branch:*'"
_COPY_NOTES = f"""
INSERT INTO message_notes (message_id, sender, quoted, quoted_name)
SELECT c.id, n.sender, n.quoted, n.quoted_name {_ORIGINALS} JOIN message_notes AS n ON n.message_id = m.id {_OF_BRANCH}
"""
_COPY_FILES = f"""
INSERT INTO message_attachments (message_id, position, name, kind, hash, size, media_type, problem)
SELECT c.id, a.position, a.name, a.kind, a.hash, a.size, a.media_type, a.problem
{_ORIGINALS} JOIN message_attachments AS a ON a.message_id = m.id {_OF_BRANCH}
"""
_COUNT = """
UPDATE sessions SET
    message_count = (SELECT COUNT(*) FROM messages WHERE session_id = ?1),
    tool_call_count = (SELECT COALESCE(SUM(CASE json_type(tool_calls)
            WHEN 'array' THEN json_array_length(tool_calls) ELSE 1 END), 0)
        FROM messages WHERE session_id = ?1 AND role = 'assistant' AND json_valid(tool_calls))
WHERE id = ?1
"""


def branch(tx: Tx, wanted: Branch) -> str:
    """Make a branch; returns its id. See the module."""
    if session_row(tx, wanted.branch_id) is not None:
        return wanted.branch_id
    leases.check(tx, wanted.fence)
    parent = session_row(tx, live_tip(tx, wanted.session_id))
    if parent is None:
        return wanted.branch_id
    place = place_id(tx, wanted.place)
    insert_session(
        tx,
        wanted.branch_id,
        parent["source"],
        model=parent["model"],
        model_config=parent["model_config"],
        system_prompt=parent["system_prompt"],
        user_id=parent["user_id"],
        parent_session_id=parent["id"],
        session_key=wanted.session_key,
        place_id=place,
        kind="branch",
    )
    title = wanted.title
    if title is None and parent["title"] is not None:
        base = split_number(parent["title"])[0]
        title = free_title(tx, base[: MAX_TITLE - len(_SUFFIX)].rstrip() + _SUFFIX, parent["owner"])
    if title is not None:
        retitle(tx, wanted.branch_id, title)
    tx.run(_COPY_SUMMARY, (wanted.branch_id, summary_op(wanted.branch_id), summary_op(parent["id"])))
    tx.run(_COPY, (wanted.branch_id, to_json(segments(tx, parent)), seen_from(tx, parent), MAX_COPIED))
    tx.run(_COPY_NOTES, (wanted.branch_id,))
    tx.run(_COPY_FILES, (wanted.branch_id,))
    tx.run(_COUNT, (wanted.branch_id,))
    if wanted.session_key is not None:
        routes.point(tx, wanted.session_key, wanted.branch_id, place, wanted.person_id)
    return wanted.branch_id
