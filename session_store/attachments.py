"""Files that came with messages: kept once by content, linked to the messages that they came with.

Contract: a file is first stored whole (`incoming`), then linked in the transaction that stores its message; a crash
between the two leaves a file that nobody names, and storing it again finds it. Links go with their message, by
whatever statement it is deleted. A file goes when no message names it any more and it was neither stored nor touched
for `GRACE_SECONDS`: by `sweep`, which may be killed at any point and run by many processes. Who links a file that was
stored a while ago touches it first, and stores it again if it is gone.
Failure: FileTooLarge for more bytes than allowed, StoreFull and StoreReadOnly from the file system.
Limits: what is in a file is never looked at here; media types are what the caller judged.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from session_store.blobs import Blobs, Draft
from session_store.driver import settle
from session_store.errors import FileTooLarge
from session_store.models import NewAttachment
from session_store.rows import AttachmentRow
from session_store.tx import Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["GRACE_SECONDS", "Attachments", "Incoming", "attach", "attachments_of", "detach"]

#: How long a file that no message names is kept: much longer than it takes from storing it to linking it.
GRACE_SECONDS = 3600.0

_CHUNK = 500
#: Bytes that are collected before they are written.
_PIECE = 1024 * 1024

_ADD = "INSERT OR IGNORE INTO attachments (hash, size, media_type, created_at) VALUES (?, ?, ?, ?)"
_LINK = """
INSERT OR IGNORE INTO message_attachments (message_id, position, name, kind, hash, size, media_type, problem)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_UNLINK = "DELETE FROM message_attachments WHERE message_id = ?"
_COLUMNS = "message_id, position, name, kind, hash, size, media_type, problem"
# The links of the messages whose ids ?1 lists.
_OF_MESSAGES = f"""
SELECT {_COLUMNS} FROM message_attachments
WHERE message_id IN (SELECT value FROM json_each(?1)) ORDER BY message_id, position LIMIT 10000
"""  # noqa: S608 - joined from constants
# One link, with the session that its message belongs to.
_ONE = f"""
SELECT {", ".join(f"a.{name.strip()}" for name in _COLUMNS.split(","))}, m.session_id
FROM message_attachments AS a JOIN messages AS m ON m.id = a.message_id
WHERE a.message_id = ? AND a.position = ?
"""  # noqa: S608 - joined from constants
# Files that no message names any more: at most ?1 of them are forgotten.
_FORGET = """
DELETE FROM attachments WHERE hash IN (
    SELECT a.hash FROM attachments AS a
    WHERE NOT EXISTS (SELECT 1 FROM message_attachments AS m WHERE m.hash = a.hash) LIMIT ?1)
"""
# Those of the hashes ?1 that are known.
_KNOWN = "SELECT hash FROM attachments WHERE hash IN (SELECT value FROM json_each(?1)) LIMIT 10000"


def attach(tx: Tx, message_id: int, attachments: Sequence[NewAttachment]) -> None:
    """Link files to a message that was stored in this transaction; a repeated call changes nothing."""
    for position, one in enumerate(attachments):
        if one.hash is not None:
            tx.run(_ADD, (one.hash, one.size or 0, one.media_type or "application/octet-stream", tx.now))
        facts = (one.name, one.kind, one.hash, one.size, one.media_type, one.problem)
        tx.run(_LINK, (message_id, position, *facts))


def detach(tx: Tx, message_id: int) -> bool:
    """Take all files from a message; whether there were any."""
    return tx.run(_UNLINK, (message_id,)) > 0


def attachments_of(rx: Rx, message_ids: Collection[int]) -> dict[int, list[AttachmentRow]]:
    """Return what came with these messages, in order; messages without files are left out."""
    found: dict[int, list[AttachmentRow]] = {}
    for row in rx.all(_OF_MESSAGES, (json.dumps(list(message_ids)),)):
        found.setdefault(row["message_id"], []).append(cast("AttachmentRow", row))
    return found


