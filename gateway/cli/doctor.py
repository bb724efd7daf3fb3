"""`threadline doctor`: looks the home over and says what to do; `--dry-run-migration` tells of an older file.

Exit codes: 0 nothing is broken, 1 something is, 2 wrong usage. Changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from config import Home
from gateway.cli.options import AsJson, sub_command
from gateway.cli.output import write, write_json
from gateway.cli.running import async_run
from gateway.doctor import Report, look_over
from gateway.phrases import amount, plural

if TYPE_CHECKING:
    from session_store.history import MigrationPlan

__all__ = ["app"]

app = sub_command()

_MARKS = {"ok": "ok", "warning": "look", "failed": "FAILED"}


@app.command()
def doctor(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run-migration", help="Say what taking over a file of another tool would do.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look over the program, the home, the settings, the store and what waits in it. Changes nothing."""
    report = async_run(look_over(Home()))
    if as_json:
        write_json(report.as_data())
    else:
        write("\n".join(_plan_lines(report) if dry_run else _lines(report)))
    if report.failed:
        raise typer.Exit(1)


def _plan_lines(report: Report) -> list[str]:
    if report.migration is not None:
        return _steps(report.migration)
    refused = [finding.words for finding in report.findings if finding.about == "store" and finding.state == "failed"]
    return refused or ["Nothing would be migrated."]


def _lines(report: Report) -> list[str]:
    width = max(len(finding.about) for finding in report.findings)
    return [f"{_MARKS[finding.state]:<6}  {finding.about:<{width}}  {finding.words}" for finding in report.findings]


def _steps(plan: MigrationPlan) -> list[str]:
    tables = " and ".join(plan.search) or "none"
    holds = f"{plural(plan.sessions, 'session')}, {plural(plan.messages, 'message')}, {amount(plan.size)}"
    return [
        f"{plan.path}: schema version {plan.version} of another tool, {holds}.",
        "When it is first opened:",
        f"  1. a whole copy is put into {plan.backup}",
        f"  2. its search tables go ({tables}); their triggers go with them",
        f"  3. {plural(len(plan.columns), 'column')} and the tables of Threadline are added",
        "  4. owner, conversation, kind and last use of each session are filled in; no value that is there changes",
        f"  5. a new search index is made of {plural(plan.messages, 'message')}",
        "All but the copy is one transaction. Nothing was changed now.",
    ]
