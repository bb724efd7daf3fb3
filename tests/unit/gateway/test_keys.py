"""Session keys: the table of all places, and that different places never share a key."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.base import ChatType, Place
from gateway.keys import session_key, shared


class Row(NamedTuple):
    """One place of the table, and its key with each combination of the two settings."""

    place: Place
    default: str
    groups_shared: str
    threads_per_user: str


def unchanged(place: Place, key: str) -> Row:
    """A row whose key no setting changes."""
    return Row(place, key, key, key)


TABLE = {
    "telegram private chat": unchanged(Place("telegram", "main", "dm", "42"), "agent:main:telegram:dm:42"),
    "telegram private topic": unchanged(
        Place("telegram", "main", "dm", "42", thread="17"), "agent:main:telegram:dm:42:thread=17"
    ),
    "telegram group": Row(
        Place("telegram", "main", "group", "-1001"),
        "agent:main:telegram:group:-1001:user=7",
        "agent:main:telegram:group:-1001",
        "agent:main:telegram:group:-1001:user=7",
    ),
    "telegram forum topic": Row(
        Place("telegram", "main", "group", "-1001", thread="17"),
        "agent:main:telegram:group:-1001:thread=17",
        "agent:main:telegram:group:-1001:thread=17",
        "agent:main:telegram:group:-1001:thread=17:user=7",
    ),
    "telegram channel": unchanged(Place("telegram", "main", "channel", "-1002"), "agent:main:telegram:channel:-1002"),
    "discord direct chat": unchanged(Place("discord", "main", "dm", "500"), "agent:main:discord:dm:500"),
    "discord guild channel": Row(
        Place("discord", "main", "group", "600"),
        "agent:main:discord:group:600:user=7",
        "agent:main:discord:group:600",
        "agent:main:discord:group:600:user=7",
    ),
    "discord thread or forum post": Row(
        Place("discord", "main", "thread", "900"),
        "agent:main:discord:thread:900",
        "agent:main:discord:thread:900",
        "agent:main:discord:thread:900:user=7",
    ),
    "slack direct chat": unchanged(Place("slack", "main", "dm", "T1/D1"), "agent:main:slack:dm:T1/D1"),
    "slack assistant thread": unchanged(
        Place("slack", "main", "dm", "T1/D1", thread="171.5"), "agent:main:slack:dm:T1/D1:thread=171.5"
    ),
    "slack channel, answered in a thread": Row(
        Place("slack", "main", "group", "T1/C1", thread="171.5"),
        "agent:main:slack:group:T1/C1:thread=171.5",
        "agent:main:slack:group:T1/C1:thread=171.5",
        "agent:main:slack:group:T1/C1:thread=171.5:user=7",
    ),
    "slack channel, answered in the channel": Row(
        Place("slack", "main", "group", "T1/C1"),
        "agent:main:slack:group:T1/C1:user=7",
        "agent:main:slack:group:T1/C1",
        "agent:main:slack:group:T1/C1:user=7",
    ),
    "web": unchanged(Place("web", "main", "dm", "owner"), "agent:main:web:dm:owner"),
    "second account": unchanged(Place("telegram", "work", "dm", "42"), "agent:work:telegram:dm:42"),
}


def key(place: Place, user: str | None, *, groups: bool = True, threads: bool = False) -> str:
    """Key with the default settings unless told otherwise."""
    return session_key(place, user, group_sessions_per_user=groups, thread_sessions_per_user=threads)


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE.keys())
def test_every_place_of_the_table_has_its_key(row: Row) -> None:
    """Golden keys: they are stored, so they may never change."""
    assert key(row.place, "7") == row.default
    assert key(row.place, "7", groups=False) == row.groups_shared
    assert key(row.place, "7", threads=True) == row.threads_per_user


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE.keys())
@pytest.mark.parametrize("nobody", [None, ""])
def test_without_a_user_the_session_is_the_rooms(row: Row, nobody: str | None) -> None:
    """An anonymous sender speaks in the room's shared session, under any settings."""
    assert ":user=" not in key(row.place, nobody, threads=True)
    assert shared(row.place, nobody, group_sessions_per_user=True, thread_sessions_per_user=True) is (
        not row.place.private
    )


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE.keys())
@pytest.mark.parametrize(("groups", "threads"), [(True, False), (False, False), (True, True), (False, True)])
def test_shared_says_the_same_as_the_key(row: Row, *, groups: bool, threads: bool) -> None:
    """A session outside private places is shared exactly when its key names no user."""
    named = ":user=" in key(row.place, "7", groups=groups, threads=threads)
    is_shared = shared(row.place, "7", group_sessions_per_user=groups, thread_sessions_per_user=threads)
    assert is_shared is (not row.place.private and not named)


