"""What is seen of a conversation, whatever was said, compressed, taken back and branched before."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.window import fitted
from session_store.branching import branch
from session_store.compress import compress
from session_store.holding import take
from session_store.messages import insert_message
from session_store.models import Branch, Compress, Fence, NewMessage, PlaceRef, TakeBack
from session_store.processes import Registration, boot_clock, identity_of, register
from session_store.sessions import insert_session, session_row
from session_store.taking_back import take_back
from session_store.tx import Tx, dict_row
from session_store.view import context_view, row_tokens

SCHEMA = (Path(__file__).parents[3] / "session_store" / "schema.sql").read_text(encoding="utf-8")
TERMINAL = PlaceRef("cli", "main", "dm", "owner")

OPERATION = st.one_of(
    st.tuples(st.just("say"), st.integers(0, 3)),
    st.tuples(st.just("append"), st.integers(0, 10)),
    st.tuples(st.just("compress"), st.integers(0, 100)),
    st.tuples(st.just("undo"), st.integers(0, 100)),
    st.tuples(st.just("branch"), st.just(0)),
)


class Story:
    """A conversation that operations are done to, and what must be seen of it: `seen`, oldest first."""

    def __init__(self) -> None:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.row_factory = dict_row
        connection.executescript(SCHEMA)
        self.tx = Tx(connection, time.time(), boot_clock())
        register(self.tx, Registration("A", identity_of(os.getpid()), "terminal", (), "{}", self.tx.now))
        insert_session(self.tx, "s0", "cli", owner="owner", title="X")
        self.ids = ["s0"]
        self.seen: list[str] = []
        self.summary: str | None = None
        self.lost: set[str] = set()
        self.count = 0

    @property
    def tip(self) -> str:
        """The live session."""
        return self.ids[-1]

    def fence(self) -> Fence:
        """The conversation, held."""
        held = take(self.tx, self.tip, "A", "w", "compression")
        assert held.fence is not None
        return held.fence

    def store(self, role: str, session_id: str | None = None, **more: object) -> None:
        """A message, by any id of the conversation."""
        self.count += 1
        text = f"{role} {self.count}"
        insert_message(self.tx, session_id or self.tip, NewMessage(role, text, **more))  # type: ignore[arg-type]
        self.seen.append(text)

    def do(self, operation: str, number: int) -> None:
        """One operation, on the store and on what is expected."""
        rows = context_view(self.tx, self.tip).rows
        fresh = f"s{len(self.ids)}"
        if operation == "say":
            self.store("user")
            for call in range(number):
                self.store("assistant", tool_calls=[{"id": f"c{call}", "function": {"name": "look"}}])
                self.store("tool", tool_call_id=f"c{call}")
            self.store("assistant")
        elif operation == "append":
            old = [one for one in self.ids if self.tx.value("SELECT end_reason FROM sessions WHERE id = ?", (one,))]
            self.store("user", old[number % len(old)] if old and self.leads_here(old[number % len(old)]) else None)
        elif operation == "compress" and rows:
            kept = number % (len(rows) + 1)
            mark = rows[kept]["id"] if kept < len(rows) else rows[-1]["id"] + 1
            compress(self.tx, Compress(self.fence(), self.tip, fresh, f"summary {fresh}", mark, title="X #2"))
            self.ids.append(fresh)
            self.seen, self.summary = self.seen[kept:], f"summary {fresh}"
        elif operation == "undo" and rows:
            first = number % len(rows)
            assert take_back(self.tx, TakeBack(self.fence(), self.tip, rows[first]["id"]))
            self.lost |= set(self.seen[first:])
            self.seen = self.seen[:first]
        elif operation == "branch":
            self.fence()
            branch(self.tx, Branch(self.fence(), self.tip, fresh, TERMINAL))
            self.ids.append(fresh)

    def leads_here(self, session_id: str) -> bool:
        """Whether a session is of the present conversation."""
        rows = [session_row(self.tx, one) for one in (session_id, self.tip)]
        return rows[0] is not None and rows[1] is not None and rows[0]["root_id"] == rows[1]["root_id"]


@settings(max_examples=60)
@given(st.lists(OPERATION, max_size=25), st.integers(10, 400))
def test_nothing_is_lost_between_summary_and_tail_and_nothing_comes_twice(
    operations: list[tuple[str, int]], limit: int
) -> None:
    """The view is the summary and all since; a limited one is the end of it; counters count what is not taken back."""
    story = Story()
    for operation, number in operations:
        story.do(operation, number)
    view = context_view(story.tx, story.ids[0] if story.leads_here(story.ids[0]) else story.tip)
    assert (view.summary, [row["content"] for row in view.rows]) == (story.summary, story.seen)
    part = context_view(story.tx, story.tip, limit=limit)
    stored = [story.tx.all("SELECT * FROM messages WHERE id = ?", (row["id"],))[0] for row in part.rows]
    assert part.whole or sum(row_tokens(row) for row in stored) >= limit
    assert [row["content"] for row in part.rows] == story.seen[len(story.seen) - len(part.rows) :]
    shown = fitted(view.rows, 10**9, summary=view.summary).messages
    assert not story.lost & {str(message["content"]) for message in shown}
    counted = story.tx.all("SELECT id, message_count, tool_call_count FROM sessions ORDER BY id")
    for row in counted:
        there = story.tx.all(
            "SELECT COUNT(*) AS n, COALESCE(SUM(tool_calls IS NOT NULL), 0) AS calls FROM messages"
            " WHERE session_id = ? AND rewound = 0",
            (row["id"],),
        )[0]
        assert (row["message_count"], row["tool_call_count"]) == (there["n"], there["calls"])


def test_a_branch_and_its_parent_never_change_each_other() -> None:
    """What is said and taken back in one is not seen in the other; notes and summary came along."""
    story = Story()
    for _ in range(3):
        story.do("say", 1)
    story.do("compress", 4)
    story.do("branch", 0)
    original = context_view(story.tx, "s1")
    before = [row["content"] for row in original.rows]
    story.do("undo", 0)
    story.do("say", 0)
    assert [row["content"] for row in context_view(story.tx, "s1").rows] == before
    copy = context_view(story.tx, story.tip)
    assert copy.summary == original.summary == "summary s1"
    assert [row["content"] for row in copy.rows] == story.seen


def test_a_continuation_of_another_tool_has_its_own_messages_only() -> None:
    """Without `context_from` nothing is read by reference."""
    story = Story()
    story.do("say", 0)
    story.tx.run("UPDATE sessions SET end_reason = 'compression', ended_at = 1 WHERE id = 's0'")
    insert_session(story.tx, "s1", "cli", parent_session_id="s0")
    insert_message(story.tx, "s0", NewMessage("user", "here"))
    assert [row["content"] for row in context_view(story.tx, "s0").rows] == ["here"]
