"""Which session a terminal takes up, from what stands behind -c and -r; and the words when that is not clear."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gateway.cli.running import fail
from gateway.phrases import harmless, one_line
from gateway.resuming import LATEST, described, meant

if TYPE_CHECKING:
    from gateway.cli.options import Wanted
    from gateway.resuming import Meant
    from gateway.terminal import Terminal
    from session_store import SessionListRow

__all__ = ["chosen_session", "unclear"]


async def chosen_session(terminal: Terminal, wanted: Wanted) -> str | None:
    """Take up the live tip that is wanted; returns it, or None if nothing was used in a terminal yet.

    Ends the command if it is not clear which one that is.
    """
    if wanted.name is None:
        latest = await terminal.latest()
        if latest is not None:
            await terminal.take_up(latest)
        return latest
    result = await meant(terminal.db, wanted.name, terminal.visible_to)
    if result.one is not None:
        await terminal.take_up(result.one["id"])
        return result.one["id"]
    if wanted.name.casefold() == LATEST:
        raise fail("There is no session yet. `threadline` alone begins one.")
    raise fail(unclear(result, wanted.name))


def unclear(result: Meant, name: str) -> str:
    """The sentence for a name that is ambiguous or unknown, with the sessions that come close, one a line."""
    now = time.time()

    def listed(row: SessionListRow) -> str:
        title = one_line(row["title"] or row["preview"] or "(empty)", 60)
        return harmless(f"  {row['id']}  {title}  ({described(row, now)})")

    sentence = result.unclear(name, listed, harmless)
    return sentence if result.found or result.similar else f"{sentence} `threadline sessions list` shows them."