def test_both_forms_of_general_meet_and_topics_stay_apart() -> None:
    """General has one key however it was spoken in; a topic, a user of the same number and a private topic differ."""
    general = Place("telegram", "main", "group", "-1001")
    topic = Place("telegram", "main", "group", "-1001", thread="17")
    private_topic = Place("telegram", "main", "dm", "7", thread="17")
    assert key(general, "7") == key(Place("telegram", "main", "group", "-1001", name="Ops"), "7")
    assert len({key(general, "7"), key(general, "17"), key(topic, "7"), key(private_topic, "7")}) == 4


def test_names_are_no_part_of_the_key() -> None:
    """A renamed chat keeps its session."""
    assert key(Place("slack", "main", "group", "T1/C1", name="ops"), "U") == key(
        Place("slack", "main", "group", "T1/C1", name="operations"), "U"
    )


def test_ids_are_case_sensitive() -> None:
    """Ids that differ only in case are different people and chats."""
    assert key(Place("slack", "main", "dm", "T1/dA"), None) != key(Place("slack", "main", "dm", "T1/Da"), None)
    assert key(Place("slack", "main", "group", "T1/C1"), "Ua") != key(Place("slack", "main", "group", "T1/C1"), "uA")


def test_what_could_be_mistaken_is_encoded() -> None:
    """Separators, white space, control characters and lone surrogates are percent-encoded as UTF-8, in capitals."""
    place = Place("matrix", "a:b", "group", "!r/oom:x y", thread="a=b%\n\u3000\u0085\udc80")
    assert key(place, None) == ("agent:a%3Ab:matrix:group:!r%2Foom%3Ax%20y:thread=a%3Db%25%0A%E3%80%80%C2%85%ED%B2%80")


def test_other_characters_stay_readable() -> None:
    """Letters of any script and ordinary punctuation are kept as they are."""
    assert key(Place("web", "main", "dm", "анна@пример-李.x_y~z"), None) == "agent:main:web:dm:анна@пример-李.x_y~z"


def test_a_slash_stays_only_between_slack_team_and_channel() -> None:
    """The slash of a Slack chat separates two encoded ids; a further one, and one elsewhere, is encoded."""
    assert key(Place("slack", "main", "dm", "T:1/D/1"), None) == "agent:main:slack:dm:T%3A1/D%2F1"
    assert key(Place("telegram", "main", "dm", "T1/D1"), None) == "agent:main:telegram:dm:T1%2FD1"


odd_text = st.text(st.sampled_from("aA1:/%=23Ff \n\x00é李\ud800"), max_size=5)
places = st.builds(
    Place,
    platform=st.sampled_from(["telegram", "slack", "discord", "sla", "telegram:dm"]),
    account=st.sampled_from(["main", "main:telegram", "a", ""]),
    chat_type=st.sampled_from(["dm", "group", "channel", "thread"]),
    chat=odd_text,
    thread=odd_text,
)


@given(first=places, second=places, users=st.tuples(odd_text, odd_text))
def test_keys_are_injective(first: Place, second: Place, users: tuple[str, str]) -> None:
    """Two place-and-user pairs have one key only if they are the same place and the same (or no) user."""
    keys = [key(place, user, threads=True) for place, user in zip((first, second), users, strict=True)]
    kept = [
        user if user and place.chat_type in {"group", "thread"} else None
        for place, user in zip((first, second), users, strict=True)
    ]
    assert (keys[0] == keys[1]) is (first == second and kept[0] == kept[1])


@given(place=places, user=odd_text)
def test_a_key_can_be_taken_apart_again(place: Place, user: str) -> None:
    """Split at colons and decoded, a key gives back exactly the ids it was made of, and no odd character is left."""
    text = key(place, user, threads=True)
    assert not any(character.isspace() or character == "\x00" for character in text)
    head, account, platform, chat_type, chat, *labelled = text.split(":")
    labels = dict(part.split("=") for part in labelled)
    assert head == "agent"
    decoded = [unquote(part, errors="surrogatepass") for part in (account, platform, chat_type, chat)]
    assert decoded == [place.account, place.platform, place.chat_type, place.chat]
    assert unquote(labels.get("thread", ""), errors="surrogatepass") == place.thread
    expected = user if place.chat_type in {"group", "thread"} else ""
    assert unquote(labels.get("user", ""), errors="surrogatepass") == expected


@given(st.characters())
def test_white_space_and_control_characters_never_reach_a_key(character: str) -> None:
    """Whatever Unicode calls white space or a control character is encoded."""
    text = key(Place("web", "main", "dm", character), None)
    assert not any(part.isspace() or ord(part) < 0x20 or 0x7F <= ord(part) < 0xA0 for part in text)


def test_chat_types_are_part_of_the_key() -> None:
    """The same id as a group and as a channel are two places."""
    kinds: list[ChatType] = ["dm", "group", "channel", "thread"]
    assert len({key(Place("telegram", "main", kind, "1"), None) for kind in kinds}) == len(kinds)
