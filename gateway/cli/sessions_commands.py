"""`threadline sessions list|show|search|rename|export|prune|delete|stats`.

The terminal is the owner's; every id may be a unique prefix. Lists are newest activity first, filtered before limited.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer
from rich.console import Console
from rich.table import Table

from gateway.cli.running import async_run, fail, settings_of_home
from gateway.cli.screen import folded, harmless
from gateway.owner import owner_sees
from gateway.phrases import age, one_line, plural
from session_store import SessionDB

if TYPE_CHECKING:
    from session_store import MessageRow, SessionListRow, Visibility

__all__ = ["app"]

app = typer.Typer(help="List, read, search, name, export and clear sessions.", no_args_is_help=True)

#: Without --role, results of tools are left out: they repeat what was said elsewhere.
SAID = ["user", "assistant"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Source = Annotated[str | None, typer.Option(help="Only sessions born there: cli, web, telegram, discord, slack.")]
SessionId = Annotated[str, typer.Argument(help="Id of the session, or a unique beginning of it.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@asynccontextmanager
async def _store() -> AsyncIterator[tuple[SessionDB, Visibility]]:
    home, _ = settings_of_home()
    async with SessionDB(home.state_db) as db:
        yield db, await owner_sees(db)


async def _one(db: SessionDB, visible_to: Visibility, ref: str) -> str:
    """The one session that `ref` means; says which candidates there are otherwise."""
    found = await db.resolve_session(ref, visible_to=visible_to)
    if len(found) == 1:
        return found[0]
    if not found:
        raise fail(f"There is no session “{ref}”. `threadline sessions list` shows them.")
    raise fail(f"“{ref}” is the beginning of several sessions: {', '.join(found)}. Give more of the id.")


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _print_json(value: Any) -> None:
    _print(json.dumps(value, ensure_ascii=False, indent=2))


@app.command("list")
def list_sessions(
    *,
    source: Source = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List sessions, newest activity first."""

    async def work() -> list[SessionListRow]:
        async with _store() as (db, visible_to):
            return await db.list_sessions(source=source, limit=limit, visible_to=visible_to)

    rows = async_run(work())
    if as_json:
        _print_json(rows)
    else:
        _table(rows)


def _table(rows: Sequence[SessionListRow]) -> None:
    if not rows:
        _print("No sessions.")
        return
    now = time.time()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("Title", max_width=30, no_wrap=True)
    table.add_column("Preview", max_width=44, no_wrap=True, overflow="ellipsis")
    table.add_column("Last active", no_wrap=True)
    table.add_column("Id", no_wrap=True)
    for row in rows:
        cells = (row["title"] or "", row["preview"], age(row["last_active"], now), row["id"])
        table.add_row(*(harmless(cell).replace("[", r"\[") for cell in cells))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 160
    console.print(table)


@app.command()
def show(session: SessionId, *, as_json: AsJson = False) -> None:
    """Show a session with its messages; with --json as the export object."""

    async def work() -> dict[str, Any]:
        async with _store() as (db, visible_to):
            exported = await db.export_session(await _one(db, visible_to, session))
            if exported is None:
                raise fail(f"There is no session “{session}” any more.")
            return dict(exported)

    data = async_run(work())
    if as_json:
        _print_json(data)
        return
    _print(
        f"{data['title'] or '(no title)'}: {data['id']}, {data['source']}, {plural(data['message_count'], 'message')}"
    )
    for message in data["messages"]:
        _print(_message_line(message))


def _message_line(message: MessageRow) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(message["timestamp"]))
    if message["tool_calls"]:
        names = [str(call.get("function", {}).get("name", "?")) for call in message["tool_calls"]]
        return f"\n{when}  {message['role']}: [{folded(names)}]"
    if message["role"] == "tool":
        return f"{when}  result of {message['tool_name'] or 'a tool'}: {one_line(str(message['content'] or ''), 100)}"
    content = message["content"]
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return f"\n{when}  {message['role']}:\n{harmless(text or '')}"


