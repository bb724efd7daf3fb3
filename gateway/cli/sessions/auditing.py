"""`threadline sessions show --audit`: who did what, where and when; nothing folded, cut or left out.

As text, one paragraph for each message, in the order in which they were stored; as JSON, everything that the store
knows. Messages that were taken back, changed or deleted are shown with what became of them, and turns with how they
ended if that was not with an answer.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gateway.cli.output import write, write_json
from gateway.phrases import clock, entrance, plural
from gateway.said import text_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from session_store import MessageRow, PlaceRef, SessionDB
    from session_store.audit import AuditPlace, AuditRow

__all__ = ["audit_json", "show_audit"]

_PAGE = 200
_HOW = {"born": "begun", "handoff": "handed over", "resume": "taken up", "link": "linked", "unlink": "unlinked"}
_STATES = {"running": "still runs", "interrupted": "was stopped", "given_up": "was given up"}


async def audit_json(db: SessionDB, session_id: str) -> None:
    """Everything as one JSON object."""
    segments = []
    for segment in await db.conversation_of(session_id):
        rows = [row async for row in _rows(db, segment)]
        segments.append({"session": await db.get_session(segment), "messages": rows})
    places = [
        {"how": row["how"], "place": _address(row["place"]), "person": row["person_id"], "at": row["at"]}
        for row in await db.place_history.of_session(session_id)
    ]
    write_json({"segments": segments, "places": places})


async def show_audit(db: SessionDB, session_id: str) -> None:
    """Everything as text."""
    for move in await db.place_history.of_session(session_id):
        who = await _name(db, move["person_id"])
        by = f", by {who}" if who else ""
        write(f"{clock(move['at'])}  {_HOW[move['how']]}: {_where(_address(move['place']))}{by}")
    for segment in await db.conversation_of(session_id):
        session = await db.get_session(segment)
        if session is None:
            continue
        end = f", ended {clock(session['ended_at'])} ({session['end_reason']})" if session["ended_at"] else ""
        title = f" “{session['title']}”" if session["title"] else ""
        owner = await _name(db, session["owner"]) or session["owner"] or "nobody"
        write(f"\nSession {segment}{title} of {owner}, begun {clock(session['started_at'])}{end}")
        turn, state = None, ""
        async for row in _rows(db, segment):
            if turn is not None and (row["turn"] is None or row["turn"]["id"] != turn):
                _write_end(turn, state)
            turn, state = (row["turn"]["id"], _ending(row)) if row["turn"] is not None else (None, "")
            write("\n" + "\n".join(_paragraph(row)))
        if turn is not None:
            _write_end(turn, state)


async def _rows(db: SessionDB, session_id: str) -> AsyncIterator[AuditRow]:
    last, more = 0, True
    while more:
        rows = await db.audit.page(session_id, last, _PAGE)
        for row in rows:
            yield row
        last, more = rows[-1]["message"]["id"] if rows else last, len(rows) == _PAGE


async def _name(db: SessionDB, person_id: str | None) -> str | None:
    person = await db.people.get(person_id) if person_id is not None else None
    return None if person is None else person["name"] or person["display"] or person["id"]


def _paragraph(row: AuditRow) -> Iterator[str]:
    """One message: what it is, its text, its files, what became of it."""
    message = row["message"]
    marks = [mark for mark in ("taken back" if message["rewound"] else "", _odd_end(message)) if mark]
    yield f"{clock(message['timestamp'])}  {_head(row)}" + (f" ({', '.join(marks)})" if marks else "")
    text = text_of(message)
    yield from (f"    {line}" for line in text.splitlines())
    for call in message["tool_calls"] or ():
        yield f"    calls {_call(call)}"
    for file in row["files"]:
        kept = f"kept as {file['hash']}" if file["hash"] else f"not kept: {file['problem'] or 'unknown'}"
        yield f"    file {file['name']} ({file['media_type'] or file['kind']}), {kept}"
    for change in row["changes"]:
        done = "deleted by its author" if change["kind"] == "delete" else "changed by its author"
        before = f"; before: {_plain(change['before'])}" if change["before"] else ""
        yield f"    {clock(change['changed_at'])}  {done}{before}"


def _head(row: AuditRow) -> str:
    message, place = row["message"], row["place"]
    where = f", {_where(place)}" if place is not None else ""
    if message["role"] == "user":
        identity = f" (id {row['user_id']})" if row["user_id"] else ""
        return f"{row['who'] or 'somebody unnamed'}{identity} said{where}"
    if message["role"] == "tool":
        return f"{message['tool_name'] or 'a tool'} returned for {message['tool_call_id'] or 'an unknown call'}"
    if message["role"] == "assistant":
        if message["tool_calls"]:
            return "the agent called tools" + (f" for {row['who']}{where}" if row["who"] else where)
        return "the agent answered" + (f" {row['who']}{where}" if row["who"] else where)
    return message["role"]


def _odd_end(message: MessageRow) -> str:
    return {"stopped": "stopped", "error": "could not answer"}.get(message["finish_reason"] or "", "")


def _ending(row: AuditRow) -> str:
    """How the turn of a message ended, '' when it simply did."""
    turn = row["turn"]
    if turn is None:
        return ""
    parts = [_STATES[turn["state"]]] if turn["state"] in _STATES else []
    if turn["reason"]:
        parts.append(turn["reason"])
    if turn["attempt"] > 1:
        parts.append(f"begun {plural(turn['attempt'], 'time')}")
    return ", ".join(parts)


def _write_end(turn_id: str, ending: str) -> None:
    if ending:
        write(f"\n    Turn {turn_id}: {ending}.")


def _call(call: Any) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return _plain(call)
    return f"{function.get('name') or '?'} as {call.get('id') or '?'} with {_plain(function.get('arguments'))}"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _address(place: PlaceRef) -> AuditPlace:
    return {
        "platform": place.platform,
        "account": place.account,
        "chat_type": place.chat_type,
        "chat": place.chat,
        "thread": place.thread,
        "name": place.name,
    }


def _where(place: AuditPlace) -> str:
    """A place in words, with everything that identifies it."""
    if place["platform"] in {"cli", "web"}:
        return f"in the {entrance(place['platform'])}"
    account = "" if place["account"] == "main" else f" ({place['account']})"
    name = f" “{place['name']}”" if place["name"] else ""
    thread = f", thread {place['thread']}" if place["thread"] else ""
    kind = "direct chat" if place["chat_type"] == "dm" else place["chat_type"]
    return f"on {entrance(place['platform'])}{account}, {kind} {place['chat']}{name}{thread}"
