"""`threadline sessions list|show|stats`: reading what there is.

Lists are newest activity first, filtered before limited. `show` reads page by page, whatever the length.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.numbers import whole_number
from gateway.cli.options import AsJson, Everything, SessionId, Source
from gateway.cli.output import on_a_terminal, write, write_json
from gateway.cli.sessions.auditing import audit_json, show_audit
from gateway.cli.sessions.common import app, gone, on_store, one_session
from gateway.handoff_words import step_words
from gateway.phrases import age, amount, clock, folded, harmless, one_line, plural
from gateway.said import text_of, tool_names
from gateway.spending import spent
from session_store.view import is_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from session_store import MessageRow, SessionDB, SessionListRow, SessionStats, Visibility

__all__ = ["list_sessions", "print_table", "show", "stats"]

_PAGE = 200
_NARROW = 90
#: Widths of columns: at most, but for the last activity and the preview, which have at least so much.
_TITLE, _WHOSE, _LAST, _PREVIEW = 30, 20, len("Last active"), 12
_GAP = 2


@app.command("list")
def list_sessions(
    *,
    source: Source = None,
    limit: Annotated[int, typer.Option(parser=whole_number(1), metavar="NUMBER", help="At most so many.")] = 20,
    everything: Everything = False,
    as_json: AsJson = False,
) -> None:
    """List sessions, newest activity first."""
    rows = on_store(
        lambda db, visible_to: db.list_sessions(source, limit, visible_to=visible_to), everything=everything
    )
    if as_json:
        write_json(rows)
    elif rows:
        print_table(rows, whose=everything)
    else:
        write("No sessions.")


def print_table(rows: Sequence[SessionListRow], *, whose: bool = False) -> None:
    """Sessions as a table: title, preview, last activity in words, id. On a narrow screen, two lines for each.

    whose: with the person or room that each belongs to.
    """
    from rich.console import Console  # noqa: PLC0415 - only tables need it
    from rich.table import Table  # noqa: PLC0415 - the same
    from rich.text import Text  # noqa: PLC0415 - the same

    console = Console(highlight=False, markup=False, emoji=False)
    if not on_a_terminal():
        console.width = 200
    now = time.time()
    ages = [age(row["last_active"], now) for row in rows]
    beside = _TITLE + max(_LAST, *map(len, ages)) + max(len(row["id"]) for row in rows) + (_WHOSE if whose else 0)
    room = console.width - beside - _GAP * (4 if whose else 3)
    if console.width < _NARROW or room < _PREVIEW:
        for row, when in zip(rows, ages, strict=True):
            name = row["title"] or row["preview"] or "(empty)"
            belonging = f"  {one_line(harmless(row['person'] or 'nobody'), _WHOSE)}" if whose else ""
            console.print(Text(one_line(harmless(name), console.width // 2 * 2)), no_wrap=True, overflow="ellipsis")
            console.print(Text(f"  {when}{belonging}  {row['id']}", style="dim"), soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("Title", max_width=_TITLE, no_wrap=True, overflow="ellipsis")
    # The preview alone gives way: an id or a time that is cut is of no use.
    table.add_column("Preview", max_width=room, no_wrap=True, overflow="ellipsis")
    table.add_column("Last active", no_wrap=True)
    if whose:
        table.add_column("Whose", max_width=_WHOSE, no_wrap=True, overflow="ellipsis")
    table.add_column("Id", no_wrap=True)
    for row, when in zip(rows, ages, strict=True):
        belongs = (row["person"] or "nobody",) if whose else ()
        cells = (row["title"] or "", row["preview"], when, *belongs, row["id"])
        table.add_row(*(Text(one_line(harmless(cell), 100)) for cell in cells))
    if on_a_terminal():
        console.print(table)
        return
    # Nothing pads the last column where other programs read.
    with console.capture() as printed:
        console.print(table)
    write("\n".join(line.rstrip() for line in printed.get().rstrip("\n").split("\n")))


@app.command("show")
def show(
    session: SessionId,
    *,
    audit: Annotated[
        bool, typer.Option("--audit", help="Everything that happened: who, where, when, each call with its result.")
    ] = False,
    everything: Everything = False,
    as_json: AsJson = False,
) -> None:
    """Show a session with its messages; with --json as the export object."""

    async def work(db: SessionDB, visible_to: Visibility | None) -> None:
        session_id = await one_session(db, visible_to, session)
        if audit:
            await (audit_json(db, session_id) if as_json else show_audit(db, session_id))
        else:
            await (_show_json(db, session_id) if as_json else _show(db, session_id))

    on_store(work, everything=everything)


async def _show_json(db: SessionDB, session_id: str) -> None:
    exported = await db.export_session(session_id)
    if exported is None:
        raise gone(session_id)
    write_json(exported)


async def _show(db: SessionDB, session_id: str) -> None:
    session = await db.get_session(session_id)
    if session is None:
        raise gone(session_id)
    facts = [
        session["id"],
        session["source"],
        f"begun {clock(session['started_at'])}",
        f"ended {clock(session['ended_at'])} ({session['end_reason']})" if session["ended_at"] else "open",
    ]
    write(f"{session['title'] or '(no title)'}\n{', '.join(facts)}")
    usage = await db.usage.of_conversation(session_id)
    if usage["calls"]:
        write(spent(usage))
    history = await db.place_history.of_session(session_id)
    if len(history) > 1:
        write("It came this way:")
        for step in history:
            write(f"  {clock(step['at'])}  {harmless(step_words(step))}")
    for segment in await db.conversation_of(session_id):
        await _show_messages(db, segment)


async def _show_messages(db: SessionDB, session_id: str) -> None:
    last, more = 0, True
    while more:
        rows = await db.get_messages_after(session_id, last, limit=_PAGE)
        for row in rows:
            if not row["rewound"]:
                write(_shown(row))
        last, more = rows[-1]["id"] if rows else last, len(rows) == _PAGE


def _shown(row: MessageRow) -> str:
    when = clock(row["timestamp"])
    if row["role"] == "tool":
        return f"{when}  result of {row['tool_name'] or 'a tool'}: {one_line(text_of(row), 100)}"
    called = f"\n[{folded(tool_names(row))}]" if row["tool_calls"] else ""
    text = f"\n{text_of(row)}" if text_of(row) else ""
    role = "summary of what came before, as the agent sees it" if is_summary(row) else row["role"]
    return f"\n{when}  {role}:{called}{text}"


@app.command("stats")
def stats(*, as_json: AsJson = False) -> None:
    """Show totals, sessions by entrance, the state of the search index and the size of the store."""

    async def work(db: SessionDB, _: Visibility | None) -> tuple[SessionStats, str]:
        return await db.stats(), await db.health.index()

    data, index = on_store(work)
    if as_json:
        write_json({**data, "search_index": index})
        return
    write(f"Total sessions: {data['sessions']}")
    write(f"Total messages: {data['messages']}")
    for source, count in sorted(data["by_source"].items()):
        write(f"  {source}: {plural(count, 'session')}")
    if data["usage"]["calls"]:
        write(spent(data["usage"]))
    write(f"Search index: {index}")
    if index.startswith("broken"):
        write("  Search reads the newest messages meanwhile. Build it anew: threadline sessions repair --search")
    write(f"Database size: {amount(data['size_bytes'])}")
