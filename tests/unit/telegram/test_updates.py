"""What an update means: place, sender, words, and whether the bot was meant."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.base import Attachment, InboundMessage
from adapters.telegram.updates import Me, inbound
from tests.forging import Path, forged, paths

ME = Me(1000, "gatebot")
NOW = 1_790_000_000.0
PERSON = {"id": 42, "is_bot": False, "first_name": "Ann", "last_name": "Lee"}
BOT = {"id": 1000, "is_bot": True, "first_name": "Gate", "username": "gatebot"}
PRIVATE = {"id": 42, "type": "private", "first_name": "Ann"}
GROUP = {"id": -7, "type": "group", "title": "Plain"}
FORUM = {"id": -1001, "type": "supergroup", "title": "Forum", "is_forum": True}

ANIMATION = {
    "file_id": "g",
    "file_unique_id": "u",
    "width": 1,
    "height": 1,
    "duration": 2,
    "file_name": "cat.mp4",
}
STICKER = {
    "file_id": "f",
    "file_unique_id": "u",
    "width": 1,
    "height": 1,
    "type": "regular",
    "is_animated": False,
    "is_video": False,
}


def message(
    text: str | None = "hello", chat: dict[str, Any] | None = None, sender: dict[str, Any] = PERSON, **more: Any
) -> dict[str, Any]:
    """Return an update with one message, of Ann unless told otherwise."""
    body: dict[str, Any] = {"message_id": 5, "date": 1_789_999_999, "chat": chat or PRIVATE, "from": sender}
    if text is not None:
        body["text"] = text
    return {"update_id": 1, "message": {**body, **more}}


def read(update: dict[str, Any]) -> InboundMessage:
    """Return what the update means; it must mean something."""
    event = inbound(update, ME, "main", NOW)
    assert event is not None
    return event


def entity(kind: str, offset: int, length: int, **more: Any) -> dict[str, Any]:
    """Return an entity."""
    return {"type": kind, "offset": offset, "length": length, **more}


def test_a_private_message() -> None:
    """Everything of it is where the gateway looks for it."""
    event = read(message())

    assert (event.place.platform, event.place.account, event.place.chat_type) == ("telegram", "main", "dm")
    assert (event.place.chat, event.place.thread, event.place.name) == ("42", "", "Ann")
    assert (event.sender.user_id, event.sender.name, event.sender.is_bot) == ("42", "Ann Lee", False)
    assert (event.dedupe_key, event.message_id, event.kind) == ("m:42:5", "5", "message")
    assert (event.text, event.addressed, event.reply_to, event.received_at) == ("hello", True, None, NOW)


def test_five_forms_give_four_places() -> None:
    """A thread id counts only in real topics; both forms of General are one place."""
    general = read(message(chat=FORUM))
    general_reply = read(message(chat=FORUM, message_thread_id=900))
    topic = read(message(chat=FORUM, message_thread_id=17, is_topic_message=True))
    group_reply = read(message(chat=GROUP, message_thread_id=17))
    private_topic = read(message(message_thread_id=17, is_topic_message=True))

    places = [(event.place.chat, event.place.thread) for event in (general, topic, group_reply, private_topic)]
    assert places == [("-1001", ""), ("-1001", "17"), ("-7", ""), ("42", "17")]
    assert general_reply.place == general.place


def test_general_told_as_topic_one_is_general() -> None:
    """A server that numbers General means the same place."""
    assert (
        read(message(chat=FORUM, message_thread_id=1, is_topic_message=True)).place == read(message(chat=FORUM)).place
    )


@pytest.mark.parametrize(("kind", "expected"), [("group", "group"), ("supergroup", "group"), ("channel", "channel")])
def test_types_of_chats(kind: str, expected: str) -> None:
    """Groups of both sorts are groups, channels are channels."""
    assert read(message(chat={"id": -5, "type": kind, "title": "C"})).place.chat_type == expected


def test_group_talk_is_not_meant_for_the_bot() -> None:
    """Without mention, reply or command nobody asked the bot."""
    assert not read(message(chat=GROUP)).addressed


@pytest.mark.parametrize(
    ("text", "offset", "words"),
    [
        ("@gatebot where is it?", 0, "where is it?"),
        ("@GateBot: where is it?", 0, "where is it?"),
        ("😀 @gatebot look", 3, "😀 @gatebot look"),
        ("look 😀 @gatebot", 8, "look 😀"),
        ("@gatebot", 0, "@gatebot"),
    ],
)
def test_a_mention_addresses_the_bot_and_is_no_word(text: str, offset: int, words: str) -> None:
    """Offsets are UTF-16 units; the mention goes at both ends and stays inside a sentence."""
    event = read(message(text, GROUP, entities=[entity("mention", offset, 8)]))

    assert event.addressed
    assert event.text == words


def test_a_mention_of_somebody_else_is_left_alone() -> None:
    """Another name, also one that begins like ours, addresses nobody here."""
    event = read(message("@gatebotter hi", GROUP, entities=[entity("mention", 0, 11)]))

    assert not event.addressed
    assert event.text == "@gatebotter hi"


def test_a_mention_without_username_addresses_the_bot() -> None:
    """Clients can link a user instead of writing the name."""
    event = read(message("Gate, hi", GROUP, entities=[entity("text_mention", 0, 4, user=BOT)]))

    assert event.addressed
    assert event.text == "hi"


def test_a_mention_in_a_caption_counts() -> None:
    """Pictures are addressed through their caption."""
    event = read(
        message(
            None,
            GROUP,
            caption="@gatebot look",
            caption_entities=[entity("mention", 0, 8)],
            photo=[{"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1}],
        )
    )

    assert event.addressed
    assert (event.text, event.extra) == ("look", {"media": "photo"})


def test_a_reply_to_the_bot_addresses_it() -> None:
    """Answering what the bot said means the bot; answering a person does not."""
    to_bot = read(message(chat=GROUP, reply_to_message={"message_id": 3, "date": 1, "chat": GROUP, "from": BOT}))
    to_person = read(message(chat=GROUP, reply_to_message={"message_id": 4, "date": 1, "chat": GROUP, "from": PERSON}))

    assert (to_bot.addressed, to_bot.reply_to) == (True, "3")
    assert (to_person.addressed, to_person.reply_to) == (False, "4")


def test_the_first_message_of_a_topic_is_no_reply() -> None:
    """In a topic that the bot opened, not every message is meant for it."""
    root = {
        "message_id": 17,
        "date": 1,
        "chat": FORUM,
        "from": BOT,
        "forum_topic_created": {"name": "T", "icon_color": 1},
    }
    event = read(message(chat=FORUM, message_thread_id=17, is_topic_message=True, reply_to_message=root))

    assert not event.addressed
    assert event.reply_to is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/new plan", "/new plan"),
        ("/new@gatebot plan", "/new plan"),
        ("/new@GATEBOT", "/new"),
        ("/title@gatebot\nA b", "/title\nA b"),
    ],
)
def test_a_command_for_us(text: str, words: str) -> None:
    """A command names this bot or none; the name is no part of it."""
    event = read(message(text, GROUP, entities=[entity("bot_command", 0, len(text.split(maxsplit=1)[0]))]))

    assert (event.kind, event.addressed, event.text) == ("command", True, words)


def test_a_command_behind_a_mention() -> None:
    """The mention in front does not hide the command."""
    event = read(message("@gatebot /new plan", GROUP, entities=[entity("mention", 0, 8)]))

    assert (event.kind, event.addressed, event.text) == ("command", True, "/new plan")


def test_a_command_for_another_bot_is_not_ours() -> None:
    """Neither in groups nor in a private chat."""
    for chat in (GROUP, PRIVATE):
        event = read(message("/new@otherbot plan", chat))
        assert (event.kind, event.addressed, event.text) == ("message", False, "/new@otherbot plan")


def test_a_path_is_no_command() -> None:
    """A slash and a word with more behind it is text."""
    assert read(message("/etc/hosts is broken")).kind == "message"


def test_anonymous_admins_and_channels_are_nobody() -> None:
    """Accounts that many people speak through never count as a person."""
    admin = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
    as_group = read(message(chat=GROUP, sender=admin, sender_chat=GROUP))
    bare = read(message(chat=GROUP, sender=admin))
    channel = {"id": -9, "type": "channel", "title": "News"}
    post = read(
        {
            "update_id": 1,
            "channel_post": {"message_id": 5, "date": 1, "chat": channel, "sender_chat": channel, "text": "x"},
        }
    )

    assert [event.sender.user_id for event in (as_group, bare, post)] == [None, None, None]
    assert not as_group.sender.is_bot
    assert post.sender.name == "News"
    assert post.place.chat_type == "channel"


def test_bots_are_flagged() -> None:
    """The gateway decides about bots; it must be able to see them."""
    assert read(message(sender={"id": 77, "is_bot": True, "first_name": "Robot"})).sender.is_bot


@pytest.mark.parametrize(
    ("content", "note", "kind"),
    [
        ({"sticker": STICKER}, "[sticker]", "sticker"),
        ({"location": {"latitude": 1.0, "longitude": 2.0}}, "[location]", "location"),
        ({"dice": {"value": 3, "emoji": "🎲"}}, "[dice]", "dice"),
    ],
)
def test_other_content_becomes_a_note(content: dict[str, Any], note: str, kind: str) -> None:
    """What cannot be read yet is named."""
    event = read(message(None, **content))

    assert (event.text, event.extra) == (note, {"media": kind})


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            {
                "photo": [
                    {"file_id": "s", "file_unique_id": "1", "width": 90, "height": 60, "file_size": 900},
                    {"file_id": "l", "file_unique_id": "2", "width": 1280, "height": 960, "file_size": 90_000},
                    {"file_id": "m", "file_unique_id": "3", "width": 320, "height": 240, "file_size": 9_000},
                ]
            },
            Attachment("l", "image", size=90_000),
        ),
        (
            {"document": {"file_id": "d", "file_unique_id": "u", "file_name": "a.pdf", "mime_type": "application/pdf"}},
            Attachment("d", "file", "a.pdf", "application/pdf"),
        ),
        (
            {"document": {"file_id": "d", "file_unique_id": "u", "file_name": "p.png", "mime_type": "image/png"}},
            Attachment("d", "image", "p.png", "image/png"),
        ),
        (
            {"voice": {"file_id": "v", "file_unique_id": "u", "duration": 3, "mime_type": "audio/ogg"}},
            Attachment("v", "voice", None, "audio/ogg"),
        ),
        (
            {"audio": {"file_id": "a", "file_unique_id": "u", "duration": 3, "file_name": "song.mp3"}},
            Attachment("a", "audio", "song.mp3"),
        ),
        (
            {"video_note": {"file_id": "n", "file_unique_id": "u", "duration": 3, "length": 240}},
            Attachment("n", "video"),
        ),
        (
            {
                "animation": ANIMATION | {"mime_type": "video/mp4"},
                "document": {"file_id": "g", "file_unique_id": "u", "file_name": "cat.mp4"},
            },
            Attachment("g", "video", "cat.mp4", "video/mp4"),
        ),
    ],
)
def test_a_file_is_described(content: dict[str, Any], expected: Attachment) -> None:
    """With what the platform claims; of a photo's sizes the largest; without a caption there are no words."""
    plain = read(message(None, **content))
    captioned = read(message(None, caption="look", **content))

    assert (plain.attachments, plain.text) == ((expected,), "")
    assert (captioned.attachments, captioned.text) == ((expected,), "look")


