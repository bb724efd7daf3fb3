"""`threadline sessions export`: sessions with their messages as JSON lines.

Contract: one session in memory at a time. A file appears whole or not at all, for its owner alone (0600), and one that
is there is replaced only when asked; what is no file (a device, a named pipe) is written to as it is.
Every segment of a compressed conversation is a line of its own.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import anyio
import anyio.to_thread
import typer

from gateway.cli.options import Everything, Source
from gateway.cli.output import as_json
from gateway.cli.running import fail, settings_of_home
from gateway.cli.sessions.common import app, on_store, one_session
from gateway.phrases import plural
from session_store.redaction import redact_value

if TYPE_CHECKING:
    from session_store import SessionDB, SessionExport, Visibility

__all__ = ["export"]


@app.command("export")
def export(
    target: Annotated[str, typer.Argument(metavar="FILE", help="File to write, or - for standard output.")],
    *,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this one (id, unique beginning of it, or title).")
    ] = None,
    source: Source = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    everything: Everything = False,
) -> None:
    """Write sessions with their messages as JSON lines, one session a line."""
    _, settings = settings_of_home()
    choice, place = Choice(session, source, redacted=settings.redact != "off"), Target(target, force)
    count = on_store(lambda db, visible_to: _export(db, visible_to, choice, place), everything=everything)
    if target != "-":
        typer.echo(f"{plural(count, 'session')} written to {target}.", err=True)


async def _export(db: SessionDB, visible_to: Visibility | None, choice: Choice, target: Target) -> int:
    chosen = _chosen(db, visible_to, choice)
    count = 0
    # The first one is read before the file is touched: an unknown id leaves nothing behind.
    exported = await anext(chosen, None)
    try:
        await anyio.to_thread.run_sync(target.begin)
        while exported is not None:
            shown = redact_value(exported) if choice.redacted else exported
            await anyio.to_thread.run_sync(target.write, as_json(shown) + "\n")
            count += 1
            exported = await anext(chosen, None)
        await anyio.to_thread.run_sync(target.finish)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(target.discard)
    return count


async def _chosen(db: SessionDB, visible_to: Visibility | None, choice: Choice) -> AsyncIterator[SessionExport]:
    if choice.ref is None:
        async for exported in db.iter_sessions(choice.source, visible_to=visible_to):
            yield exported
        return
    for session_id in await db.conversation_of(await one_session(db, visible_to, choice.ref)):
        one = await db.export_session(session_id)
        if one is not None:
            yield one


@dataclass(frozen=True, slots=True)
class Choice:
    """What is exported: the session that `ref` means, else all of a source, else all; perhaps without secrets."""

    ref: str | None
    source: str | None
    redacted: bool


class Target:
    """Where it is written; see the module. All methods may block. What cannot be written ends the command."""

    def __init__(self, name: str, replace: bool) -> None:  # noqa: FBT001 - one of the two facts of a target
        self._name = name
        self._replace = replace
        self._path = Path(name).resolve()
        self._draft: Path | None = None
        self._file: TextIO = sys.stdout

    def begin(self) -> None:
        """Open it."""
        if self._name == "-":
            return
        with self._told():
            if self._path.exists() and not self._path.is_file():
                self._file = self._path.open("w", encoding="utf-8")
                return
            if self._path.exists() and not self._replace:
                raise fail(f"{self._name} exists already. Choose another name or use --force.")
            draft = self._path.with_name(f".{self._path.name}.{secrets.token_hex(6)}.part")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._draft = draft
            self._file = os.fdopen(descriptor, "w", encoding="utf-8")

    def write(self, text: str) -> None:
        """Write a line."""
        with self._told():
            self._file.write(text)

    def finish(self) -> None:
        """Everything is written: let it appear."""
        with self._told():
            self._file.flush()
            if self._draft is not None:
                os.fsync(self._file.fileno())
                self._draft.replace(self._path)
                self._draft = None

    def discard(self) -> None:
        """Close it; what was not finished is gone."""
        if self._file is not sys.stdout:
            with contextlib.suppress(OSError):  # told by `finish`, or not wanted any more
                self._file.close()
        if self._draft is not None:
            self._draft.unlink(missing_ok=True)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if self._file is sys.stdout and self._name == "-":
                raise
            raise fail(f"{self._name} cannot be written: {error.strerror or error}.") from error
