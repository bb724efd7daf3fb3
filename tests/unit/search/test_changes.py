"""The index follows the messages, whoever changes them, and a search is right before it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_store import index
from session_store.models import Visibility
from session_store.tx import Rx
from tests.unit.search.bench import ADD, Bench, fresh_postings


def check(bench: Bench) -> None:
    """Caught up, the index is whole and holds what an index made now would hold."""
    bench.catch_up()
    bench.check_integrity()
    assert bench.postings() == fresh_postings(bench)
    assert bench.value("SELECT count(*) FROM messages_fts_queue") == 0


def test_what_a_transaction_stores_is_indexed_with_it(bench: Bench) -> None:
    """No moment lies between storing and finding."""
    bench.session()
    bench.add("word")
    assert bench.postings()
    assert bench.value("SELECT value FROM state_meta WHERE key = 'fts_watermark'") == "1"


def test_a_transaction_that_fails_leaves_no_trace(bench: Bench) -> None:
    """The watermark moves only with what it covers."""
    bench.session()

    def fails(_: object) -> None:
        bench.connection.execute(ADD, ("s", "user", "word", None, None, 1.0))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        bench.write(fails)
    found = bench.add("other word")
    assert bench.found("word") == [found]
    check(bench)


def test_rows_that_another_tool_puts_in_are_found_at_once_and_caught_up(bench: Bench) -> None:
    """Before the index has them they are read."""
    bench.session()
    bench.add("word of ours")
    foreign = [bench.foreign_add("部署 word"), bench.foreign_add("a #word")]
    assert bench.found("word") == [*foreign[::-1], 1]
    assert bench.found("#word") == [foreign[1]]
    assert bench.found("署") == [foreign[0]]
    assert not any(hit["approximate"] for hit in bench.search("word"))
    assert bench.found("wor") != []
    ours = bench.add("word again")
    assert bench.found("word") == [ours, *foreign[::-1], 1]
    check(bench)


def test_a_backlog_is_caught_up_in_steps(bench: Bench) -> None:
    """Each transaction takes a bounded share; our own rows are found meanwhile."""
    bench.session()
    bench.connection.executemany(ADD, [("s", "user", f"word{number}", None, None, 1.0) for number in range(700)])
    ours = bench.add("ours")
    assert bench.value("SELECT value FROM state_meta WHERE key = 'fts_watermark'") == "512"
    assert bench.found("ours") == [ours]
    assert bench.found("word699") == [700]
    assert index.pending(Rx(bench.connection))
    check(bench)
    assert not index.pending(Rx(bench.connection))


@pytest.mark.parametrize("how", ["UPDATE", "UPDATE OR REPLACE"])
def test_changed_text_is_found_and_the_old_one_is_not(bench: Bench, how: str) -> None:
    """By ours and by others, once and twice before the index hears of it."""
    bench.session()
    changed = bench.add("old 部署")
    for text in ("middle", "new 脚本"):
        bench.foreign(f"{how} messages SET content = ?, tool_name = 'look' WHERE id = ?", text, changed)
    for _ in range(2):
        assert bench.found("old OR middle OR 部署") == []
        assert bench.found("new") == bench.found("脚本") == bench.found("look") == [changed]
        check(bench)


@pytest.mark.parametrize(
    "assignment",
    [
        "content = NULL",
        "role = 'tool'",
        "tool_calls = '[]'",
        "session_id = 't'",
        "id = 90",
        "timestamp = 7",
        "content = content",
    ],
)
def test_any_change_of_a_message_keeps_the_index_true(bench: Bench, assignment: str) -> None:
    """Also of what decides where it is cut and who sees it."""
    bench.session()
    bench.session("t", owner="p0000000000aa")
    changed = bench.add("word " * 5000, calls='[{"function": {"name": "x"}}]', name="y")
    bench.add("word")
    bench.foreign(f"UPDATE messages SET {assignment} WHERE id = ?", changed)  # noqa: S608 - one of the above
    check(bench)


def test_a_change_that_changes_nothing_is_no_work(bench: Bench) -> None:
    """Marks on a message do not send it through the index again."""
    bench.session()
    changed = bench.add("word")
    bench.foreign("UPDATE messages SET content = content, edited_at = 5, rewound = 1 WHERE id = ?", changed)
    assert bench.value("SELECT count(*) FROM messages_fts_queue") == 0


def test_deleted_messages_leave_the_index(bench: Bench) -> None:
    """One by one, all at once, and with their session in any order."""
    bench.session()
    bench.session("t")
    bench.session("u")
    kept = bench.add("word kept", session="u")
    gone = [bench.add("word", session="s") for _ in range(3)] + [bench.add("word", session="t") for _ in range(3)]
    bench.foreign("DELETE FROM messages WHERE id = ?", gone[0])
    bench.foreign("DELETE FROM messages WHERE session_id = 's'")
    bench.foreign("DELETE FROM sessions WHERE id = 's'")
    bench.foreign("DELETE FROM sessions WHERE id = 't'")
    bench.foreign("DELETE FROM messages WHERE session_id = 't'")
    assert bench.found("word") == [kept]
    check(bench)
    bench.foreign("DELETE FROM messages")
    check(bench)
    assert bench.postings() == []


def test_rows_put_below_the_watermark_are_indexed(bench: Bench) -> None:
    """By an explicit id, also in place of another row."""
    bench.session()
    bench.foreign(
        "INSERT INTO messages (id, session_id, role, content, timestamp) VALUES (50, 's', 'user', 'fifty', 1)"
    )
    bench.add("later")
    insert = "INTO messages (id, session_id, role, content, timestamp) VALUES"
    bench.foreign(f"INSERT {insert} (7, 's', 'user', 'seven', 1)")
    bench.foreign(f"INSERT OR REPLACE {insert} (50, 's', 'user', 'another', 1)")
    bench.foreign(f"INSERT OR IGNORE {insert} (50, 's', 'user', 'ignored', 1)")
    bench.foreign(f"INSERT {insert} (50, 's', 'user', 'x', 1) ON CONFLICT (id) DO UPDATE SET content = 'upserted'")
    for _ in range(2):
        assert bench.found("seven") == [7]
        assert bench.found("upserted") == [50]
        assert bench.found("fifty OR another OR ignored") == []
        check(bench)


def test_an_id_is_never_given_twice(bench: Bench) -> None:
    """Not even one that came by an UPDATE: a row that reused it would lie below the watermark unseen."""
    bench.session()
    bench.foreign("UPDATE messages SET id = 90 WHERE id = ?", bench.add("moved"))
    bench.add("at ninety-one")
    bench.foreign("DELETE FROM messages")
    assert bench.foreign_add("new") == 92
    assert bench.found("new") == [92]
    check(bench)


def test_rows_with_odd_ids_are_left_to_scans(bench: Bench) -> None:
    """No row of ours has an id below 1; such a one neither breaks the index nor is lost."""
    bench.session()
    bench.add("other")
    for number in (0, -1, -5):
        bench.foreign(
            "INSERT INTO messages (id, session_id, role, content, timestamp) VALUES (?, 's', '', 'odd', 1)", number
        )
    assert bench.found("odd") == [0, -1, -5]
    bench.foreign("UPDATE messages SET content = 'odder' WHERE id < 1")
    bench.foreign("DELETE FROM messages WHERE id = -1")
    bench.catch_up()
    bench.check_integrity()
    assert bench.found("odder") == [0, -5]


def test_a_session_that_changes_hands_is_indexed_again(bench: Bench) -> None:
    """The scope column follows the owner and the room."""
    bench.session("s", owner="owner")
    found = bench.add("word")
    bench.foreign("UPDATE sessions SET owner = 'r0000000000aa', room_id = 'r0000000000aa' WHERE id = 's'")
    bench.foreign("UPDATE sessions SET title = 'x', owner = owner WHERE id = 's'")
    check(bench)
    assert {row["term"] for row in bench.postings() if row["col"] == "scope"} == {"r0000000000aa"}
    assert bench.found("word", visible_to=Visibility(frozenset({"r0000000000aa"}), "r0000000000aa")) == [found]
    bench.foreign("UPDATE sessions SET owner = NULL, room_id = NULL WHERE id = 's'")
    check(bench)
    assert {row["term"] for row in bench.postings() if row["col"] == "scope"} == {"nobody"}


def test_more_changes_than_fit_into_one_update_wait_in_order(bench: Bench) -> None:
    """Nothing is lost, and all of it is found meanwhile."""
    bench.session()
    for number in range(20):
        bench.add(f"word{number}")
    bench.foreign("UPDATE messages SET content = 'changed ' || content")
    bench.foreign("DELETE FROM messages WHERE id = 20")
    new = bench.foreign_add("new")
    for _ in range(30):
        assert bench.found("changed", limit=50) == list(range(19, 0, -1))
        assert bench.found("new") == [new]
        bench.apply(lambda tx: index.update(tx, 2))
    check(bench)


def test_a_second_connection_s_changes_are_seen(tmp_path: Path) -> None:
    """Triggers are in the file, not in a process."""
    bench = Bench(path=tmp_path / "state.db")
    bench.session()
    for number in range(4):
        bench.add(f"word {number}")
    other = bench.connect()
    other.execute("UPDATE messages SET content = 'else' WHERE id = 1")
    other.execute("DELETE FROM messages WHERE id = 2")
    other.execute(ADD, ("s", "user", "word else", None, None, 1.0))
    other.close()
    assert bench.found("word") == [5, 4, 3]
    assert bench.found("else") == [5, 1]
    check(bench)
    bench.close()


def test_what_is_no_text_is_indexed_as_text(bench: Bench) -> None:
    """A blob of another tool stops nothing."""
    bench.session()
    blob = b"\xff\xfe word"
    bench.foreign(ADD, "s", "user", blob, blob, blob, 1.0)
    assert bench.found("word") == [1]
    check(bench)
    assert bench.found("word") == [1]
