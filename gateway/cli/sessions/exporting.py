"""`threadline sessions export`: sessions with their messages as JSON lines.

Contract: one session in memory at a time. A file appears whole or not at all, for its owner alone (0600), and one that
is there is replaced only when asked; what is no file (a device, a named pipe) is written to as it is.
Every segment of a compressed conversation is a line of its own.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio.to_thread
import typer

from gateway.cli.output import as_json
from gateway.cli.running import async_run, fail
from gateway.cli.sessions.common import Source, app, one_session, open_store
from gateway.phrases import plural

if TYPE_CHECKING:
    from session_store import SessionDB, SessionExport, Visibility

__all__ = ["export"]

Write = Callable[[str], object]


@app.command()
def export(
    target: Annotated[str, typer.Argument(metavar="FILE", help="File to write, or - for standard output.")],
    *,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this one (id, unique beginning of it, or title).")
    ] = None,
    source: Source = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write sessions with their messages as JSON lines, one session a line."""
    count = async_run(_export(target, session, source, force=force))
    if target != "-":
        typer.echo(f"{plural(count, 'session')} written to {target}.", err=True)


async def _export(target: str, session: str | None, source: str | None, *, force: bool) -> int:
    count = 0
    async with open_store() as (db, visible_to):
        exported = (
            _chosen(db, visible_to, session) if session is not None else db.iter_sessions(source, visible_to=visible_to)
        )
        # The first one is read before the file is touched: an unknown id leaves nothing behind.
        first = await anext(exported, None)
        with _writing(target, force=force) as write:
            while first is not None:
                await anyio.to_thread.run_sync(write, as_json(first) + "\n")
                count += 1
                first = await anext(exported, None)
    return count


async def _chosen(db: SessionDB, visible_to: Visibility, ref: str) -> AsyncIterator[SessionExport]:
    for session_id in await db.conversation_of(await one_session(db, visible_to, ref)):
        exported = await db.export_session(session_id)
        if exported is not None:
            yield exported


@contextmanager
def _writing(target: str, *, force: bool) -> Iterator[Write]:
    if target == "-":
        yield sys.stdout.write
        sys.stdout.flush()
        return
    path = Path(target).resolve()
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            with path.open("w", encoding="utf-8") as file:
                yield file.write
            return
        if path.exists() and not force:
            raise fail(f"{target} exists already. Choose another name or use --force.")
        with _draft_of(path) as write:
            yield write
    except OSError as error:
        raise fail(f"{target} cannot be written: {error.strerror or error}.") from error


@contextmanager
def _draft_of(path: Path) -> Iterator[Write]:
    """A file beside `path` that takes its place when everything is written."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
