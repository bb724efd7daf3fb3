"""Files that came with messages: kept whole and once, linked to messages, gone when nobody names them."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from session_store import (
    ClaimRequest,
    FileTooLarge,
    NewAttachment,
    NewInbox,
    PlaceRef,
    SessionDB,
    StoreFull,
    StoreReadOnly,
)
from session_store.attachments import GRACE_SECONDS
from session_store.blobs import Blobs

WORDS = b"what is in the file"
PLACE = PlaceRef("slack", "main", "dm", "T1/D1")
OLD = 2 * GRACE_SECONDS

WRITER = """
import asyncio, sys
from session_store import SessionDB
async def main():
    async with SessionDB(sys.argv[1]) as db:
        async with db.attachments.incoming(10_000_000) as incoming:
            await incoming.write(b"x" * 3_000_000)
            print("half", flush=True)
            await asyncio.sleep(60)
asyncio.run(main())
"""


def there(home: Path) -> list[str]:
    """Names of all files, half ones included."""
    return sorted(path.name for path in (home / "files").rglob("*") if path.is_file())


def aged(home: Path) -> None:
    """As if everything had been stored long ago."""
    before = time.time() - OLD
    for path in (home / "files").rglob("*"):
        os.utime(path, (before, before))


async def stored(db: SessionDB, data: bytes = WORDS) -> str:
    """Store a file; returns its hash."""
    async with db.attachments.incoming(1_000_000) as incoming:
        await incoming.write(data)
        return await incoming.keep()


async def message(db: SessionDB, session_id: str, *hashes: str) -> int:
    """A message with files, in a session that is made if need be."""
    await db.create_session(session_id, "telegram", owner="owner")
    files = [NewAttachment(f"{number}.bin", "file", one, 19, "text/plain") for number, one in enumerate(hashes)]
    return await db.append_message(session_id, "user", "look", attachments=files)


# --- storing ----------------------------------------------------------------------------------------------------------


async def test_a_file_is_kept_by_its_content_for_its_owner_alone(db: SessionDB, home: Path) -> None:
    """In pieces or whole, once or again: one file, 0600 in folders of 0700, never executable."""
    async with db.attachments.incoming(100) as incoming:
        await incoming.write(WORDS[:5])
        await incoming.write(WORDS[5:])
        digest = await incoming.keep()
    again = await stored(db)

    assert digest == again == hashlib.sha256(WORDS).hexdigest()
    path = home / "files" / digest[:2] / digest
    assert await db.attachments.path(digest) == path
    assert await db.attachments.read(digest, 4) == b"what"
    assert there(home) == [digest]
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent, path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


async def test_many_store_the_same_at_once(db: SessionDB, home: Path) -> None:
    """Whoever is last finds it there."""
    hashes = await asyncio.gather(*(stored(db) for _ in range(8)))

    assert set(hashes) == set(there(home))


async def test_an_empty_file_is_a_file(db: SessionDB, home: Path) -> None:
    """It has a hash like any other."""
    async with db.attachments.incoming(10) as incoming:
        digest = await incoming.keep()

    assert (there(home), await db.attachments.read(digest, 10)) == ([digest], b"")


async def test_more_than_allowed_leaves_nothing(db: SessionDB, home: Path) -> None:
    """Told as soon as it is known, however much was written already."""
    async with db.attachments.incoming(3_000_000) as incoming:
        for _ in range(3):
            await incoming.write(bytes(1_000_000))
        with pytest.raises(FileTooLarge, match="3,000,000"):
            await incoming.write(b"x")

    assert there(home) == []


async def test_what_is_not_kept_is_gone(db: SessionDB, home: Path) -> None:
    """Also when whoever wrote it was cancelled in the middle."""
    begun = asyncio.Event()

    async def write() -> None:
        async with db.attachments.incoming(10_000_000) as incoming:
            await incoming.write(bytes(3_000_000))
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(write())
    await begun.wait()
    assert len(there(home)) == 1
    task.cancel()
    await asyncio.wait({task})

    assert there(home) == []


async def test_a_damaged_file_is_replaced_when_it_comes_again(db: SessionDB) -> None:
    """One that is not as long as it should be is not taken for it."""
    path = await db.attachments.path(await stored(db))
    assert path is not None
    path.write_bytes(b"cut")

    await stored(db)

    assert path.read_bytes() == WORDS


@pytest.mark.parametrize(("number", "error"), [(errno.ENOSPC, StoreFull), (errno.EACCES, StoreReadOnly)])
async def test_a_file_that_cannot_be_written_is_told(
    db: SessionDB, home: Path, number: int, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a sentence, and nothing half is left."""

    def fail(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("session_store.blobs.os.fsync", fail)
    with pytest.raises(error):
        await stored(db)

    assert there(home) == []


async def test_killed_in_the_middle_only_a_draft_is_left_and_swept_later(db: SessionDB, home: Path) -> None:
    """A real process: nothing stands under a hash that is not whole."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(home / "state.db"), stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"half\n"
    process.send_signal(signal.SIGKILL)
    await process.communicate()

    assert [name.startswith(".draft-") for name in there(home)] == [True]
    await db.attachments.sweep()
    assert len(there(home)) == 1
    aged(home)
    await db.attachments.sweep()
    assert there(home) == []


# --- links ------------------------------------------------------------------------------------------------------------


async def test_files_are_linked_in_the_transaction_of_their_message(db: SessionDB) -> None:
    """In order; one that was not fetched has a reason instead of a hash; a repeated message changes nothing."""
    digest = await stored(db)
    await db.create_session("s", "telegram")
    files = [
        NewAttachment("a.txt", "file", digest, 19, "text/plain"),
        NewAttachment("b.mp4", "video", size=10**9, problem="it is larger than 20 MB"),
    ]
    number = await db.append_message("s", "user", "look", op_id="o", attachments=files)
    again = await db.append_message("s", "user", "look", op_id="o", attachments=files)
    plain = await db.append_message("s", "user", "no files")

    assert number == again
    found = await db.attachments.of_messages([number, plain])
    assert list(found) == [number]
    assert [(row["position"], row["name"], row["hash"], row["problem"]) for row in found[number]] == [
        (0, "a.txt", digest, None),
        (1, "b.mp4", None, "it is larger than 20 MB"),
    ]
    one = await db.attachments.one(number, 1)
    assert one is not None
    assert (one[0]["name"], one[1]) == ("b.mp4", "s")
    assert await db.attachments.one(number, 2) is None
    assert await db.attachments.of_messages([]) == {}


async def test_an_export_names_the_files(db: SessionDB) -> None:
    """Where there are any; it can be written as JSON."""
    digest = await stored(db)
    await message(db, "s", digest)
    await db.append_message("s", "assistant", "nice")
    exported: Any = json.loads(json.dumps(await db.export_session("s")))

    first, second = exported["messages"]
    assert [(file["name"], file["hash"]) for file in first["attachments"]] == [("0.bin", digest)]
    assert "attachments" not in second


# --- sweeping ---------------------------------------------------------------------------------------------------------


async def test_a_file_that_a_message_names_stays(db: SessionDB, home: Path) -> None:
    """However old it is."""
    digest = await stored(db)
    await message(db, "s", digest)
    aged(home)

    assert await db.attachments.sweep() == 0
    assert there(home) == [digest]


async def test_a_file_is_spared_until_its_message_may_have_come(db: SessionDB, home: Path) -> None:
    """A fetched file is linked a moment later; one that is touched counts as new."""
    digest = await stored(db)
    assert await db.attachments.sweep() == 0
    aged(home)
    assert await db.attachments.touch([digest])
    assert await db.attachments.sweep() == 0
    assert there(home) == [digest]
    aged(home)
    assert await db.attachments.sweep() == 1
    assert there(home) == []
    assert not await db.attachments.touch([digest])


@pytest.mark.parametrize("how", ["delete", "clear", "prune", "another tool"])
async def test_with_the_last_message_that_names_it_a_file_goes(
    db: SessionDB, home: Path, elsewhere: Any, how: str
) -> None:
    """Two conversations share it: it goes with the second one."""
    digest = await stored(db)

    async def remove(session_id: str) -> None:
        if how == "delete":
            await db.delete_session(session_id)
        elif how == "clear":
            await db.clear_messages(session_id)
        elif how == "prune":
            await db.end_session(session_id, "done")
            await db.prune_sessions(0)
        else:
            elsewhere("DELETE FROM messages WHERE session_id = ?", session_id)

    for session_id in ("one", "two"):
        await message(db, session_id, digest)
    aged(home)
    await remove("one")
    assert await db.attachments.sweep() == 0
    await remove("two")
    assert elsewhere("SELECT * FROM message_attachments") == []
    assert await db.attachments.sweep() == 1
    assert there(home) == []
    assert elsewhere("SELECT * FROM attachments") == []


def killed(*_: object) -> int:
    """Stand for the end of a process."""
    raise RuntimeError


async def test_a_sweep_that_was_cut_short_is_finished_by_the_next(
    db: SessionDB, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row is forgotten first: nobody is ever shown a file that is on its way out."""
    digest = await stored(db)
    await message(db, "s", digest)
    aged(home)
    await db.delete_session("s")
    with monkeypatch.context() as patch:
        patch.setattr(Blobs, "remove", killed)
        with pytest.raises(RuntimeError):
            await db.attachments.sweep()
    assert there(home) == [digest]

    assert await db.attachments.sweep() == 1
    assert there(home) == []


async def test_a_file_that_comes_again_after_a_sweep_is_whole_again(db: SessionDB, home: Path) -> None:
    """Its row and its bytes are made anew."""
    digest = await stored(db)
    await message(db, "s", digest)
    await db.delete_session("s")
    aged(home)
    await db.attachments.sweep()

    assert await stored(db) == digest
    await message(db, "t", digest)
    aged(home)
    assert await db.attachments.sweep() == 0
    assert there(home) == [digest]


# --- edits and deletes ------------------------------------------------------------------------------------------------


def event(kind: Any, key: str) -> NewInbox:
    """An event about a message."""
    return NewInbox(PLACE, key, kind, "lane", 1.0, {"text": "x", "message_id": "1"}, {"user_id": "u"}, session_key="k")


async def claimed(db: SessionDB, text: str, content: str, digest: str) -> int:
    """A message with one file, claimed; returns its row."""
    holder = await db.processes.register("gateway", ["slack/main"])
    row = NewInbox(
        PLACE, "m:1", "message", "k", 1.0, {"text": text, "message_id": "1"}, {"user_id": "u"}, session_key="k"
    )
    accepted = await db.inbox.accept(row)
    request = ClaimRequest(
        inbox_ids=[accepted.inbox_id],
        turn_id="t1",
        holder=holder,
        lane="k",
        place=PLACE,
        source="slack",
        owner="owner",
        new_session_id="s",
        content=content,
        session_key="k",
        texts=[text],
        attachments=[NewAttachment("a.txt", "file", digest, 19, "text/plain")],
    )
    claim = await db.turns.claim(request, lambda _session, _at: None)
    assert claim.message_id is not None
    return claim.message_id


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("look", "look here", "look here\n\n[file: a.txt, 19 bytes]"),
        ("", "a caption", "a caption\n\n[file: a.txt, 19 bytes]"),
        ("look", "", "[file: a.txt, 19 bytes]"),
    ],
)
async def test_an_edit_changes_the_words_and_leaves_the_files(
    db: SessionDB, before: str, after: str, expected: str
) -> None:
    """With or without words before and afterwards."""
    content = f"{before}\n\n[file: a.txt, 19 bytes]" if before else "[file: a.txt, 19 bytes]"
    number = await claimed(db, before, content, await stored(db))

    assert (await db.changed.edited(event("edit", "e:1"), "m:1", after)).status == "recorded"

    (row,) = await db.get_messages("s")
    assert row["content"] == expected
    assert len((await db.attachments.of_messages([number]))[number]) == 1


async def test_an_honoured_delete_takes_the_files_along(db: SessionDB, home: Path, elsewhere: Any) -> None:
    """Names and words of the files too; the bytes go with the next sweep."""
    digest = await stored(db)
    content = "look\n\n[file: a.txt, 19 bytes]\nwhat is in the file\n[end of a.txt]"
    number = await claimed(db, "look", content, digest)
    aged(home)

    assert (await db.changed.deleted(event("delete", "d:1"), "m:1", honour=True)).status == "recorded"

    (row,) = await db.get_messages("s")
    assert row["content"] == ""
    assert await db.attachments.of_messages([number]) == {}
    assert await db.search_messages("file") == []
    assert await db.attachments.sweep() == 1
    assert elsewhere("SELECT content FROM message_versions") == [{"content": None}]


async def test_a_delete_that_is_only_recorded_leaves_everything(db: SessionDB) -> None:
    """As it leaves the words."""
    content = "look\n\n[file: a.txt, 19 bytes]"
    number = await claimed(db, "look", content, await stored(db))

    await db.changed.deleted(event("delete", "d:1"), "m:1", honour=False)

    assert [row["content"] for row in await db.get_messages("s")] == [content]
    assert len((await db.attachments.of_messages([number]))[number]) == 1
