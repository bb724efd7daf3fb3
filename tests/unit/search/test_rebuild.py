"""A broken, strange or outdated index is replaced while everything goes on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from session_store import index
from session_store.tx import Rx
from tests.unit.search.bench import Bench, fresh_postings

OLD_TRIGGERS = """
CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN
    INSERT INTO messages_fts (rowid, content) VALUES (new.id, new.content);
END;
CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, content) VALUES ('delete', old.id, old.content);
END;
CREATE TRIGGER messages_fts_trigram_insert AFTER INSERT ON messages BEGIN SELECT 1; END;
CREATE TRIGGER somebody_elses AFTER INSERT ON messages BEGIN SELECT 1; END;
"""
TRIGGERS = """
SELECT group_concat(name) FROM sqlite_master
WHERE type = 'trigger' AND name NOT LIKE 'search_%' AND name NOT LIKE 'message_attachments_%'
"""


def usable(bench: Bench) -> bool:
    """Whether the index may be used."""
    return index.index_state(Rx(bench.connection)).usable


def check(bench: Bench) -> None:
    """The index is in use, whole, and holds what it should."""
    assert usable(bench)
    bench.check_integrity()
    assert bench.postings() == fresh_postings(bench)


def filled(bench: Bench, count: int = 40) -> None:
    """A session with numbered messages."""
    bench.session()
    for number in range(count):
        bench.add(f"word{number} 部署 common")


def test_a_broken_index_is_searched_by_scanning_until_it_is_rebuilt(bench: Bench) -> None:
    """Hits are approximate meanwhile, none is missing, and writing goes on."""
    filled(bench)
    bench.apply(lambda tx: index.mark_broken(tx, "a test"))
    assert [hit["approximate"] for hit in bench.search("word7")] == [True]
    new = bench.add("new 部署")
    bench.foreign("UPDATE messages SET content = 'changed' WHERE id = 1")
    bench.foreign("DELETE FROM messages WHERE id = 2")
    assert bench.found("部署", limit=3)[0] == new
    assert bench.found("changed") == [1]
    assert bench.value("SELECT value FROM state_meta WHERE key = 'fts_health'") == "broken: a test"
    bench.catch_up(7)
    assert [hit["approximate"] for hit in bench.search("word7")] == [False]
    check(bench)


def test_an_index_in_use_is_rebuilt_beside_all_kinds_of_writes(bench: Bench) -> None:
    """It answers from the old one until the new one is whole, and every step sees changes before and behind it."""
    filled(bench)
    bench.apply(index.start_rebuild)
    for number in range(12):
        bench.apply(lambda tx: index.rebuild_step(tx, 5))
        assert usable(bench)
        bench.add(f"added{number} 部署")
        bench.foreign("UPDATE messages SET content = content || ' changed' WHERE id = ?", 3 * number + 1)
        bench.foreign("DELETE FROM messages WHERE id = ?", 3 * number + 2)
        bench.foreign_add(f"foreign{number}")
        if number % 4 == 0:
            bench.foreign("UPDATE sessions SET owner = ? WHERE id = 's'", f"p{number}")
        assert bench.found(f"added{number}") == [bench.value("SELECT max(id) FROM messages") - 1]
        assert len(bench.found("changed", limit=100)) == number + 1
    bench.catch_up(5)
    assert bench.value("SELECT count(*) FROM state_meta WHERE key = 'fts_rebuild'") == 0
    check(bench)


def test_a_rebuild_goes_on_after_a_restart(tmp_path: Path) -> None:
    """Each step is a transaction; the next process takes up where the last one was."""
    bench = Bench(path=tmp_path / "state.db")
    filled(bench)
    bench.apply(lambda tx: index.mark_broken(tx, "a test"))
    bench.apply(lambda tx: index.rebuild_step(tx, 10))
    bench.apply(lambda tx: index.rebuild_step(tx, 10))
    bench.reopen()
    assert bench.value("SELECT value FROM state_meta WHERE key = 'fts_rebuild'") == "10"
    bench.catch_up(10)
    check(bench)
    bench.close()


def test_a_rebuild_that_breaks_begins_again(bench: Bench) -> None:
    """Marking an index broken also gives up the one that is being built."""
    filled(bench)
    bench.apply(index.start_rebuild)
    bench.apply(lambda tx: index.rebuild_step(tx, 10))
    bench.apply(lambda tx: index.mark_broken(tx, "a test"))
    bench.foreign("DELETE FROM messages WHERE id < 10")
    bench.catch_up(10)
    check(bench)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM messages_fts_data",
        "UPDATE messages_fts_data SET block = x'ffffffffffffffffff' WHERE id = 10",
        "UPDATE messages_fts_data SET block = x'deadbeef' WHERE id > 10",
        "DROP TABLE messages_fts_data",
        "DROP TABLE messages_fts_config",
        "DROP TABLE messages_fts_docsize",
        "UPDATE messages_fts_config SET v = 99 WHERE k = 'version'",
        "DROP TABLE messages_fts",
        "DROP TABLE messages_fts; CREATE TABLE messages_fts (content)",
        "DROP TABLE messages_fts; CREATE VIRTUAL TABLE messages_fts USING fts5(content)",
        "DELETE FROM state_meta WHERE key LIKE 'fts_%'",
        "UPDATE state_meta SET value = 'nonsense' WHERE key LIKE 'fts_%'",
    ],
)
def test_any_damage_is_mended_and_hides_nothing(tmp_path: Path, bench: Bench, damage: str) -> None:
    """The store repeats the transaction without the index, scans meanwhile, and builds a new one."""
    harmed = Bench(bench.library, tmp_path / "state.db")
    filled(harmed)
    harmed.connection.executescript(damage)
    harmed.reopen()
    try:
        harmed.add("later 部署")
    except bench.library.Error as error:
        reason = str(error)
        harmed.apply(lambda tx: index.mark_broken(tx, reason))
        harmed.add("later 部署")
    if usable(harmed):
        # Some damage shows only when that part is read; the search reports it then.
        harmed.apply(lambda tx: index.mark_broken(tx, "found by a search"))
    assert len(harmed.found("部署", limit=100)) == 41
    harmed.catch_up()
    assert len(harmed.found("部署", limit=100)) == 41
    check(harmed)
    harmed.close()


def test_triggers_of_the_older_schema_are_dropped_and_what_they_did_is_mended(bench: Bench) -> None:
    """They write unsegmented text; triggers of others are left alone."""
    filled(bench)
    bench.connection.executescript(OLD_TRIGGERS)
    foreign = bench.foreign_add("部署脚本 by another tool")
    ours = bench.add("部署脚本 by us")
    assert bench.value(TRIGGERS) == "somebody_elses"
    assert bench.found("脚本") == [ours, foreign]
    bench.catch_up()
    assert bench.found("脚本") == [ours, foreign]
    check(bench)


def test_rows_that_others_wrote_into_the_index_are_noticed(bench: Bench) -> None:
    """Also when the triggers that did it are gone again."""
    filled(bench)
    bench.connection.executescript(OLD_TRIGGERS)
    bench.foreign_add("部署脚本 by another tool")
    for name in ("messages_fts_insert", "messages_fts_delete", "messages_fts_trigram_insert"):
        bench.foreign(f"DROP TRIGGER {name}")
    bench.add("ours")
    assert not usable(bench)
    bench.catch_up()
    check(bench)


def test_an_index_of_an_older_segmentation_is_built_anew(bench: Bench) -> None:
    """Its tokens cannot be made again, so it cannot forget."""
    filled(bench)
    bench.foreign("UPDATE state_meta SET value = '0' WHERE key = 'fts_segmentation'")
    bench.foreign("UPDATE messages SET content = 'changed' WHERE id = 1")
    bench.add("later")
    assert [hit["approximate"] for hit in bench.search("later")] == [True]
    bench.catch_up()
    check(bench)


def test_an_index_of_a_newer_segmentation_is_left_alone(bench: Bench) -> None:
    """Its own program looks after it; here everything is scanned."""
    filled(bench)
    before = bench.postings()
    bench.foreign("UPDATE state_meta SET value = '2' WHERE key = 'fts_segmentation'")
    bench.add("later 部署")
    bench.foreign("UPDATE messages SET content = 'changed' WHERE id = 1")
    bench.catch_up()
    assert bench.postings() == before
    assert bench.found("changed") == [1]
    assert len(bench.found("部署", limit=100)) == 40
    assert not index.pending(Rx(bench.connection))


def test_the_index_is_tuned_for_writing(bench: Bench) -> None:
    """Also one that was rebuilt."""
    tuning = "SELECT group_concat(k || '=' || v) FROM messages_fts_config WHERE k <> 'version' ORDER BY k"
    assert bench.value(tuning) == "automerge=8,crisismerge=32"
    bench.session()
    bench.apply(index.start_rebuild)
    bench.catch_up()
    assert bench.value(tuning) == "automerge=8,crisismerge=32"


def test_a_scan_is_bounded_in_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the time is over, what was found so far is the answer."""
    filled(bench, 300)
    bench.apply(lambda tx: index.mark_broken(tx, "a test"))
    ticks = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks) / 100)
    hits = bench.search("common", limit=1000)
    assert [hit["id"] for hit in hits] == list(range(300, 300 - len(hits), -1))
    assert 100 < len(hits) < 300
    assert hits.stopped
