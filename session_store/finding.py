"""Which session a person means by what they typed.

Contract: in this order, and what comes first wins: the exact id (of any segment); a whole title, as `naming` finds it,
in each name space that the asker may see; the beginning of ids; the beginning of titles. Letter case and Unicode form
of titles make no difference, nor do the dots at the end of one that a list has cut. What the asker may not see plays no
part. More than one answer means that the text is ambiguous; nothing is ever guessed.
Failure: nothing found is an empty list. Limits: at most `MOST_MATCHES`, last active first.
"""

from __future__ import annotations

from collections.abc import Iterable

from session_store.lineage import live_tip
from session_store.listing import describe
from session_store.models import PlaceRef, Visibility
from session_store.naming import resolve_title
from session_store.places import find_place
from session_store.rows import SessionListRow
from session_store.titles import one_line, title_key
from session_store.tx import Rx
from session_store.visible import is_visible, only_visible, visible_params

__all__ = ["MOST_MATCHES", "find", "last_used_at", "resolve", "visible_tip"]

MOST_MATCHES = 10

# Sessions by the beginning of their id, last active first. ?1 and ?2 visibility, ?3 what was typed.
_BY_ID = """
SELECT s.id FROM sessions s
WHERE s.id >= ?3 AND s.id < ?3 || CHAR(1114111) AND /*visible*/
ORDER BY COALESCE(s.last_active, s.started_at) DESC, s.rowid DESC LIMIT 100
"""

# The same by the beginning of their title; ?3 its key.
_BY_TITLE = """
SELECT s.id FROM sessions s
WHERE s.title_key >= ?3 AND s.title_key < ?3 || CHAR(1114111) AND /*visible*/
ORDER BY COALESCE(s.last_active, s.started_at) DESC, s.rowid DESC LIMIT 100
"""

# The session last worked from the place ?3, by its newest turn, or last brought there.
_USED_AT = """
SELECT id FROM (
    SELECT id, at FROM (
        SELECT s.id, t.started_at AS at FROM turns t JOIN sessions s ON s.id = t.session_id
        WHERE t.place_id = ?3 AND s.archived = 0 AND /*visible*/
        ORDER BY t.rowid DESC LIMIT 1)
    UNION ALL
    SELECT id, at FROM (
        SELECT s.id, h.at FROM place_history h JOIN sessions s ON s.id = h.root_id
        WHERE h.place_id = ?3 AND h.how = 'handoff' AND s.archived = 0 AND /*visible*/
        ORDER BY h.id DESC LIMIT 1))
ORDER BY at DESC LIMIT 1
"""
_ACTIVE = "SELECT COALESCE(last_active, started_at) FROM sessions WHERE id = ?"


def resolve(rx: Rx, ref: str, visible_to: Visibility | None) -> list[str]:
    """Return the ids that `ref` may mean; see the module. An exact id is returned as it is, all else as tips."""
    ref = ref.strip()
    if not ref:
        return []
    if is_visible(rx, ref, visible_to):
        return [ref]
    return _by_whole_title(rx, ref, visible_to) or _tips(rx, _BY_ID, ref, visible_to) or _by_title(rx, ref, visible_to)


def find(rx: Rx, ref: str, visible_to: Visibility | None) -> list[SessionListRow]:
    """Return the conversations that `ref` may mean, each as a list shows it, by its live tip."""
    tips = (visible_tip(rx, session_id, visible_to) for session_id in resolve(rx, ref, visible_to))
    return describe(rx, list(dict.fromkeys(tip for tip in tips if tip is not None)))


def visible_tip(rx: Rx, session_id: str, visible_to: Visibility | None) -> str | None:
    """Return the live tip of a session's conversation, None if the asker may not see both (or there is none)."""
    if not is_visible(rx, session_id, visible_to):
        return None
    tip = live_tip(rx, session_id)
    return tip if is_visible(rx, tip, visible_to) else None


def last_used_at(rx: Rx, place: PlaceRef, visible_to: Visibility | None) -> SessionListRow | None:
    """Return the conversation in which somebody last spoke at a place, None if there is none."""
    used = rx.value(only_visible(_USED_AT, visible_to), (*visible_params(visible_to), find_place(rx, place)))
    tip = None if used is None else visible_tip(rx, used, visible_to)
    return None if tip is None else describe(rx, [tip])[0]


def _by_whole_title(rx: Rx, ref: str, visible_to: Visibility | None) -> list[str]:
    if visible_to is None:
        found = resolve_title(rx, ref, None)
        return [] if found is None else [found]
    spaces = (Visibility(frozenset({owner}), visible_to.within_room) for owner in sorted(visible_to.owners - {""}))
    found_ids = (resolve_title(rx, ref, space) for space in spaces)
    return _latest(rx, {one for one in found_ids if one is not None})


def _by_title(rx: Rx, ref: str, visible_to: Visibility | None) -> list[str]:
    key = title_key(one_line(ref)).rstrip("….").rstrip()
    return _tips(rx, _BY_TITLE, key, visible_to) if key else []


def _tips(rx: Rx, query: str, beginning: str, visible_to: Visibility | None) -> list[str]:
    matches = rx.all(only_visible(query, visible_to), (*visible_params(visible_to), beginning))
    tips = dict.fromkeys(live_tip(rx, row["id"]) for row in matches)
    return [tip for tip in tips if is_visible(rx, tip, visible_to)][:MOST_MATCHES]


def _latest(rx: Rx, session_ids: Iterable[str]) -> list[str]:
    return sorted(session_ids, key=lambda one: float(rx.value(_ACTIVE, (one,)) or 0.0), reverse=True)[:MOST_MATCHES]
