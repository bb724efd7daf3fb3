"""`threadline sessions search`: strict syntax, newest first."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.numbers import whole_number
from gateway.cli.options import AsJson, Everything, Source
from gateway.cli.output import on_a_terminal, write, write_json
from gateway.cli.sessions.common import app, on_store
from gateway.phrases import age, harmless, one_line

if TYPE_CHECKING:
    from session_store import SearchHit

__all__ = ["search"]

#: Without --role, results of tools are left out: they repeat what was said elsewhere.
_SAID = ["user", "assistant"]
_MATCH = re.compile(">>>(?!>)(.*?)<<<", re.DOTALL)
_BOLD = "\x1b[1m\\1\x1b[0m"


@app.command("search")
def search(  # noqa: PLR0913 - one parameter per option
    query: Annotated[
        list[str],
        typer.Argument(metavar="WORDS...", help='What to look for; AND, OR, NOT, "a phrase" and prefix* work.'),
    ],
    *,
    source: Source = None,
    role: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="Only what these said: user, assistant, tool. May be repeated."),
    ] = None,
    limit: Annotated[int, typer.Option(parser=whole_number(1, 200), metavar="NUMBER", help="At most so many.")] = 20,
    everything: Everything = False,
    as_json: AsJson = False,
) -> None:
    """Search everything that was said, newest first. Every word must be there unless OR or NOT say otherwise."""
    sources = [source] if source is not None else None
    hits = on_store(
        lambda db, visible_to: db.search_messages(
            " ".join(query), sources, role_filter=role or _SAID, limit=limit, visible_to=visible_to
        ),
        everything=everything,
    )
    if as_json:
        write_json(hits)
    elif hits:
        _print(hits)
    else:
        write("Nothing found.")


def _print(hits: list[SearchHit]) -> None:
    now = time.time()
    if hits[0]["approximate"]:
        write("The search index has no answer; found by reading recent messages, also inside words:")
    for hit in hits:
        title = one_line(hit["title"], 50) if hit["title"] else "(no title)"
        write(f"{title}  ({hit['source']}, {hit['role']}, {age(hit['timestamp'], now)}, {hit['session_id']})")
        snippet = harmless(one_line(hit["snippet"], 300))
        typer.echo("  " + (_MATCH.sub(_BOLD, snippet) if on_a_terminal() else snippet))
