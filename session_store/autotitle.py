"""A title for a conversation that nobody has named.

Contract: `first_exchange` tells what a new conversation is about, as long as it needs a title; `title_if_none` gives
one, never over another: whether there is one is looked at in the same transaction. A title that its owner has already
gets the next free number, and a number at the end of the proposed one goes, since it would read as one of a lineage.
Failure: an unknown session, and one that has a title by now, give None. Limits: only conversations with at most
`MOST_QUESTIONS` questions so far; what compression continues is named after what it continues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from session_store.content import plain_text
from session_store.lineage import live_tip
from session_store.naming import free_title
from session_store.sessions import session_row
from session_store.titles import MAX_TITLE, one_line, split_number, title_key
from session_store.tx import Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["MOST_QUESTIONS", "AutomaticTitles", "first_exchange", "title_if_none"]

MOST_QUESTIONS = 3

# The first things that people and the agent said.
_SAID = """
SELECT role, content FROM messages
WHERE session_id = ? AND rewound = 0 AND role IN ('user', 'assistant') AND COALESCE(content, '') <> ''
ORDER BY id LIMIT 20
"""
_TITLE = "UPDATE sessions SET title = ?, title_key = ? WHERE id = ? AND title IS NULL"
_KINDS = frozenset({"live", "branch"})


def first_exchange(rx: Rx, session_id: str) -> list[dict[str, Any]] | None:
    """Return the first question and its answer in provider format; None where no title is wanted (any more)."""
    session = session_row(rx, session_id)
    if session is None or session["title"] is not None or session["kind"] not in _KINDS:
        return None
    if session["root_id"] not in {None, session_id}:
        return None
    rows = rx.all(_SAID, (session_id,))
    asked = [number for number, row in enumerate(rows) if row["role"] == "user"]
    answered = [number for number, row in enumerate(rows) if row["role"] == "assistant"]
    if not asked or len(asked) > MOST_QUESTIONS or not answered or answered[-1] < asked[0]:
        return None
    until = asked[1] if len(asked) > 1 else len(rows)
    exchange = [rows[asked[0]], *(rows[number] for number in answered if asked[0] < number < until)]
    return [{"role": row["role"], "content": plain_text(row["content"])} for row in exchange]


def title_if_none(tx: Tx, session_id: str, title: str) -> str | None:
    """Give a session a title unless it has one; returns the title it got, None if it got none."""
    known = session_row(tx, session_id) is not None
    # Compression may have moved the conversation on while the title was made.
    session = session_row(tx, live_tip(tx, session_id)) if known else None
    base = split_number(one_line(title))[0][:MAX_TITLE].rstrip()
    if session is None or session["title"] is not None or not base:
        return None
    given = free_title(tx, base, session["owner"])
    return given if tx.run(_TITLE, (given, title_key(given), session["id"])) else None


class AutomaticTitles:
    """Titles that nobody gave; each method is one query or one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def first_exchange(self, session_id: str) -> list[dict[str, Any]] | None:
        """The first question and its answer in provider format; None where no title is wanted (any more)."""
        return await self._engine.read(lambda rx: first_exchange(rx, session_id))

    async def give(self, session_id: str, title: str) -> str | None:
        """Give a session a title unless it has one; returns the title it got (numbered if taken), else None."""
        return await self._engine.write(lambda tx: title_if_none(tx, session_id, title))
