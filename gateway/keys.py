"""Session keys: which session a message in a place belongs to, as one deterministic text.

Contract: `agent:<account>:<platform>:<chat_type>:<chat>[:thread=<id>][:user=<id>]`. This is the only function that
makes keys; messages, commands, buttons and handoffs all use it. It is pure and injective: different places or users
that should have different sessions never get the same key. Ids are opaque and case-sensitive; they are never trimmed,
folded or parsed.

Encoding: `:`, `/`, `%`, `=`, white space, control characters and lone surrogates become `%XX` of their UTF-8 bytes;
everything else stays as it is. The set is written out here and does not follow the Unicode version of the interpreter,
because keys are stored and must stay the same for ever. A Slack chat is `<team>/<channel>`: that slash stays.

Limits: a terminal has no key, its sessions are chosen by id.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from adapters.base import Place

__all__ = ["chat_key", "session_key", "shared"]

_ENCODED: Final = re.compile(
    "[:/%=\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ud800-\udfff]",
)


def session_key(
    place: Place,
    user_id: str | None,
    *,
    group_sessions_per_user: bool,
    thread_sessions_per_user: bool,
) -> str:
    """Return the key of the session that a message of `user_id` in `place` belongs to.

    user_id None or '' (an anonymous sender, a channel post) means the room's shared session.
    """
    parts = ["agent", _encode(place.account), _encode(place.platform), _encode(place.chat_type), _chat(place)]
    if place.thread:
        parts.append(f"thread={_encode(place.thread)}")
    if user_id and _per_user(place, groups=group_sessions_per_user, threads=thread_sessions_per_user):
        parts.append(f"user={_encode(user_id)}")
    return ":".join(parts)


def chat_key(place: Place) -> str:
    """Return what the keys of all sessions of this place's chat begin with, whatever their thread and user."""
    whole = replace(place, thread="")
    return session_key(whole, None, group_sessions_per_user=False, thread_sessions_per_user=False)


def shared(
    place: Place,
    user_id: str | None,
    *,
    group_sessions_per_user: bool,
    thread_sessions_per_user: bool,
) -> bool:
    """Whether that session is a room's shared one: it belongs to the room, and everybody there works in it."""
    if place.private:
        return False
    return not (user_id and _per_user(place, groups=group_sessions_per_user, threads=thread_sessions_per_user))


def _per_user(place: Place, *, groups: bool, threads: bool) -> bool:
    """Whether sessions of this place are kept apart by user."""
    if place.chat_type == "group" and not place.thread:
        return groups
    return place.chat_type in {"group", "thread"} and threads


def _chat(place: Place) -> str:
    if place.platform == "slack":
        team, slash, channel = place.chat.partition("/")
        return f"{_encode(team)}{slash}{_encode(channel)}"
    return _encode(place.chat)


def _encode(text: str) -> str:
    return _ENCODED.sub(lambda found: _percent(found.group()), text)


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
