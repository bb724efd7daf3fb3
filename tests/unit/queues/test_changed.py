"""Edits and deletes: before the claim they replace, afterwards they are recorded and told; never a second turn."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_store.changed import Changed, deleted, edited
from session_store.claim import claim
from session_store.inbox import accept
from session_store.messages import decode_message
from session_store.models import MessageNote, NewInbox, NewMessage, NewOutbox
from session_store.notes import changes_for, notes_of
from session_store.rows import ChangeRow, MessageRow
from session_store.tx import Rx
from tests.unit.queues.bench import HOME, Bench, fence, incoming, never, request

NOTICE = [NewOutbox(HOME, "notice", "noted")]


def change(key: str, kind: Any = "edit") -> NewInbox:
    """The event itself."""
    return replace(incoming(key, ""), kind=kind, payload={})


async def claimed(bench: Bench, key: str = "m:1", text: str = "old", turn: str = "t1", **more: Any) -> int:
    """A message that is being worked; its inbox row."""
    row = await bench.arrives(key, text)
    claim = await bench.turns.claim(request([row], turn, content=text, texts=[text], **more), never)
    assert claim.status == "claimed"
    return row


async def answered(bench: Bench, key: str = "m:1", text: str = "old", turn: str = "t1") -> None:
    """A message that was answered."""
    row = await bench.arrives(key, text)
    claim = await bench.turns.claim(request([row], turn, content=text, texts=[text]), never)
    await bench.turns.finish(fence(claim), NewMessage("assistant", "answer", op_id=f"{turn}.final"))


def content(bench: Bench) -> list[Any]:
    """What people have said, as stored."""
    return [row["content"] for row in bench.rows("SELECT content FROM messages WHERE role = 'user' ORDER BY id")]


async def test_before_the_claim_an_edit_replaces_the_text(bench: Bench) -> None:
    """Whoever had read the row before finds that it has changed, and reads it again."""
    row = await bench.arrives("m:1", "old")
    before = request([row], content="old", texts=["old"])
    assert (await Changed(bench).edited(change("e:1"), "m:1", "new", NOTICE)).status == "waiting"

    assert (await bench.turns.claim(before, never)).status == "changed"
    assert bench.value("SELECT COUNT(*) FROM messages") == 0
    now = await bench.inbox.get(row)
    assert now is not None
    assert now["payload"]["text"] == "new"
    after = request([row], content="new", texts=["new"])
    assert (await bench.turns.claim(after, never)).status == "claimed"
    assert content(bench) == ["new"]
    assert bench.value("SELECT COUNT(*) FROM outbox") == 0


async def test_after_the_claim_it_is_recorded_with_the_former_text_and_a_word(bench: Bench) -> None:
    """The message reads anew, the old text is kept, the person hears of it; no row waits for a second turn."""
    await answered(bench)
    done = await Changed(bench).edited(change("e:1"), "m:1", "new", NOTICE)

    assert (done.status, done.latest) == ("recorded", True)
    assert content(bench) == ["new"]
    assert bench.value("SELECT edited_at FROM messages WHERE role = 'user'") is not None
    assert bench.rows("SELECT kind, content FROM message_versions") == [{"kind": "edit", "content": "old"}]
    assert bench.value("SELECT body FROM outbox WHERE kind = 'notice'") == "noted"
    assert (await bench.inbox.counts())["new"] == 0


async def test_an_edit_while_the_turn_runs_is_the_input_should_it_run_again(bench: Bench) -> None:
    """Message and row say the same."""
    row = await claimed(bench)
    await Changed(bench).edited(change("e:1"), "m:1", "new", NOTICE)
    now = await bench.inbox.get(row)
    assert now is not None
    assert (now["state"], now["payload"]["text"]) == ("taken", "new")
    assert content(bench) == ["new"]


async def test_an_edit_of_an_earlier_message_gives_no_notice(bench: Bench) -> None:
    """Only the latest one may be sent again with sense."""
    await answered(bench)
    await answered(bench, "m:2", "later", "t2")
    done = await Changed(bench).edited(change("e:1"), "m:1", "new", NOTICE)
    assert (done.status, done.latest) == ("recorded", False)
    assert bench.value("SELECT COUNT(*) FROM outbox WHERE body = 'noted'") == 0


async def test_repeated_unknown_and_empty_edits_change_nothing(bench: Bench) -> None:
    """The same event again, one about nothing we know, and one that changes no word (a link's preview came)."""
    await answered(bench)
    store = Changed(bench)
    await store.edited(change("e:1"), "m:1", "new", NOTICE)
    before = bench.dump()
    assert (await store.edited(change("e:1"), "m:1", "new", NOTICE)).status == "repeated"
    assert (await store.edited(change("e:2"), "m:99", "new", NOTICE)).status == "unknown"
    assert (await store.edited(change("e:3"), "m:1", "new", NOTICE)).status == "same"
    assert bench.dump() == before


async def test_of_an_album_only_the_edited_part_changes(bench: Bench) -> None:
    """The other captions, and what stands behind the text, stay."""
    rows = [await bench.arrives(f"m:{n}", f"part {n}") for n in (1, 2)]
    texts = ["part 1", "part 2"]
    await bench.turns.claim(request(rows, content="part 1\n\npart 2\n\n[file: a.txt]", texts=texts), never)
    await Changed(bench).edited(change("e:2"), "m:2", "new", ())
    assert content(bench) == ["part 1\n\nnew\n\n[file: a.txt]"]
    await Changed(bench).edited(change("e:1"), "m:1", "also new", ())
    assert content(bench) == ["also new\n\nnew\n\n[file: a.txt]"]


async def test_parts_beside_the_text_stay(bench: Bench) -> None:
    """An edit of a caption leaves the picture where it is."""
    picture = {"type": "image", "name": "a.png"}
    row = await bench.arrives("m:1", "old")
    await bench.turns.claim(request([row], content=[{"type": "text", "text": "old"}, picture], texts=["old"]), never)
    await Changed(bench).edited(change("e:1"), "m:1", "new", ())
    (stored,) = bench.look(messages)
    assert stored["content"] == [{"type": "text", "text": "new"}, picture]


async def test_a_delete_is_recorded_and_the_text_stays(bench: Bench) -> None:
    """A message that waits is answered as it came."""
    row = await bench.arrives("m:1", "old")
    assert (await Changed(bench).deleted(change("d:1", "delete"), "m:1", honour=False)).status == "waiting"
    assert (await bench.turns.claim(request([row], content="old", texts=["old"]), never)).status == "claimed"
    assert (await Changed(bench).deleted(change("d:2", "delete"), "m:1", honour=False)).status == "recorded"
    assert content(bench) == ["old"]
    assert bench.rows("SELECT kind, content FROM message_versions") == [{"kind": "delete", "content": None}]


async def test_an_honoured_delete_forgets_text_versions_and_quotes(bench: Bench) -> None:
    """Nothing of what was said is left in any table; a waiting message is withdrawn."""
    row = await bench.arrives("m:1", "SECRET one")
    quoted = MessageNote(quoted="SECRET quoted", quoted_name="Bob")
    await bench.turns.claim(request([row], content="SECRET one", texts=["SECRET one"], note=quoted), never)
    await Changed(bench).edited(change("e:1"), "m:1", "SECRET two", ())
    waiting = await bench.arrives("m:2", "SECRET three")
    store = Changed(bench)
    assert (await store.deleted(change("d:1", "delete"), "m:1", honour=True)).status == "recorded"
    assert (await store.deleted(change("d:2", "delete"), "m:2", honour=True)).status == "waiting"
    assert (await store.deleted(change("d:1", "delete"), "m:1", honour=True)).status == "repeated"

    left = {name: rows for name, rows in bench.dump().items() if name != "messages_fts_queue"}
    assert "SECRET" not in str(left)
    assert bench.value("SELECT state FROM inbox WHERE id = ?", waiting) == "done"


@pytest.mark.parametrize("op", [edited, deleted])
async def test_whatever_fails_undoes_all_of_it(bench: Bench, op: Any) -> None:
    """A process that dies inside the transaction has changed nothing; the repeated delivery does it all."""
    await answered(bench)
    before = bench.dump()

    def torn(tx: Any) -> None:
        arguments: Any = {"notice": NOTICE, "text": "new"} if op is edited else {"honour": True}
        op(tx, change("e:1"), "m:1", **arguments)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.apply(torn)
    assert bench.dump() == before


def messages(rx: Rx) -> list[MessageRow]:
    """All messages, decoded."""
    return [decode_message(row) for row in rx.all("SELECT * FROM messages ORDER BY id")]


async def test_a_change_is_told_with_the_first_question_after_it(bench: Bench) -> None:
    """Two changes before one question are one; a later one is told later; each always at the same place."""
    store = Changed(bench)
    await answered(bench, text="first")
    await store.edited(change("e:1"), "m:1", "second", ())
    await store.edited(change("e:2"), "m:1", "third", ())
    await answered(bench, "m:2", "question", "t2")
    await store.edited(change("e:3"), "m:1", "fourth", ())
    assert told(bench) == {"question": [("first", "third")]}
    await answered(bench, "m:3", "another", "t3")
    assert told(bench) == {"question": [("first", "third")], "another": [("third", "fourth")]}


def told(bench: Bench) -> dict[str, list[tuple[str | None, str | None]]]:
    """Which question tells which changes."""

    def look(rx: Rx) -> dict[str, list[tuple[str | None, str | None]]]:
        rows = messages(rx)
        texts = {row["id"]: row["content"] for row in rows}
        found: dict[int, list[ChangeRow]] = changes_for(rx, rows)
        return {texts[teller]: [(one["before"], one["now"]) for one in changes] for teller, changes in found.items()}

    return bench.look(look)


async def test_notes_lie_beside_the_message(bench: Bench) -> None:
    """They are found by message, and go with it."""
    row = await bench.arrives("m:1", "hello")
    note = MessageNote(sender="Ann", quoted="words", quoted_name="Bob")
    await bench.turns.claim(request([row], content="hello", texts=["hello"], note=note), never)
    ((message_id, stored),) = bench.look(lambda rx: notes_of(rx, messages(rx))).items()
    assert (stored["sender"], stored["quoted"], stored["quoted_name"]) == ("Ann", "words", "Bob")
    assert content(bench) == ["hello"]
    bench.apply(lambda tx: tx.run("DELETE FROM messages WHERE id = ?", (message_id,)))
    assert bench.value("SELECT COUNT(*) FROM message_notes") == 0


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=5)), max_size=12), st.integers(0, 12))
def test_whatever_is_edited_the_last_words_are_stored_and_every_former_one_is_kept(
    edits: list[tuple[int, str]], claimed_after: int
) -> None:
    """Any repetition of any edits, before or after the claim: one row, one message, a version for each real change."""
    bench = Bench()
    try:
        bench.process("A")
        row = bench.apply(accept_one)
        present, versions, made = "start", [], False
        for number, (key, text) in enumerate([*edits, (9, "end")]):
            if number == min(claimed_after, len(edits)):
                wanted = request([row], content=present, texts=[present])
                assert bench.apply(partial(claim_one, wanted=wanted)).status == "claimed"
                made = True
            known = bench.value("SELECT 1 FROM inbox WHERE dedupe_key = ?", f"e:{key}:{text}".replace("\x00", ""))
            bench.apply(partial(edited, event=change(f"e:{key}:{text}"), subject="m:1", text=text, notice=()))
            if known is None and text != present:
                versions += [present] if made else []
                present = text
        assert content(bench) == [bench.value("SELECT ?", present)]
        kept = [one["content"] for one in bench.rows("SELECT content FROM message_versions ORDER BY id")]
        assert kept == [bench.value("SELECT ?", text) for text in versions]
        assert bench.value("SELECT COUNT(*) FROM inbox WHERE kind = 'message'") == 1
    finally:
        bench.close()


def accept_one(tx: Any) -> int:
    """The message comes in."""
    return accept(tx, incoming("m:1", "start")).inbox_id


def claim_one(tx: Any, wanted: Any) -> Any:
    """It is claimed."""
    return claim(tx, wanted, never)