def test_parts_of_an_album_carry_its_id() -> None:
    """So that they can be put together later."""
    photo = [{"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1}]

    assert read(message(None, photo=photo, media_group_id="g1")).group_id == "g1"


def test_service_messages_are_nothing() -> None:
    """Joins, pins and new topics are no talk."""
    assert inbound(message(None, new_chat_members=[PERSON]), ME, "main", NOW) is None
    assert (
        inbound(message(None, chat=FORUM, forum_topic_created={"name": "T", "icon_color": 1}), ME, "main", NOW) is None
    )
    assert inbound({"update_id": 1, "poll_answer": {"poll_id": "1", "option_ids": [0]}}, ME, "main", NOW) is None


def test_an_edit_is_an_event_of_its_own() -> None:
    """Each version has its own key, and none is a message."""
    update = message("better @gatebot", GROUP, entities=[entity("mention", 7, 8)], edit_date=1_789_999_999)
    event = read({"update_id": 2, "edited_message": update["message"]})

    assert (event.kind, event.dedupe_key, event.message_id) == ("edit", "e:-7:5:1789999999", "5")
    assert event.text == "better"


def test_migration_is_told_alike_from_both_chats() -> None:
    """Whichever of the two messages comes, it says what became what."""
    from_old = read(message(None, GROUP, migrate_to_chat_id=-1009))
    from_new = read(message(None, {"id": -1009, "type": "supergroup", "title": "Plain"}, migrate_from_chat_id=-7))

    for event in (from_old, from_new):
        assert (event.kind, event.addressed) == ("migration", False)
        assert event.extra == {"old_chat": "-7", "new_chat": "-1009"}


@pytest.mark.parametrize("field", ["message_id", "chat", "date"])
def test_an_update_that_lacks_what_every_message_has_is_refused(field: str) -> None:
    """It raises; nothing is guessed."""
    update = message()
    del update["message"][field]

    with pytest.raises(Exception, match=r".+"):
        inbound(update, ME, "main", NOW)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("message_id", "five"),
        ("text", 7),
        ("from", {"id": "x", "is_bot": False, "first_name": "A"}),
        ("chat", {"id": None, "type": "group"}),
        ("chat", {"id": 1, "type": "room"}),
    ],
)
def test_values_of_another_form_are_refused(field: str, value: object) -> None:
    """The library takes over what it is given; we do not."""
    update = message()
    update["message"][field] = value

    with pytest.raises(ValueError, match=r"number|text|chat"):
        inbound(update, ME, "main", NOW)