@app.command()
def search(
    query: Annotated[list[str], typer.Argument(help='Words; AND, OR, NOT, "a phrase" and prefix* are understood.')],
    *,
    source: Source = None,
    role: Annotated[
        list[str] | None, typer.Option(help="Only what these said: user, assistant, tool. May be repeated.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="At most so many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Search everything that was said, newest first. Every word must be there unless OR or NOT say otherwise."""

    async def work() -> list[dict[str, Any]]:
        async with _store() as (db, visible_to):
            sources = [source] if source is not None else None
            hits = await db.search_messages(
                " ".join(query), sources, role_filter=role or SAID, limit=limit, visible_to=visible_to
            )
            return [dict(hit) for hit in hits]

    hits = async_run(work())
    if as_json:
        _print_json(hits)
        return
    if not hits:
        _print("Nothing found.")
        return
    now = time.time()
    if hits[0]["approximate"]:
        _print("No whole word matches; found inside words of recent messages:")
    for hit in hits:
        title = one_line(hit["title"] or hit["session_id"], 50)
        _print(
            f"{harmless(title)}  ({hit['source']}, {hit['role']}, {age(hit['timestamp'], now)}, {hit['session_id']})"
        )
        _print(f"  {harmless(one_line(hit['snippet'], 300))}")


@app.command()
def rename(session: SessionId, title: Annotated[str, typer.Argument(help="The new title; '' removes it.")]) -> None:
    """Give a session a title. Titles are unique among your sessions."""

    async def work() -> tuple[str, str | None]:
        async with _store() as (db, visible_to):
            session_id = await _one(db, visible_to, session)
            await db.set_session_title(session_id, title)
            row = await db.get_session(session_id)
            return session_id, row["title"] if row is not None else None

    session_id, stored = async_run(work())
    _print(f"{session_id} is now called “{stored}”." if stored else f"{session_id} has no title now.")


@app.command()
def export(
    target: Annotated[str, typer.Argument(help="File to write, or - for standard output.")],
    *,
    session: Annotated[str | None, typer.Option(help="Only this one (id or unique beginning).")] = None,
    source: Source = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write sessions with their messages as JSON lines, one session a line."""
    async_run(_export(target, session, source, force=force))


async def _export(target: str, session: str | None, source: str | None, *, force: bool) -> None:
    count = 0
    async with _store() as (db, visible_to), _writer(target, force=force) as write:
        if session is not None:
            one = await db.export_session(await _one(db, visible_to, session))
            await write(json.dumps(one, ensure_ascii=False) + "\n")
            count = 1
        else:
            async for data in db.iter_sessions(source, visible_to=visible_to):
                await write(json.dumps(data, ensure_ascii=False) + "\n")
                count += 1
    if target != "-":
        sys.stderr.write(f"{plural(count, 'session')} written to {target}.\n")


@asynccontextmanager
async def _writer(target: str, *, force: bool) -> AsyncIterator[Any]:
    """A function that writes text to the target; a file appears whole or not at all."""
    if target == "-":

        async def to_stdout(text: str) -> None:
            await anyio.to_thread.run_sync(sys.stdout.write, text)

        yield to_stdout
        sys.stdout.flush()
        return
    path = anyio.Path(target)
    if await path.exists() and not force:
        raise fail(f"{target} exists already. Choose another name or use --force.")
    draft = path.with_name(f".{path.name}.part")
    try:
        async with await anyio.open_file(draft, "w", encoding="utf-8", opener=_private) as file:
            yield file.write
        await draft.rename(Path(target))
    except OSError as error:
        raise fail(f"{target} cannot be written: {error.strerror}.") from error
    finally:
        await draft.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@app.command()
def prune(
    *,
    older_than: Annotated[int, typer.Option(min=0, help="Days since the last activity.")] = 90,
    source: Source = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    yes: Yes = False,
) -> None:
    """Delete ended conversations whose last activity is older than so many days."""

    async def candidates() -> list[SessionListRow]:
        async with _store() as (db, _):
            return await db.prune_candidates(older_than, source)

    rows = async_run(candidates())
    if not rows:
        _print(f"No ended conversation is older than {plural(older_than, 'day')}.")
        return
    _table(rows[:50])
    _print(f"{plural(len(rows), 'conversation')}, last activity more than {plural(older_than, 'day')} ago.")
    if dry_run:
        return
    if not yes:
        _confirm(f"Delete {plural(len(rows), 'conversation')} for good?")

    async def work() -> int:
        async with _store() as (db, _):
            return await db.prune_sessions(older_than, source)

    _print(f"{plural(async_run(work()), 'session')} deleted.")


@app.command()
def delete(session: SessionId, *, yes: Yes = False) -> None:
    """Delete a whole conversation with its messages."""

    async def find() -> tuple[str, str]:
        async with _store() as (db, visible_to):
            session_id = await _one(db, visible_to, session)
            row = await db.get_session(session_id)
            return session_id, (row["title"] or "") if row is not None else ""

    session_id, title = async_run(find())
    if not yes:
        _confirm(f"Delete {session_id}{f' “{title}”' if title else ''} with all its messages for good?")

    async def work() -> bool:
        async with _store() as (db, _):
            return await db.delete_session(session_id)

    if not async_run(work()):
        raise fail(f"There is no session “{session_id}” any more.")
    _print(f"{session_id} deleted.")


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise fail(f"{question} Nobody can be asked here; use --yes.")
    if not typer.confirm(question):
        raise fail("Nothing was deleted.")


@app.command()
def stats(*, as_json: AsJson = False) -> None:
    """Totals, per source, and the size of the store."""

    async def work() -> dict[str, Any]:
        async with _store() as (db, _):
            return dict(await db.stats())

    data = async_run(work())
    if as_json:
        _print_json(data)
        return
    _print(f"Total sessions: {data['sessions']}")
    _print(f"Total messages: {data['messages']}")
    for source, count in sorted(data["by_source"].items()):
        _print(f"  {source}: {plural(count, 'session')}")
    _print(f"Database size: {data['size_bytes'] / 1_000_000:.1f} MB")
