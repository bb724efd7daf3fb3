"""One event of the gateway to one message: place, sender, words, whether the bot was meant; and what is no message."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.base import Attachment, InboundMessage, Place, Quoted, Sender
from adapters.discord.events import Me, called, deleted, edited, said

ME = Me("1000", "1000", "91000")
ROOM = Place("discord", "main", "group", "501", name="general")
DIRECT = Place("discord", "main", "dm", "742")
THREAD = Place("discord", "main", "thread", "510", name="plans")
GATEBOT = {"id": "1000", "username": "gatebot", "global_name": None, "bot": True}


def message(content: str = "hello", **more: Any) -> dict[str, Any]:
    """A message as Discord tells of it."""
    return {
        "id": "77",
        "channel_id": "501",
        "author": {"id": "42", "username": "ann", "global_name": "Ann"},
        "content": content,
        "type": 0,
        "mentions": [],
        "mention_roles": [],
        "attachments": [],
        "edited_timestamp": None,
        **more,
    }


def heard(content: str = "hello", place: Place = ROOM, **more: Any) -> InboundMessage:
    """What a message means to us."""
    told = said(message(content, **more), place, ME, 5.0)
    assert told is not None
    return told


def test_a_message_carries_everything() -> None:
    """Ids are text; the key is made of the message's id, which no other message anywhere has."""
    assert heard() == InboundMessage(
        place=ROOM,
        sender=Sender("42", "Ann"),
        dedupe_key="m:77",
        kind="message",
        text="hello",
        message_id="77",
        received_at=5.0,
        addressed=False,
    )
    assert heard().place.name == "general"


def test_a_direct_chat_is_always_meant_for_us_and_bears_the_name_of_the_person() -> None:
    """Nobody else is there to be meant."""
    told = heard(place=DIRECT)
    assert (told.addressed, told.place.name) == (True, "Ann")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("<@1000> what's up", "what's up"),
        ("<@!1000>, what's up", "what's up"),
        ("what's up <@1000>", "what's up"),
        ("<@1000> <@1000> twice", "twice"),
        ("hey <@1000> you", "hey @gatebot you"),
        ("<@1000>", "@gatebot"),
    ],
)
def test_a_mention_is_heard_and_left_out_of_the_words(written: str, words: str) -> None:
    """At either end it is no part of what was said; in the middle it is."""
    told = heard(written, mentions=[GATEBOT])
    assert (told.addressed, told.text) == (True, words)


def test_the_role_of_the_bot_counts_as_the_bot() -> None:
    """People pick it from the list by mistake: it has the same name."""
    told = heard("<@&91000> status", mention_roles=["91000"])
    assert (told.addressed, told.text) == (True, "status")
    assert not heard("<@&7> status", mention_roles=["7"]).addressed


def test_what_people_see_is_what_is_told() -> None:
    """Other mentions and the emoji of a server are numbers only for machines."""
    told = heard("ask <@43> <:party:88> now", mentions=[{"id": "43", "username": "bob", "member": {"nick": "Bobby"}}])
    assert told.text == "ask @Bobby :party: now"
    assert heard("who is <@44>?").text == "who is <@44>?"


def test_a_reply_to_the_bot_is_meant_for_it() -> None:
    """Also without a mention; a reply to somebody else is not."""
    reference = {"message_id": "70", "channel_id": "501"}
    ours = heard(message_reference=reference, referenced_message=message(author=GATEBOT, id="70"), type=19)
    assert (ours.addressed, ours.reply_to) == (True, "70")
    others = heard(message_reference=reference, referenced_message=message(id="70"), type=19)
    assert (others.addressed, others.reply_to) == (False, "70")
    gone = heard(message_reference=reference, referenced_message=None, type=19)
    assert (gone.addressed, gone.reply_to) == (False, "70")


def test_a_reply_tells_what_it_answers() -> None:
    """With the name that people see; what has no words is named, what cannot be read is left out."""
    reference = {"message_id": "70", "channel_id": "501"}

    def quoted(answered: object) -> Quoted | None:
        return heard(message_reference=reference, referenced_message=answered, type=19).quoted

    assert quoted(message("ask <@43>", mentions=[{"id": "43", "username": "bob"}])) == Quoted("ask @bob", "Ann")
    files = [{"id": "5", "filename": "a.png", "content_type": "image/png"}]
    assert quoted(message("", attachments=files)) == Quoted("[image: a.png]", "Ann")
    assert quoted(message("")) is None
    assert quoted(message("x", mentions="many")) is None
    assert quoted(None) is None
    assert heard().quoted is None


@pytest.mark.parametrize(
    ("written", "place", "kind"),
    [
        ("<@1000> /new a title", ROOM, "command"),
        ("/new", DIRECT, "command"),
        ("/new", ROOM, "message"),
        ("/etc/hosts is gone", DIRECT, "message"),
    ],
)
def test_a_typed_command_counts_where_the_bot_is_meant(written: str, place: Place, kind: str) -> None:
    """In a room a slash may be for any bot."""
    mentions = [GATEBOT] if "<@1000>" in written else []
    assert heard(written, place, mentions=mentions).kind == kind


def test_our_own_words_are_not_heard() -> None:
    """Discord tells a bot of its own messages, also of its answers to slash commands."""
    assert said(message(author=GATEBOT), ROOM, ME, 5.0) is None
    assert said(message(author={"id": "9", "username": "x"}, webhook_id="1000"), ROOM, ME, 5.0) is None
    assert edited(message(author=GATEBOT, edited_timestamp="2026-11-29T10:00:00+00:00"), ROOM, ME, 5.0) is None


