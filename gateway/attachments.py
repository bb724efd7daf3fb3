"""Files that come with a message: fetched, kept, named in its text, before its turn is claimed.

Contract: `Collector.collect` returns what became of each file of a turn's rows, in order; it never raises for a file
that cannot be had, so that the words of a message are never lost: such a file becomes a note with the reason. The
reference of a file lies in the row and the file by its hash in the home, so whatever is killed on the way is fetched
again, or found. A file that is claimed to be too large is not fetched at all; one that turns out to be is given up in
the middle. `content` puts words, names and the text of text files together.
Failure: StoreFull is raised, since nothing can be stored then anyway: the row waits until there is space.
Limits: `MAX_FILES` a turn, `FILE_SECONDS` a file with all its tries, `MESSAGE_SECONDS` the files of a turn,
`AT_ONCE` downloads at a time; what was fetched for `MAX_REMEMBERED` turns that wait for their conversation is known
without fetching it again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
import structlog

from adapters.base import FetchError, FetchesFiles
from gateway.filenames import harmless_name
from gateway.filetypes import judge
from gateway.phrases import amount
from session_store import FileTooLarge, NewAttachment, StoreError, StoreFull

if TYPE_CHECKING:
    from adapters.base import Adapter
    from config import Settings
    from session_store import InboxRow, SessionDB

__all__ = ["Collected", "Collector", "content"]

MAX_FILES = 20
FILE_SECONDS = 90.0
MESSAGE_SECONDS = 240.0
AT_ONCE = 8
MAX_REMEMBERED = 256
#: Pauses between the tries to fetch a file, in seconds.
PAUSES: Final = (0.5, 2.0, 5.0)

_MB: Final = 1_000_000
#: A character of UTF-8 has four bytes at most; more is read for signatures of files that are no texts.
_BYTES_PER_CHARACTER: Final = 4
_LEAST_READ: Final = 65_536
_REASON: Final = 200
#: No file is larger; what a forged event claims beyond it is no size.
_LARGEST = 2**63 - 1
_NAMES: Final = {"image": "image", "audio": "audio", "voice": "voice message", "video": "video"}
_ENDINGS: Final = {
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "image/gif": ".gif",
    "audio/ogg": ".ogg",
    "application/ogg": ".ogg",
    "audio/mpeg": ".mp3",
    "video/mp4": ".mp4",
    "application/pdf": ".pdf",
    "text/plain": ".txt",
}

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Collected:
    """What became of one file. text: the words of a text file as far as they are shown; cut: how many are not."""

    attachment: NewAttachment
    text: str | None = None
    cut: bool = False


@dataclass(slots=True)
class _Budget:
    """What the files of one message may still take: bytes, characters of text, and time of the loop's clock."""

    data: int
    characters: int
    ends: float


