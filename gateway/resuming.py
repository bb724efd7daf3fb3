"""From what somebody typed to the conversation they mean, and the words for when that is not clear.

Contract: `meant` finds an id, a title, the beginning of either, or `latest`; always the live tip of the conversation.
What the asker may not see plays no part in it, not even in what is suggested. Quotes and brackets around the name are
left out. Reads only.
Limits: names like what was typed are looked for among the last `LOOKED_AT` conversations.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.phrases import age, entrance, one_line
from session_store.titles import title_key

if TYPE_CHECKING:
    from session_store import SessionDB, SessionListRow, Visibility

__all__ = ["LATEST", "Meant", "described", "meant", "stripped"]

LATEST = "latest"
LOOKED_AT = 200
_SUGGESTED = 5
_AROUND = dict(zip("\"'`“„«[(<「", "\"'`”“»])>」", strict=True))
_NAME = 60


@dataclass(frozen=True, slots=True)
class Meant:
    """found: exactly one means that it is clear. similar: what may have been meant, where nothing was found."""

    found: Sequence[SessionListRow]
    similar: Sequence[SessionListRow] = ()

    @property
    def one(self) -> SessionListRow | None:
        """The conversation that is meant, if that is clear."""
        return self.found[0] if len(self.found) == 1 else None

    def unclear(self, name: str, listed: Callable[[SessionListRow], str], plain: Callable[[str], str]) -> str:
        """The sentence for a name that is ambiguous or unknown, and the conversations that come close.

        listed: writes one of them. plain: makes what was typed harmless where it is shown.
        """
        shown = f"“{plain(one_line(name, _NAME))}”"
        if self.found:
            head, rows = f"{shown} may be any of these; give more of the title or the id:", self.found
        elif self.similar:
            head, rows = f"There is no session {shown}. Did you mean one of these?", self.similar
        else:
            return f"There is no session {shown}."
        return "\n".join([head, *(listed(row) for row in rows)])


def stripped(name: str) -> str:
    """A name without the quotes or brackets around it."""
    name = name.strip()
    while len(name) > 1 and _AROUND.get(name[0]) == name[-1]:
        name = name[1:-1].strip()
    return name


async def meant(db: SessionDB, name: str, visible_to: Visibility | None, *, here: str | None = None) -> Meant:
    """What `name` means to somebody who sees so much. here: the session one is in, which `latest` passes over."""
    name = stripped(name)
    if name.casefold() == LATEST:
        own = set(await db.conversation_of(here)) if here is not None else set()
        rows = await db.list_sessions(limit=2, visible_to=visible_to)
        return Meant([row for row in rows if row["id"] not in own][:1])
    found = await db.find_sessions(name, visible_to=visible_to)
    return Meant(found) if found else Meant((), await _similar(db, name, visible_to))


def described(row: SessionListRow, now: float) -> str:
    """Where and when a conversation was: `terminal, 2 hours ago`."""
    return f"{entrance(row['source'])}, {age(row['last_active'], now)}"


async def _similar(db: SessionDB, name: str, visible_to: Visibility | None) -> Sequence[SessionListRow]:
    if not name:
        return ()
    within = await db.list_sessions(limit=_SUGGESTED, visible_to=visible_to, search=name)
    if within:
        return within
    rows = await db.list_sessions(limit=LOOKED_AT, visible_to=visible_to)
    by_name: dict[str, SessionListRow] = {}
    for row in rows:
        by_name.setdefault(title_key(row["title"] or row["preview"]), row)
    near = difflib.get_close_matches(title_key(name), by_name, n=_SUGGESTED, cutoff=0.6)
    return [by_name[one] for one in near]
