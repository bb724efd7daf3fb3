"""`threadline insights`: how it was used of late: how much, which models and tools, where, when.

What the owner may see is counted, and nothing else. Hours and days are those of this machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.numbers import whole_number
from gateway.cli.options import AsJson, Source, sub_command
from gateway.cli.output import write, write_json
from gateway.cli.sessions.common import on_store
from gateway.phrases import entrance, one_line, plural
from gateway.rhythm import WEEKDAYS, rhythm

if TYPE_CHECKING:
    from gateway.rhythm import Rhythm
    from session_store import Insights, ModelInsight, SourceInsight

__all__ = ["app", "insights"]

app = sub_command()

_DAY = 86_400.0
_SHOWN = 10
_HOURS_SHOWN = 5
_BAR = 20
_NAME = 40
_FEW_MINUTES = 100


@app.command("insights")
def insights(
    *,
    days: Annotated[int, typer.Option(parser=whole_number(1, 36_500), metavar="NUMBER", help="Of so many days.")] = 30,
    source: Source = None,
    as_json: AsJson = False,
) -> None:
    """Show how it was used: conversations, models and their tokens, entrances, tools, busy hours."""
    since = time.time() - days * _DAY
    told = on_store(lambda db, visible_to: db.usage.insights(since, source, visible_to=visible_to))
    beats = rhythm(told["moments"])
    if as_json:
        more = {"hours": beats.hours, "weekdays": beats.weekdays, "days": beats.days, "streak": beats.streak}
        write_json({name: value for name, value in told.items() if name != "moments"} | more)
    elif told["messages"] or told["model_calls"]:
        write("\n".join(_lines(told, beats, days)))
    else:
        write(f"Nothing was said in the last {plural(days, 'day')}.")


def _lines(told: Insights, beats: Rhythm, days: int) -> Iterator[str]:
    yield f"The last {plural(days, 'day')}"
    yield (
        f"  {plural(told['conversations'], 'conversation')}, {plural(told['messages'], 'message')} "
        f"({told['user_messages']:,} by people), {plural(told['tool_calls'], 'tool call')}"
    )
    yield (
        f"  {plural(beats.days, 'day')} with messages, {beats.streak} in a row at most, "
        f"{_talk(told['active_seconds'])} of talk"
    )
    if told["model_calls"]:
        yield f"  {_tokens(told)}"
    yield from _table("Models", [(row["model"] or "unnamed", _of_model(row)) for row in told["models"]])
    yield from _table("Entrances", [(entrance(row["source"]), _of_source(row)) for row in told["sources"]])
    calls = max(told["tool_calls"], 1)
    tools = [(row["name"], f"{plural(row['calls'], 'call')} ({row['calls'] / calls:.0%})") for row in told["tools"]]
    yield from _table("Tools", tools)
    busy = sorted(range(24), key=lambda hour: (-beats.hours[hour], hour))[:_HOURS_SHOWN]
    yield from _bars("Busy hours", [(f"{hour:02}:00", beats.hours[hour]) for hour in busy])
    yield from _bars("Weekdays", list(zip(WEEKDAYS, beats.weekdays, strict=True)))
    longest = [(row["id"], f"{plural(row['messages'], 'message')}  {row['title'] or ''}") for row in told["notable"]]
    yield from _table("Longest", longest)


def _talk(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return plural(minutes, "minute") if minutes < _FEW_MINUTES else f"{seconds / 3600:,.1f} hours"


def _of_model(row: ModelInsight) -> str:
    return f"{plural(row['calls'], 'call')}, {row['read_tokens']:,} read, {row['output_tokens']:,} written"


def _of_source(row: SourceInsight) -> str:
    return f"{plural(row['conversations'], 'conversation')}, {plural(row['messages'], 'message')}"


def _tokens(told: Insights) -> str:
    cached = f" ({told['cache_read_tokens']:,} of them from the cache)" if told["cache_read_tokens"] else ""
    thought = f" ({told['reasoning_tokens']:,} of them reasoning)" if told["reasoning_tokens"] else ""
    return (
        f"{plural(told['model_calls'], 'call')} of a model: {told['read_tokens']:,} tokens read{cached}, "
        f"{told['output_tokens']:,} written{thought}"
    )


def _table(heading: str, rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield heading
    names = [one_line(name, _NAME) for name, _ in rows[:_SHOWN]]
    width = max(map(len, names))
    for name, (_, told) in zip(names, rows, strict=False):
        yield f"  {name:<{width}}  {told}".rstrip()
    if len(rows) > _SHOWN:
        yield f"  ... {len(rows) - _SHOWN} more"


def _bars(heading: str, rows: Sequence[tuple[str, int]]) -> Iterator[str]:
    most = max(count for _, count in rows)
    shown = [(name, f"{'#' * -(-count * _BAR // most):<{_BAR}}  {count}") for name, count in rows if count]
    return _table(heading, shown)
