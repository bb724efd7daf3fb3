"""`threadline outbox list|retry|drop`: what is on its way to the platforms, and what became of it.

Contract: `list` shows what waits, is being sent, has an unknown outcome or has failed. `retry` has unknown and failed
parts sent again, by whichever gateway serves their account; `drop` gives parts up for good, and asks first. Exit code 1
if an id could not be changed; the others are changed all the same. No gateway need run.
What belongs to other people is counted, and can be tried again or dropped, but its text is not shown.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.numbers import whole_number
from gateway.cli.options import sub_command
from gateway.cli.output import write, write_json
from gateway.cli.running import async_run, fail, our_home
from gateway.owner import OWNER, owner_sees
from gateway.phrases import age, harmless, one_line, plural, until
from session_store import SessionDB

if TYPE_CHECKING:
    from config import Home
    from session_store import OutboxRow, Visibility

__all__ = ["app"]

STATES = ("waiting", "sending", "unknown", "failed", "sent", "dropped")
OPEN = STATES[:4]
SHOWN_CHARACTERS = 80
_HIDDEN = "(of somebody else)"

app = sub_command("See what is to be delivered, try it again, drop it.")

Ids = Annotated[
    list[int],
    typer.Argument(metavar="ID", help="Numbers that `threadline outbox list` shows.", parser=whole_number(1)),
]


@app.command("list")
def list_parts(
    *,
    state: Annotated[
        list[str] | None, typer.Option(metavar="STATE", help=f"Only these: {', '.join(STATES)}. May be repeated.")
    ] = None,
    limit: Annotated[int, typer.Option(parser=whole_number(1, 1000), metavar="NUMBER", help="At most so many.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what waits, is being sent, is unknown or has failed, in the order in which it goes out."""
    chosen = tuple(state or OPEN)
    unknown = [name for name in chosen if name not in STATES]
    if unknown:
        raise fail(f"There is no state “{unknown[0]}”. Choose from {', '.join(STATES)}.", code=2)
    report = async_run(_report(our_home(), chosen, limit))
    if as_json:
        write_json(report)
    else:
        write("\n".join(_lines(report, chosen)))


@app.command()
def retry(ids: Ids) -> None:
    """Send parts again that have failed, or of which nobody knows whether they arrived (they may then appear twice)."""

    async def work(home: Home) -> dict[int, str | None]:
        async with SessionDB(home.state_db) as db:
            return await db.outbox.try_again(ids)

    _tell(async_run(work(our_home())), ("unknown", "failed"), "waits to be sent again")


@app.command()
def drop(ids: Ids, *, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Give parts up that are not sent yet; nobody will receive them."""
    if not yes:
        _confirm(f"Drop {plural(len(set(ids)), 'part')} for good?")

    async def work(home: Home) -> dict[int, str | None]:
        async with SessionDB(home.state_db) as db:
            return await db.outbox.drop(ids)

    _tell(async_run(work(our_home())), ("waiting", "unknown", "failed"), "is dropped")


def _confirm(question: str) -> None:
    """Ask on the terminal; without one, nothing happens."""
    if not sys.stdin.isatty():
        raise fail(f"{question} Nobody can be asked here; use --yes.")
    if not typer.confirm(question):
        raise fail("Nothing was dropped.")


def _tell(before: dict[int, str | None], changeable: Sequence[str], done: str) -> None:
    """Say for each id what came of it."""
    refused = []
    for outbox_id, state in before.items():
        if state in changeable:
            write(f"{outbox_id} {done}.")
        elif state is None:
            refused.append(f"There is no part {outbox_id}.")
        else:
            refused.append(f"{outbox_id} is left as it is: {_STANDS[state]}.")
    if refused:
        raise fail("\n".join(refused))


_STANDS = {
    "waiting": "it waits to be sent anyway",
    "sending": "it is being sent at this moment",
    "sent": "it was sent",
    "dropped": "it was dropped before",
}


async def _report(home: Home, states: Sequence[str], limit: int) -> dict[str, Any]:
    async with SessionDB(home.state_db) as db:
        visible_to = await owner_sees(db)
        rows = await db.outbox.listed(states, limit)
        seen: dict[tuple[str | None, int | None], bool] = {}
        parts = []
        for row in rows:
            source = (row["session_id"], row["inbox_id"])
            if source not in seen:
                seen[source] = await _is_ours(db, visible_to, row)
            parts.append(_part(row, shown=seen[source]))
        return {"counts": await db.outbox.counts(), "parts": parts}


async def _is_ours(db: SessionDB, visible_to: Visibility, row: OutboxRow) -> bool:
    """Whether the owner may read what goes out: it is of a session they see, or answers a command of theirs."""
    if row["session_id"] is not None:
        return await db.resolve_session(row["session_id"], visible_to=visible_to) == [row["session_id"]]
    origin = await db.inbox.get(row["inbox_id"]) if row["inbox_id"] is not None else None
    return origin is not None and origin["person_id"] == OWNER


def _part(row: OutboxRow, *, shown: bool) -> dict[str, Any]:
    return {
        "id": row["id"],
        "state": row["state"],
        "account": f"{row['platform']}/{row['account']}",
        "chat": row["chat"],
        "thread": row["thread"],
        "name": row["place_name"],
        "kind": row["kind"],
        "part": row["part"],
        "parts": row["parts"],
        "created_at": row["created_at"],
        "next_at": row["next_at"] or None,
        "attempts": row["attempts"],
        "error": row["error"],
        "session_id": row["session_id"] if shown else None,
        "text": one_line(row["body"], SHOWN_CHARACTERS) if shown else None,
    }


def _lines(report: dict[str, Any], states: Sequence[str]) -> list[str]:
    now = time.time()
    lines = []
    for part in report["parts"]:
        where = f"{part['account']} {part['chat']}" + (f"/{part['thread']}" if part["thread"] else "")
        name = f" ({part['name']})" if part["name"] else ""
        number = f", part {part['part']} of {part['parts']}" if part["parts"] > 1 else ""
        tries = f", {plural(part['attempts'], 'attempt')}" if part["attempts"] else ""
        due = f", next {until(part['next_at'], now)}" if part["state"] == "waiting" and part["next_at"] else ""
        facts = f"{part['id']}  {part['state']}  {where}{name}, {age(part['created_at'], now)}{number}{tries}{due}"
        lines.append(harmless(facts).replace("\n", " "))
        lines.append(f"  {harmless(part['text']) if part['text'] is not None else _HIDDEN}")
        if part["error"]:
            lines.append(f"  {one_line(harmless(part['error']), 200)}")
    lines = lines or ["Nothing is " + " or ".join(states) + "."]
    more = sum(report["counts"].get(state, 0) for state in states) - len(report["parts"])
    if more > 0:
        lines.append(f"{plural(more, 'part')} more; --limit shows more of them.")
    return lines
