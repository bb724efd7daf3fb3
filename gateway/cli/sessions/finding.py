"""`threadline sessions search`, also called `threadline search`: the words of the strict syntax, or a question."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gateway.cli.numbers import whole_number
from gateway.cli.options import AsJson, Everything, Source, sub_command
from gateway.cli.output import on_a_terminal, write, write_json
from gateway.cli.sessions.common import app, on_store
from gateway.phrases import age, harmless, one_line
from gateway.tools.finding import Finder, Found

if TYPE_CHECKING:
    from session_store import SearchHit, SessionDB, Visibility

__all__ = ["alone", "search"]

alone = sub_command()
"""The command under its short name."""

Sort = Literal["newest", "oldest"]

#: Without --role, results of tools are left out: they repeat what was said elsewhere.
_SAID = ["user", "assistant"]
_MATCH = re.compile(">>>(?!>)(.*?)<<<", re.DOTALL)
_BOLD = "\x1b[1m\\1\x1b[0m"


@alone.command()
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
    sort: Annotated[
        Sort | None, typer.Option(metavar="ORDER", help="newest or oldest first; else the best first.")
    ] = None,
    limit: Annotated[int, typer.Option(parser=whole_number(1, 200), metavar="NUMBER", help="At most so many.")] = 20,
    everything: Everything = False,
    as_json: AsJson = False,
) -> None:
    """Search everything that was said. If nothing has all the words, what comes closest is shown."""

    async def work(db: SessionDB, visible_to: Visibility | None) -> Found:
        sources = [source] if source is not None else None
        return await Finder(db, visible_to).find(" ".join(query), role or _SAID, sources)

    found = on_store(work, everything=everything)
    best = found.finds
    if sort is not None:
        best = sorted(best, key=lambda find: find.hit["id"], reverse=sort == "newest")
    best = best[:limit]
    if as_json:
        write_json([{**find.hit, "complete": find.complete} for find in best])
        return
    if found.relaxed:
        write("Nothing has all these words; these come closest:")
    elif best and best[0].hit["approximate"]:
        write("The search index has no answer; found by reading recent messages, also inside words:")
    _print([find.hit for find in best])
    if found.stopped:
        write("The search was stopped after two seconds; there may be more. Ask for fewer or rarer words.")
    elif not best:
        write("Nothing found.")


def _print(hits: list[SearchHit]) -> None:
    now = time.time()
    for hit in hits:
        title = one_line(hit["title"], 50) if hit["title"] else "(no title)"
        write(f"{title}  ({hit['source']}, {hit['role']}, {age(hit['timestamp'], now)}, {hit['session_id']})")
        snippet = harmless(one_line(hit["snippet"], 300))
        typer.echo("  " + (_MATCH.sub(_BOLD, snippet) if on_a_terminal() else snippet))
