"""`threadline inbox list`: what came in and could not be worked or read, and how much waits.

Everything here reads the store alone; no gateway need run.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.numbers import whole_number
from gateway.cli.options import sub_command
from gateway.cli.output import write, write_json
from gateway.cli.running import async_run, our_home
from gateway.phrases import age, harmless, one_line
from session_store import SessionDB

if TYPE_CHECKING:
    from config import Home

__all__ = ["app"]

SHOWN_CHARACTERS = 200

app = sub_command("See what came in and was set aside.")


@app.callback()
def inbox() -> None:
    """See what came in and was set aside."""


@app.command("list")
def list_set_aside(
    *,
    limit: Annotated[
        int, typer.Option(parser=whole_number(1, 500), metavar="NUMBER", help="At most so many of each kind.")
    ] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with the raw form of each event.")] = False,
) -> None:
    """Show messages that could not be worked and events that could not be read, newest first, and how much waits."""
    report = async_run(_report(our_home(), limit))
    if as_json:
        write_json(report)
    else:
        write("\n".join(_lines(report)))


async def _report(home: Home, limit: int) -> dict[str, Any]:
    async with SessionDB(home.state_db) as db:
        counts = await db.inbox.counts()
        return {
            "counts": counts | {"unreadable": await db.unreadable.count()},
            "set_aside": [
                {
                    "id": row["id"],
                    "account": f"{row['platform']}/{row['account']}",
                    "chat": row["chat"],
                    "kind": row["kind"],
                    "received_at": row["received_at"],
                    "reason": row["error"],
                    "text": row["payload"].get("text"),
                }
                for row in await db.inbox.set_aside_rows(limit)
            ],
            "unreadable": [
                {
                    "id": event["id"],
                    "account": f"{event['platform']}/{event['account']}",
                    "first_at": event["first_at"],
                    "last_at": event["last_at"],
                    "times": event["times"],
                    "reason": event["reason"],
                    "raw": event["raw"],
                }
                for event in await db.unreadable.newest(limit)
            ],
        }


def _lines(report: dict[str, Any]) -> list[str]:
    counts = report["counts"]
    now = time.time()
    lines = [", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items())]
    for row in report["set_aside"]:
        said = one_line(harmless(str(row["text"] or "")), SHOWN_CHARACTERS)
        lines.append(f"set aside {row['id']}  {row['account']} {row['chat']}, {age(row['received_at'], now)}: {said}")
        lines.append(f"  {one_line(harmless(str(row['reason'])), SHOWN_CHARACTERS)}")
    for event in report["unreadable"]:
        times = f", {event['times']} times" if event["times"] > 1 else ""
        lines.append(f"unreadable {event['id']}  {event['account']}, {age(event['last_at'], now)}{times}")
        lines.append(f"  {one_line(harmless(event['reason']), SHOWN_CHARACTERS)}")
        lines.append(f"  {one_line(harmless(event['raw']), SHOWN_CHARACTERS)}")
    return lines
