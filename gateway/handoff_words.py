"""What people read of a conversation that moves: at its new place, at the places it leaves, and who waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.owner import OWNER
from gateway.phrases import entrance, inert, one_line
from gateway.places import LOCAL_PLATFORMS
from session_store import PlaceRef

if TYPE_CHECKING:
    from session_store import HandoffRow, HistoryRow, RouteRow, SessionRow

__all__ = ["farewell", "moved", "outcome", "place_words", "route_place", "step_words", "thread_title", "welcome"]

TITLE_CHARACTERS = 80


def place_words(place: PlaceRef) -> str:
    """A place in words (Markdown): `a thread of a direct chat on Telegram (“Deploy”)`, `an e-mail thread`."""
    if place.platform in LOCAL_PLATFORMS:
        return "the terminal" if place.platform == "cli" else "the web chat"
    name = f" (“{inert(one_line(place.name, 60))}”)" if place.name else ""
    if place.platform == "email":
        return f"an e-mail thread{name}" if place.thread else f"e-mail{name}"
    kind = "a direct chat" if place.chat_type == "dm" else f"a {place.chat_type}"
    if place.thread and place.chat_type != "thread":
        kind = f"a thread of {kind}"
    return f"{kind} on {entrance(place.platform)}{name}"


def step_words(step: HistoryRow) -> str:
    """One step of a conversation's way: `born in the terminal`, `linked with a channel on Slack`."""
    how = {"born": "born in", "link": "linked with", "unlink": "unlinked from", "resume": "taken up in"}
    return f"{how.get(step['how'], 'handed to')} {place_words(step['place'])}"


def route_place(route: RouteRow) -> PlaceRef:
    """The place that a route leads from."""
    return PlaceRef(route["platform"], route["account"], route["chat_type"], route["chat"], route["thread"])


def thread_title(session: SessionRow, first_words: str) -> str:
    """The name of the thread that is opened for a conversation."""
    return one_line(session["title"] or first_words or "Conversation", TITLE_CHARACTERS)


def welcome(handoff: HandoffRow, session: SessionRow, summary: str, *, stays_with_room: bool, shared: bool) -> str:
    """The confirmation at the new place, with what one must know to go on."""
    name = f"“{inert(one_line(session['title'], 100))}”" if session["title"] else "The conversation"
    link = handoff["kind"] == "link"
    came = "" if link else f" It began in {_born(session)}."
    lines = [f"**{name} {'is linked with this place' if link else 'goes on here'}.**{came}", "", summary.strip(), ""]
    if handoff["note"]:
        lines.append(handoff["note"])
    if shared:
        lines.append("It is this room's conversation now: everybody here can read and continue it.")
    elif stays_with_room:
        lines.append("It stays its room's: what is said here can be read there.")
    # The terminal is the owner's.
    back = " `/unlink` ends it." if link else ""
    if not link and handoff["person_id"] == OWNER:
        back = " `/handoff cli` takes it back to the terminal."
    lines.append(f"Just write to go on.{back}")
    return "\n".join(lines)


def _born(session: SessionRow) -> str:
    return {"cli": "the terminal", "web": "the web chat"}.get(session["source"], entrance(session["source"]))


def farewell(handoff: HandoffRow, place: PlaceRef, *, shared: bool) -> str:
    """What the other places of the conversation are told; a shared one is not told where it goes."""
    where = "another place" if shared else place_words(place)
    if handoff["kind"] == "link":
        return (
            f"This conversation lives in {where} as well now: what is said in one place appears in the other. "
            "`/unlink` takes it away from here."
        )
    back = "" if shared else " `/resume` lists what you can take up here again."
    return f"This conversation goes on in {where}. What is said here from now on begins a new session.{back}"


def moved(handoff: HandoffRow, place: PlaceRef) -> str:
    """What stands in the transcript where the conversation moved."""
    return f"This conversation {'is linked with' if handoff['kind'] == 'link' else 'goes on in'} {place_words(place)}."


def outcome(handoff: HandoffRow) -> str:
    """How a handoff ended, for who asked (Markdown)."""
    link, place = handoff["kind"] == "link", handoff["place"] or handoff["target"]
    if handoff["state"] == "completed":
        done = "is linked with" if link else "goes on in"
        note = f" {handoff['note']}" if handoff["note"] else ""
        return f"The conversation {done} {place_words(place)}.{note}"
    what = "link" if link else "handoff"
    if handoff["state"] == "cancelled":
        return f"The {what} was cancelled; the conversation is where it was."
    return f"The {what} came to nothing: {handoff['error']} The conversation is where it was."
