"""Who sees what from where: nothing private reaches a room, nothing unknown sees anything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapters.base import ChatType, Place
from gateway.visibility import visibility
from session_store.models import Visibility

DIRECT = Place("telegram", "main", "dm", "42")
TERMINAL = Place("cli", "main", "dm", "owner")
WEB = Place("web", "main", "dm", "owner")
GROUP = Place("telegram", "main", "group", "-100")
TOPIC = Place("telegram", "main", "group", "-100", thread="17")
CHANNEL = Place("telegram", "main", "channel", "-200")
THREAD = Place("discord", "main", "thread", "900")

ids = st.text("abcdef0123456789", min_size=1, max_size=6)


def test_private_places_show_own_sessions_and_rooms_spoken_in() -> None:
    """Direct chat, terminal and web show the person's sessions and those of rooms they have spoken in."""
    for place in (DIRECT, TERMINAL, WEB):
        seen = visibility("owner", place, None, {"r1", "r2"}, shared=False)
        assert seen == Visibility(frozenset({"owner", "r1", "r2"}), within_room=None)


def test_own_session_in_a_group_shows_the_room_and_own_sessions_there() -> None:
    """A per-user session sees the room and the person, the latter only as far as it lives in the room."""
    seen = visibility("p1", GROUP, "r1", {"r1", "r2"}, shared=False)
    assert seen == Visibility(frozenset({"r1", "p1"}), within_room="r1")


def test_shared_session_shows_only_the_room() -> None:
    """Inside a shared session not even the owner sees anything but the room."""
    for place in (GROUP, TOPIC, CHANNEL, THREAD):
        seen = visibility("owner", place, "r1", {"r1", "r2"}, shared=True)
        assert seen == Visibility(frozenset({"r1"}), within_room="r1")


def test_unknown_person_sees_nothing_in_private() -> None:
    """Without a person a private place shows nothing, whatever rooms are named."""
    assert visibility(None, DIRECT, None, {"r1"}, shared=False).owners == frozenset()


def test_direct_chat_of_nobody_known_sees_only_itself() -> None:
    """Where everybody is allowed, a direct chat has a scope of its own and sees no other."""
    assert visibility(None, DIRECT, "r9", {"r1"}, shared=False) == Visibility(frozenset({"r9"}))


def test_group_without_a_known_room_shows_nothing() -> None:
    """A room that is not known is nobody's: not even the person's own sessions are shown there."""
    assert visibility("owner", GROUP, None, {"r1"}, shared=False).owners == frozenset()


@given(
    person=ids | st.none(),
    room=ids,
    spoken=st.frozensets(ids, max_size=4),
    chat_type=st.sampled_from(["group", "channel", "thread"]),
    shared=st.booleans(),
)
def test_a_room_never_shows_another_room_or_unbounded_persons(
    person: str | None, room: str, spoken: frozenset[str], chat_type: ChatType, *, shared: bool
) -> None:
    """In any shared place the view is bounded by the room, and no other room is among the owners."""
    seen = visibility(person, Place("telegram", "main", chat_type, "1"), room, spoken, shared=shared)
    assert seen.within_room == room
    assert seen.owners <= {room, person}
    assert room in seen.owners
    assert not shared or seen.owners == {room}