class Collector:
    """Fetches for one process, through the accounts that it owns."""

    def __init__(self, db: SessionDB, adapters: Mapping[tuple[str, str], Adapter], settings: Settings) -> None:
        self._db = db
        self._adapters = adapters
        self._limits = settings.attachments
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._known: OrderedDict[tuple[int, ...], list[Collected]] = OrderedDict()

    async def collect(self, rows: Sequence[InboxRow]) -> list[Collected]:
        """What became of the files of one turn's rows; see the module. To be called again just before each claim."""
        told = [(row, facts) for row in rows for facts in row["payload"].get("attachments") or ()]
        if not told:
            return []
        which = tuple(row["id"] for row in rows)
        known = self._known.get(which)
        if known is not None and await self._db.attachments.touch([one.attachment.hash or "" for one in _kept(known)]):
            return known
        ends = asyncio.get_running_loop().time() + MESSAGE_SECONDS
        budget = _Budget(self._limits.message_mb * _MB, self._limits.text_characters, ends)
        found = [await self._one(row, facts, budget) for row, facts in told[:MAX_FILES]]
        found += [_unfetched(facts, f"there are more than {MAX_FILES} files") for _, facts in told[MAX_FILES:]]
        self._known[which] = found
        while len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)
        return found

    def forget(self, rows: Sequence[InboxRow]) -> None:
        """The rows of a turn are worked: what came with them is the store's now."""
        self._known.pop(tuple(row["id"] for row in rows), None)

    async def _one(self, row: InboxRow, facts: Mapping[str, Any], budget: _Budget) -> Collected:
        most = min(self._limits.max_mb * _MB, budget.data)
        claimed = facts.get("size")
        if self._limits.max_mb == 0:
            return _unfetched(facts, "files are not fetched here")
        if most <= 0 or (isinstance(claimed, int) and claimed > most):
            return _unfetched(facts, _too_large(most, self._limits.max_mb))
        adapter: object = self._adapters.get((row["platform"], row["account"]))
        if not isinstance(adapter, FetchesFiles):
            return _unfetched(facts, "this entrance fetches no files")
        problem = "it took too long"
        try:
            async with asyncio.timeout_at(min(budget.ends, asyncio.get_running_loop().time() + FILE_SECONDS)):
                digest, size = await self._fetched(adapter, str(facts.get("reference", "")), most)
        except (FileTooLarge, TimeoutError, FetchError) as error:
            if isinstance(error, FileTooLarge):
                problem = _too_large(most, self._limits.max_mb)
            elif isinstance(error, FetchError):
                problem = str(error)
            _log.warning("file_not_fetched", inbox_id=row["id"], reason=problem)
            return _unfetched(facts, problem)
        budget.data -= size
        return await self._judged(facts, digest, size, budget)

    async def _fetched(self, adapter: FetchesFiles, reference: str, most: int) -> tuple[str, int]:
        """Hash and size of the fetched file; tried again a few times where that may help."""
        pauses = iter(PAUSES)
        while True:
            try:
                async with self._slots, self._db.attachments.incoming(most) as incoming:
                    await adapter.fetch(reference, incoming.write)
                    return await incoming.keep(), incoming.size
            except (FileTooLarge, StoreFull):
                raise
            except StoreError as error:
                raise FetchError(f"it cannot be kept: {error}", again=False) from error
            except FetchError as error:
                pause = next(pauses, None)
                if pause is None or not error.again:
                    raise
                _log.info("file_postponed", reason=str(error))
                await asyncio.sleep(max(pause, error.delay))
            except Exception as error:
                # An adapter is foreign code, and so is the library behind it: whatever it raises costs only the file.
                _log.exception("file_not_fetched")
                raise FetchError("fetching it failed; the reason is in the log", again=False) from error

    async def _judged(self, facts: Mapping[str, Any], digest: str, size: int, budget: _Budget) -> Collected:
        most = max(_LEAST_READ, _BYTES_PER_CHARACTER * (budget.characters + 1))
        claimed = _text(facts.get("name"))
        beginning = await self._db.attachments.read(digest, most)
        judged = await anyio.to_thread.run_sync(partial(judge, beginning, claimed, whole=len(beginning) == size))
        kind = _kind(facts)
        name = harmless_name(claimed, kind + _ENDINGS.get(judged.media_type, ""))
        attachment = NewAttachment(name, kind, digest, size, judged.media_type)
        if judged.text is None or budget.characters <= 0:
            return Collected(attachment, cut=judged.text is not None)
        shown = judged.text[: budget.characters]
        budget.characters -= len(shown)
        return Collected(attachment, shown, cut=len(shown) < len(judged.text) or size > len(beginning))


def _kept(collected: Sequence[Collected]) -> list[Collected]:
    """Those that were fetched."""
    return [one for one in collected if one.attachment.hash is not None]


def content(words: str, collected: Sequence[Collected]) -> str:
    """The text of a message: what the person wrote, then each file by its name, with its words if it is a text.

    Names are harmless and stand in square brackets, which no name holds. Where the words of a file end is said, but a
    file may say so itself: what tells files apart for certain are the stored links.
    """
    return "\n\n".join(part for part in (words, *map(_named, collected)) if part)


def _named(one: Collected) -> str:
    attachment = one.attachment
    if attachment.problem is not None:
        return f"[{attachment.name} could not be fetched: {attachment.problem}]"
    head = f"[{_NAMES.get(attachment.kind, 'file')}: {attachment.name}, {amount(attachment.size or 0)}]"
    if not one.text:
        return head
    end = f"[{attachment.name} goes on]" if one.cut else f"[end of {attachment.name}]"
    return f"{head}\n{one.text.rstrip()}\n{end}"


def _unfetched(facts: Mapping[str, Any], problem: str) -> Collected:
    kind, size = _kind(facts), facts.get("size")
    return Collected(
        NewAttachment(
            harmless_name(_text(facts.get("name")), kind),
            kind,
            size=size if isinstance(size, int) and 0 <= size <= _LARGEST else None,
            media_type=_text(facts.get("media_type")) or None,
            problem=" ".join(problem.replace("[", "(").replace("]", ")").split())[:_REASON],
        )
    )


def _too_large(most: int, max_mb: int) -> str:
    if most < max_mb * _MB:
        return "the files of this message are too large together"
    return f"it is larger than {max_mb} MB"


def _kind(facts: Mapping[str, Any]) -> str:
    kind = _text(facts.get("kind"))
    return kind if kind in _NAMES else "file"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