@pytest.mark.parametrize("kind", [1, 6, 7, 8, 18, 20, 21, 46, 999])
def test_what_nobody_wrote_is_no_message(kind: int) -> None:
    """Pins, joins, boosts, started threads, and what a later Discord may bring."""
    assert said(message(type=kind), ROOM, ME, 5.0) is None


def test_bots_are_told_apart_and_webhooks_are_nobody() -> None:
    """A webhook has no account of its own; its name is only a name."""
    assert heard(author={"id": "8", "username": "other", "bot": True}).sender == Sender("8", "other", is_bot=True)
    assert heard(author={"id": "9", "username": "42"}, webhook_id="9").sender == Sender(None, "42", is_bot=True)


def test_the_name_is_the_one_people_see() -> None:
    """That of the server, else the chosen one, else the account's."""
    assert heard(member={"nick": "Annie"}).sender.name == "Annie"
    assert heard(member={"nick": None}).sender.name == "Ann"
    assert heard(author={"id": "42", "username": "ann", "global_name": None}).sender.name == "ann"


def test_files_are_described_by_what_stays() -> None:
    """In order, with or without words; their addresses run out, so they are named by their ids."""
    picture = {"id": "5", "filename": "a.png", "size": 9, "url": "https://cdn/a.png", "content_type": "image/png"}
    told = heard("", attachments=[picture, {"id": "6", "filename": "b.bin", "content_type": None, "size": -1}])
    assert told.text == ""
    assert told.attachments == (
        Attachment("501/77/5", "image", "a.png", "image/png", 9),
        Attachment("501/77/6", "file", "b.bin"),
    )
    assert heard("look", attachments=[picture]).text == "look"
    assert heard("<@1000>", attachments=[picture], mentions=[GATEBOT]).text == ""
    spoken = heard("", flags=8192, attachments=[{**picture, "content_type": "audio/ogg"}])
    assert [one.kind for one in spoken.attachments] == ["voice"]


def test_content_without_words_is_named() -> None:
    """Stickers, polls and forwarded messages."""
    assert heard("", sticker_items=[{"id": "1", "name": "wave"}]).text == "[sticker: wave]"
    assert heard("", poll={"question": {"text": "Tea?"}}).text == "[poll: Tea?]"
    forward: dict[str, Any] = {
        "message_snapshots": [{"message": {"content": "the news"}}],
        "message_reference": {"type": 1},
    }
    assert heard("", **forward).text == "[forwarded: the news]"
    assert heard("", **forward).reply_to is None
    forward["message_snapshots"][0]["message"] = {"content": "", "attachments": [{"id": "5", "filename": "b.pdf"}]}
    assert heard("", **forward).text == "[forwarded: [document: b.pdf]]"


def test_an_edit_has_a_key_of_its_time() -> None:
    """Two edits of one message differ; what is no change of words is no edit."""
    one = edited(message("better", edited_timestamp="2026-11-29T10:00:00.123456+00:00"), ROOM, ME, 5.0)
    assert one is not None
    assert (one.kind, one.text, one.message_id) == ("edit", "better", "77")
    assert one.dedupe_key == "e:77:1795946400123"
    assert one.subject == heard().dedupe_key
    two = edited(message("better", edited_timestamp="2026-11-29T10:00:00.223+00:00"), ROOM, ME, 5.0)
    assert two is not None
    assert two.dedupe_key == "e:77:1795946400223"
    assert edited(message("preview", edited_timestamp=None), ROOM, ME, 5.0) is None
    assert edited({"id": "77", "channel_id": "501", "embeds": []}, ROOM, ME, 5.0) is None


def test_a_deletion_names_nobody() -> None:
    """Discord does not say who wrote the message or took it away."""
    told = deleted("77", ROOM, 5.0)
    assert (told.kind, told.dedupe_key, told.sender, told.addressed) == ("delete", "d:77", Sender(None), False)
    assert told.subject == heard().dedupe_key


def interaction(**more: Any) -> dict[str, Any]:
    """The call of a command as Discord tells of it."""
    return {
        "id": "88",
        "type": 2,
        "token": "secret",
        "channel_id": "501",
        "data": {"id": "3", "type": 1, "name": "new", "options": [{"name": "text", "type": 3, "value": "a title"}]},
        "member": {"user": {"id": "42", "username": "ann", "global_name": "Ann"}, "nick": None},
        **more,
    }


def test_a_slash_command_is_what_it_would_be_when_typed() -> None:
    """The same words, place and person, so the same conversation."""
    told = called(interaction(), ROOM, 5.0)
    assert told is not None
    typed = heard("<@1000> /new a title", mentions=[GATEBOT])
    assert (told.kind, told.dedupe_key) == ("command", "i:88")
    assert (told.text, told.place, told.sender, told.addressed) == (typed.text, typed.place, typed.sender, True)


def test_a_slash_command_in_a_direct_chat() -> None:
    """There, the person stands outside any server."""
    body = interaction(user={"id": "42", "username": "ann"}, data={"name": "help"})
    del body["member"]
    told = called(body, DIRECT, 5.0)
    assert told is not None
    assert (told.text, told.sender.user_id) == ("/help", "42")


@pytest.mark.parametrize("more", [{"type": 1}, {"type": 3}, {"data": {"type": 2, "name": "Report"}}])
def test_other_interactions_are_no_commands(more: dict[str, Any]) -> None:
    """Buttons and context menus are not ours."""
    assert called(interaction(**more), ROOM, 5.0) is None