def _known(rx: Rx, hashes: Sequence[str]) -> set[str]:
    return {row["hash"] for row in rx.all(_KNOWN, (json.dumps(hashes),))}


class Incoming:
    """A file while it comes in, at most `most` bytes. `write` as often as needed, then `keep`."""

    def __init__(self, blobs: Blobs, most: int) -> None:
        self._blobs = blobs
        self._most = most
        self._draft: Draft | None = None
        self._waiting = bytearray()
        self.size = 0

    async def write(self, data: bytes) -> None:
        """Add a piece. Raises FileTooLarge as soon as there is more than allowed."""
        self.size += len(data)
        if self.size > self._most:
            raise FileTooLarge(f"The file is larger than {self._most:,} bytes. Send a smaller one.")
        self._waiting += data
        if len(self._waiting) >= _PIECE:
            await settle(asyncio.to_thread(self._flush))

    async def keep(self) -> str:
        """Store the file and return its hash; it is on the disk when this returns."""
        return await settle(asyncio.to_thread(self._keep))

    async def discard(self) -> None:
        """Let go of what was not kept."""
        if self._draft is not None:
            await settle(asyncio.to_thread(self._draft.discard))

    def _flush(self) -> Draft:
        if self._draft is None:
            self._draft = self._blobs.draft()
        self._draft.write(bytes(self._waiting))
        self._waiting.clear()
        return self._draft

    def _keep(self) -> str:
        return self._flush().keep()


class Attachments:
    """Files and their links. database: as for `SessionDB`; the files lie in `files` beside it."""

    def __init__(self, engine: Engine, database: str | os.PathLike[str] | None = None) -> None:
        self._engine = engine
        self._blobs = Blobs(database)

    @asynccontextmanager
    async def incoming(self, most: int) -> AsyncIterator[Incoming]:
        """A file to be written, of at most `most` bytes; what is not kept inside the context is gone after it."""
        incoming = Incoming(self._blobs, most)
        try:
            yield incoming
        finally:
            await incoming.discard()

    async def touch(self, hashes: Collection[str]) -> bool:
        """Keep files from the sweep for `GRACE_SECONDS` more; False if one of them is gone."""
        return await asyncio.to_thread(lambda: all(self._blobs.touch(one) for one in hashes))

    async def read(self, digest: str, most: int) -> bytes:
        """The beginning of a file, at most `most` bytes; FileNotFoundError if it is gone."""
        return await asyncio.to_thread(self._blobs.read, digest, most)

    async def path(self, digest: str) -> Path | None:
        """Where a file lies, to be read only; None if it is gone."""

        def find() -> Path | None:
            path = self._blobs.path(digest)
            return path if path.is_file() else None

        return await asyncio.to_thread(find)

    async def of_messages(self, message_ids: Collection[int]) -> dict[int, list[AttachmentRow]]:
        """What came with these messages, in order; messages without files are left out."""
        return await self._engine.read(lambda rx: attachments_of(rx, message_ids)) if message_ids else {}

    async def one(self, message_id: int, position: int) -> tuple[AttachmentRow, str] | None:
        """One file of a message and the session that the message belongs to, or None. Whose it is the caller checks."""
        row = await self._engine.read(lambda rx: rx.one(_ONE, (message_id, position)))
        if row is None:
            return None
        session_id: str = row.pop("session_id")
        return cast("AttachmentRow", row), session_id

    async def sweep(self, older_than: float = GRACE_SECONDS) -> int:
        """Remove the files that no message names; returns how many went. See the module for what is kept."""
        while await self._engine.write(lambda tx: tx.run(_FORGET, (_CHUNK,))) == _CHUNK:
            pass
        await asyncio.to_thread(self._blobs.remove_drafts, older_than)
        old = await asyncio.to_thread(self._blobs.older_than, older_than)
        gone = 0
        for start in range(0, len(old), _CHUNK):
            some = old[start : start + _CHUNK]
            unknown = set(some) - await self._engine.read(partial(_known, hashes=some))
            gone += await asyncio.to_thread(self._blobs.remove, unknown, older_than)
        return gone
