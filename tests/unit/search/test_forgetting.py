"""What is deleted leaves the index too: no byte of its words is left in the file after a merge."""

from __future__ import annotations

from pathlib import Path

from session_store import SessionDB, index
from session_store.tx import Rx
from tests.unit.search.bench import Bench

WORD = "zyxwvutsrq"


def test_deleted_words_leave_the_index(bench: Bench) -> None:
    """A delete asks for it, and when it is done, no segment has the word any more."""
    bench.session()
    for number in range(300):
        bench.add(f"some words {number}")
    secret = bench.add(f"the {WORD} word")
    for number in range(300):
        bench.add(f"more words {number}")
    assert not index.forgetting(Rx(bench.connection))
    bench.write(lambda tx: tx.run("DELETE FROM messages WHERE id = ?", (secret,)))
    assert held(bench)
    merge_all(bench)
    assert not held(bench)
    bench.check_integrity()
    assert len(bench.found("words", limit=1000)) == 600


def test_a_text_that_was_emptied_is_forgotten_and_an_edited_one_is_not_hurried(bench: Bench) -> None:
    """What still says something is merged as usual."""
    bench.session()
    one, other = bench.add("first"), bench.add("second")
    bench.write(lambda tx: tx.run("UPDATE messages SET content = 'else' WHERE id = ?", (one,)))
    assert not index.forgetting(Rx(bench.connection))
    bench.write(lambda tx: tx.run("UPDATE messages SET content = '' WHERE id = ?", (other,)))
    assert index.forgetting(Rx(bench.connection))


async def test_no_byte_of_a_deleted_session_stays_in_the_file(tmp_path: Path) -> None:
    """Neither in the messages nor in the index, when the store was closed: short commands do it, too."""
    path = tmp_path / "state.db"
    async with SessionDB(path) as db:
        for name in ("kept", "gone", "kept too"):
            await db.create_session(name, "cli")
            for number in range(40):
                await db.append_message(name, "user", f"{WORD if name == 'gone' else 'plain'}{number} and so on " * 20)
    assert WORD.encode() in path.read_bytes()
    async with SessionDB(path) as db:
        await db.delete_session("gone")
        assert await db.search_messages(f"{WORD}7") == []
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert WORD.encode() not in stored
    assert b"plain7" in stored


def held(bench: Bench) -> bool:
    """Whether a segment of the index has the word."""
    blocks = bench.connection.execute("SELECT HEX(block) AS block FROM messages_fts_data").fetchall()
    return any(WORD[:6].encode().hex().upper() in row["block"] for row in blocks)


def merge_all(bench: Bench) -> None:
    """What the store does in quiet moments."""
    for _ in range(100):
        if not index.forgetting(Rx(bench.connection)):
            return
        bench.apply(lambda tx: index.forget(tx, 50))
    raise AssertionError("It is never done.")