@given(st.text(min_size=1), st.text(), st.sampled_from(["@gatebot", "@GATEBOT", "/new@gatebot"]))
def test_any_words_around_a_mention_survive(before: str, after: str, name: str) -> None:
    """Odd characters in front of a mention shift nothing: what is not the mention stays."""
    text = f"{before} {name} {after}"
    offset = len(f"{before} ".encode("utf-16-le", "surrogatepass")) // 2
    kind = "bot_command" if name.startswith("/") else "mention"
    event = inbound(message(text, GROUP, entities=[entity(kind, offset, len(name))]), ME, "main", NOW)

    assert event is not None
    assert "".join(before.split()) in "".join(event.text.split())
    assert event.addressed or kind == "bot_command"


RICH = {
    "message_id": 5,
    "date": 1_789_999_999,
    "chat": FORUM,
    "from": PERSON,
    "text": "@gatebot look 😀",
    "entities": [{"type": "mention", "offset": 0, "length": 8}],
    "message_thread_id": 17,
    "is_topic_message": True,
    "media_group_id": "g",
    "edit_date": 1_789_999_999,
    "reply_to_message": {"message_id": 3, "date": 1, "chat": FORUM, "from": BOT},
}
JSON = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.just([]), st.just({}), st.just([1]))


@given(
    path=st.sampled_from(paths(RICH)),
    value=JSON,
    missing=st.booleans(),
    kind=st.sampled_from(["message", "edited_message"]),
)
def test_a_forged_update_gives_a_proper_event_or_an_error(
    path: Path, value: object, kind: str, *, missing: bool
) -> None:
    """Any field missing or of another form: never an event whose fields are of the wrong type."""
    body = forged(RICH, path, value, missing=missing)
    event = None
    with contextlib.suppress(Exception):
        event = inbound({"update_id": 1, kind: body}, ME, "main", NOW)

    if event is not None:
        facts = (
            event.place.chat,
            event.place.thread,
            event.sender.name,
            event.text,
            event.message_id,
            event.dedupe_key,
        )
        assert all(isinstance(fact, str) for fact in facts)
        maybe = (event.sender.user_id, event.reply_to, event.group_id, event.place.name)
        assert all(fact is None or isinstance(fact, str) for fact in maybe)
        assert int(event.place.chat)
        json.dumps(event.extra)


def test_reading_changes_nothing() -> None:
    """The raw update can still be set aside as it came."""
    update = message(entities=[entity("mention", 0, 3)])
    before = copy.deepcopy(update)
    read(update)

    assert update == before


def test_a_reply_to_a_file_quotes_its_name() -> None:
    """A file without words is still something to answer."""
    document = {"file_id": "d", "file_unique_id": "u", "file_name": "a.pdf"}
    photo = [{"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1}]
    answered: list[tuple[dict[str, Any], str]] = [
        ({"document": document}, "[document: a.pdf]"),
        ({"photo": photo}, "[photo]"),
        ({"photo": photo, "caption": "the door"}, "the door"),
    ]
    for content, expected in answered:
        event = read(message("nice", reply_to_message=message(None, **content)["message"]))
        assert event.quoted is not None
        assert event.quoted.text == expected
