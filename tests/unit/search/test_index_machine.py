"""Everything that can happen to messages, sessions and the index, in any order, by us and by other tools.

The machine keeps no account of its own: after every step a search must give what the tables say, and when the index has
caught up it must hold, posting for posting, what an index would hold that is made from the messages at that moment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from session_store import index
from session_store.models import Visibility
from session_store.tx import Rx, Tx
from tests.unit.search.bench import ADD, Bench, fresh_postings

#: No word is part of another, so that words and parts of words are found alike.
WORDS = ["docker", "部署", "脚", "слово", "ünï", "x🤔"]
SESSIONS = ["a", "b"]
OWNERS = ["owner", "p1", None]
STORED = """
SELECT m.id, s.owner, concat_texts AS text
FROM messages AS m JOIN sessions AS s ON s.id = m.session_id ORDER BY m.id DESC LIMIT 100
""".replace(
    "concat_texts",
    " || ' ' || ".join(f"COALESCE(m.{column}, '')" for column in ("content", "tool_calls", "tool_name")),
)

texts = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join) | st.none()
sessions = st.sampled_from(SESSIONS)
picks = st.integers(0, 30)


class Index(RuleBasedStateMachine):
    """Insert, change, replace, delete, hand over, forget, catch up, rebuild, break."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        for session in SESSIONS:
            self.bench.session(session)

    def teardown(self) -> None:
        """The end of every story: caught up, whole and equal to a fresh index."""
        self.bench.catch_up(4)
        self.bench.check_integrity()
        assert self.bench.postings() == fresh_postings(self.bench)
        assert self.bench.value("SELECT count(*) FROM messages_fts_queue") == 0
        self.bench.close()

    def do(self, sql: str, *params: Any, ours: bool) -> None:
        """One statement, in a transaction of ours or of another tool."""
        if ours:
            self.bench.write(lambda tx: tx.run(sql, params))
        else:
            self.bench.foreign(sql, *params)

    def pick(self, number: int) -> int:
        """The id of some message, or one that does not exist."""
        newest: int = self.bench.value("SELECT max(id) FROM messages") or 0
        return number % (newest + 2) + 1

    @rule(session=sessions, text=texts, calls=texts, tool=st.booleans(), ours=st.booleans())
    def add(self, session: str, text: str | None, calls: str | None, tool: bool, ours: bool) -> None:  # noqa: FBT001
        """A new message."""
        role, name = ("tool", "look") if tool else ("user", None)
        self.do(ADD, session, role, text, name, calls, 1.0, ours=ours)

    @rule(number=picks, text=texts, column=st.sampled_from(["content", "tool_calls", "tool_name"]), ours=st.booleans())
    def change(self, number: int, text: str | None, column: str, ours: bool) -> None:  # noqa: FBT001
        """Another text."""
        sql = f"UPDATE messages SET {column} = ? WHERE id = ?"  # noqa: S608 - one of the three
        self.do(sql, text, self.pick(number), ours=ours)

    @rule(number=picks, session=sessions, ours=st.booleans())
    def move(self, number: int, session: str, ours: bool) -> None:  # noqa: FBT001
        """Into another session."""
        self.do("UPDATE messages SET session_id = ? WHERE id = ?", session, self.pick(number), ours=ours)

    @rule(number=picks, other=picks, ours=st.booleans())
    def renumber(self, number: int, other: int, ours: bool) -> None:  # noqa: FBT001
        """Another id, taking the place of what was there."""
        self.do("UPDATE OR IGNORE messages SET id = ? WHERE id = ?", self.pick(other), self.pick(number), ours=ours)

    @rule(number=picks, text=texts, ours=st.booleans())
    def replace(self, number: int, text: str | None, ours: bool) -> None:  # noqa: FBT001
        """A whole row in place of another."""
        sql = "INSERT OR REPLACE INTO messages (id, session_id, role, content, timestamp) VALUES (?, 'a', 'user', ?, 1)"
        self.do(sql, self.pick(number), text, ours=ours)

    @rule(number=picks, ours=st.booleans())
    def delete(self, number: int, ours: bool) -> None:  # noqa: FBT001
        """One message less."""
        self.do("DELETE FROM messages WHERE id = ?", self.pick(number), ours=ours)

    @rule(session=sessions, owner=st.sampled_from(OWNERS), room=st.sampled_from([None, "r1"]), ours=st.booleans())
    def hand_over(self, session: str, owner: str | None, room: str | None, ours: bool) -> None:  # noqa: FBT001
        """Another owner, another room."""
        self.do("UPDATE sessions SET owner = ?, room_id = ? WHERE id = ?", owner, room, session, ours=ours)

    @rule(session=sessions, first=st.booleans(), ours=st.booleans())
    def forget(self, session: str, first: bool, ours: bool) -> None:  # noqa: FBT001
        """A session and its messages, in either order; an empty one takes its place."""

        def gone(tx: Tx) -> None:
            statements = ["DELETE FROM sessions WHERE id = ?", "DELETE FROM messages WHERE session_id = ?"]
            for statement in statements if first else statements[::-1]:
                tx.run(statement, (session,))
            tx.run("INSERT INTO sessions (id, source, started_at, owner) VALUES (?, 'cli', 5, 'owner')", (session,))

        if ours:
            self.bench.write(gone)
        else:
            self.bench.apply(gone)

    @rule(text=texts)
    def fail(self, text: str | None) -> None:
        """A transaction that is rolled back, index and all."""

        def fails(tx: Tx) -> None:
            tx.run(ADD, ("a", "user", text, None, None, 1.0))
            tx.run("UPDATE messages SET content = 'docker' WHERE id % 2 = 0")
            index.update(tx)
            raise RuntimeError

        try:
            self.bench.apply(fails)
        except RuntimeError:
            return

    @rule(limit=st.integers(1, 5))
    def catch_up_a_little(self, limit: int) -> None:
        """Less than there is to do."""
        self.bench.apply(lambda tx: index.update(tx, limit))

    @rule(limit=st.integers(1, 5), steps=st.integers(1, 4))
    def rebuild_a_little(self, limit: int, steps: int) -> None:
        """What an idle store does."""
        for _ in range(steps):
            self.bench.apply(lambda tx: index.rebuild_step(tx, limit))

    @rule(how=st.sampled_from([index.start_rebuild, lambda tx: index.mark_broken(tx, "a test")]))
    def begin_again(self, how: Callable[[Tx], None]) -> None:
        """Somebody wants a new index, or the old one broke."""
        self.bench.apply(how)

    @invariant()
    def searches_say_what_the_tables_say(self) -> None:
        """For each word, for everybody and for a single owner, at any moment."""
        rows = Rx(self.bench.connection).all(STORED)
        for word in WORDS:
            expected = [row["id"] for row in rows if word in row["text"]]
            assert self.bench.found(word, limit=100) == expected
            theirs = [row["id"] for row in rows if word in row["text"] and row["owner"] == "owner"]
            assert self.bench.found(word, limit=100, visible_to=Visibility(frozenset({"owner"}))) == theirs


TestIndex = Index.TestCase
TestIndex.settings = settings(max_examples=60, stateful_step_count=30)
