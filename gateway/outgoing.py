"""What goes out to the place that a turn came from: its answer, words about its end, words about a reset before it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from gateway.places import LOCAL_PLATFORMS, place_ref
from session_store import NewOutbox

if TYPE_CHECKING:
    from gateway.work import Work

__all__ = ["closed", "outgoing", "reset_notice"]

_RESET = {"daily": "a new day", "idle": "a long pause"}
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<rest>[^\n]*)\Z")


def outgoing(work: Work, kind: Literal["answer", "notice"], body: str, *, below: str = "") -> Sequence[NewOutbox]:
    """A word about a reset if there was one, then `body`; nothing where nothing is sent.

    below: what was said so far; where that is shown already, it stays, and `body` stands below it.
    """
    if work.place.platform in LOCAL_PLATFORMS:
        return ()
    answer = NewOutbox(
        place=place_ref(work.place),
        kind=kind,
        body=body,
        reply_to=None if work.place.private else work.reply_to,
        over_shown=f"{closed(below)}\n\n{body}" if below.strip() else body,
    )
    reset = reset_notice(work)
    return (answer,) if reset is None else (reset, answer)


def reset_notice(work: Work) -> NewOutbox | None:
    """The word that a turn began a new session because the former one was over, sent once and first."""
    words = _RESET.get(work.claim.reset_reason or "")
    if words is None or work.claim.fence is None:
        return None
    body = f"A new session begins ({words}). The former one is kept; `/search` finds what was said."
    return NewOutbox(place_ref(work.place), "notice", body, op_id=f"reset:{work.claim.fence.turn_id}")


def closed(markdown: str) -> str:
    """The beginning of a text, with its code block closed if it ends inside one."""
    fence = ""
    for line in markdown.split("\n"):
        match = _FENCE.match(line)
        if match is None:
            continue
        if not fence:
            fence = match["fence"] if match["fence"][0] == "~" or "`" not in match["rest"] else ""
        elif match["fence"].startswith(fence) and not match["rest"].strip():
            fence = ""
    return f"{markdown}\n{fence}" if fence else markdown
