"""What models cost, in words: for commands, lists and totals alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.phrases import inert, one_line, plural

if TYPE_CHECKING:
    from session_store import UsageTotals

__all__ = ["by_model", "spent"]


def spent(totals: UsageTotals) -> str:
    """All of it in one sentence, as `4 calls of a model, 5,670 tokens: 5,300 read, 370 written`."""
    if not totals["calls"]:
        return "No model has been called."
    cached = totals["cache_read_tokens"]
    read = totals["input_tokens"] + cached + totals["cache_write_tokens"]
    of_cache = f" ({cached:,} of them from the cache)" if cached else ""
    of_reasoning = f" ({totals['reasoning_tokens']:,} of them reasoning)" if totals["reasoning_tokens"] else ""
    calls = f"{totals['calls']:,} calls" if totals["calls"] > 1 else "1 call"
    return (
        f"{calls} of a model, {totals['total_tokens']:,} tokens: {read:,} read{of_cache}, "
        f"{totals['output_tokens']:,} written{of_reasoning}."
    )


def by_model(totals: UsageTotals) -> list[str]:
    """A line for each model, where there were several."""
    if len(totals["models"]) < 2:  # noqa: PLR2004 - one model is the total itself
        return []
    return [
        f"{inert(one_line(row['model'] or 'unnamed', 80))}: {plural(row['calls'], 'call')}, "
        f"{row['read_tokens']:,} read, {row['output_tokens']:,} written."
        for row in totals["models"]
    ]
