"""`threadline sessions rename|delete|prune`: naming and clearing.

Contract: what is deleted goes as whole conversations. Deleting asks first, and where nobody can be asked it does
nothing without --yes. A prune shows titles and previews of the owner's own sessions only; of other people's it tells
how many, and it says what it leaves although it is old.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.numbers import whole_number
from gateway.cli.options import SessionId, Source, Yes
from gateway.cli.output import write
from gateway.cli.running import fail
from gateway.cli.sessions.common import app, gone, on_store, one_session
from gateway.cli.sessions.listing import print_table
from gateway.phrases import harmless, plural

if TYPE_CHECKING:
    from session_store import PruneKept, SessionDB, SessionListRow, Visibility

__all__ = ["delete", "prune", "rename"]

_SHOWN = 50


@app.command("rename")
def rename(
    session: SessionId, title: Annotated[str, typer.Argument(metavar="TITLE", help="The new title; '' removes it.")]
) -> None:
    """Give a session a title. Titles are unique among your sessions."""

    async def work(db: SessionDB, visible_to: Visibility | None) -> tuple[str, str | None]:
        session_id = await one_session(db, visible_to, session)
        if not await db.set_session_title(session_id, title):
            raise gone(session_id)
        row = await db.get_session(session_id)
        return session_id, row["title"] if row is not None else None

    session_id, stored = on_store(work)
    write(f"{session_id} is now called “{stored}”." if stored else f"{session_id} has no title now.")


@app.command("delete")
def delete(session: SessionId, *, yes: Yes = False) -> None:
    """Delete a whole conversation with its messages."""

    async def find(db: SessionDB, visible_to: Visibility | None) -> tuple[str, str, int]:
        session_id = await one_session(db, visible_to, session)
        segments = [await db.get_session(each) for each in await db.conversation_of(session_id)]
        rows = [row for row in segments if row is not None]
        return session_id, (rows[-1]["title"] or "") if rows else "", sum(row["message_count"] for row in rows)

    session_id, title, messages = on_store(find)
    name = f"{session_id} “{title}”" if title else session_id
    if not yes:
        _confirm(f"Delete {name} with {plural(messages, 'message')} for good?")
    if not on_store(lambda db, _: db.delete_session(session_id)):
        raise gone(session_id)
    write(f"{name} deleted.")


@app.command("prune")
def prune(
    *,
    older_than: Annotated[
        int, typer.Option(parser=whole_number(0), metavar="DAYS", help="Days since the last activity.")
    ] = 90,
    source: Source = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    yes: Yes = False,
) -> None:
    """Delete ended conversations whose last activity is older than so many days."""

    async def look(db: SessionDB, visible_to: Visibility | None) -> tuple[list[SessionListRow], int, PruneKept]:
        mine = await db.prune_candidates(older_than, source, visible_to=visible_to)
        everything = await db.prune_candidates(older_than, source)
        return mine, len(everything), await db.prune_kept_back(older_than, source)

    mine, count, kept = on_store(look)
    if mine:
        print_table(mine[:_SHOWN])
    if len(mine) > _SHOWN:
        write(f"and {len(mine) - _SHOWN} more of yours")
    if count > len(mine):
        write(f"{plural(count - len(mine), 'conversation')} of other people or rooms")
    age = plural(older_than, "day")
    write(f"{plural(count, 'ended conversation')} without activity for {age}." + _left(kept))
    if dry_run or not count:
        return
    if not yes:
        _confirm(f"Delete {plural(count, 'conversation')} for good?")
    deleted = on_store(lambda db, _: db.prune_sessions(older_than, source))
    write(f"{plural(deleted, 'conversation')} deleted.")


def _left(kept: PruneKept) -> str:
    reasons = {"never ended": kept["open"], "archived": kept["archived"], "with work under way": kept["in_use"]}
    told = [f"{count} {reason}" for reason, count in reasons.items() if count]
    return f" As old but left: {', '.join(told)}." if told else ""


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise fail(f"{harmless(question)} Nobody can be asked here; use --yes.")
    if not typer.confirm(harmless(question)):
        raise fail("Nothing was deleted.")
