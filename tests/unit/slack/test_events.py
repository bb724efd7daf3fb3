"""Events of Slack to messages: place, sender, words, whether the bot was meant, and what is no message."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.base import Attachment, InboundMessage, Place, Quoted, Sender
from adapters.slack.events import Rules, assistant_thread, own_post
from adapters.slack.origin import Me, belongs
from gateway.keys import session_key
from tests.unit.slack.payloads import ME, NOW, RULES, TS, around, changed, command, in_channel, nothing, post, read


def test_a_direct_message() -> None:
    """Everything that is known about it."""
    assert read(post("hi &lt;there&gt;")) == InboundMessage(
        place=Place("slack", "main", "dm", "T1/D1", "", "Ann"),
        sender=Sender("U1", "Ann", "T1"),
        dedupe_key=f"m:T1/D1:{TS}",
        kind="message",
        text="hi <there>",
        message_id=TS,
        received_at=NOW,
    )


def test_message_and_mention_of_one_post_are_one() -> None:
    """Different deliveries with different ids and fields, one message."""
    text = "<@UBOT> where is <@U1>'s script in <#C2|ops>?"
    message = read(in_channel(text, client_msg_id="x"))
    mention = read(around({"type": "app_mention", "channel": "C1", "user": "U1", "ts": TS, "text": text}))

    assert message == mention
    assert (message.dedupe_key, message.addressed) == (f"m:T1/C1:{TS}", True)
    assert message.text == "where is @Ann's script in #ops?"
    assert message.place == Place("slack", "main", "group", "T1/C1", TS)
    assert message.place.name == "#general"


@pytest.mark.parametrize(
    ("body", "rules", "expected"),
    [
        (post(), RULES, "agent:main:slack:dm:T1/D1"),
        (post(thread_ts="1790000000.000001"), RULES, "agent:main:slack:dm:T1/D1"),
        (
            post(thread_ts="1790000000.000001"),
            Rules("main", dm_threads=True),
            "agent:main:slack:dm:T1/D1:thread=1790000000.000001",
        ),
        (post(thread_ts="1790000000.000009"), RULES, "agent:main:slack:dm:T1/D1:thread=1790000000.000009"),
        (
            post(thread_ts="1790000000.000001", assistant_thread={"action_token": "a"}),
            RULES,
            "agent:main:slack:dm:T1/D1:thread=1790000000.000001",
        ),
        (in_channel(), RULES, f"agent:main:slack:group:T1/C1:thread={TS}"),
        (in_channel(thread_ts=TS), RULES, f"agent:main:slack:group:T1/C1:thread={TS}"),
        (
            in_channel(thread_ts="1790000000.000001"),
            RULES,
            "agent:main:slack:group:T1/C1:thread=1790000000.000001",
        ),
        (in_channel(), Rules("main", reply_in_thread=False), "agent:main:slack:group:T1/C1:user=U1"),
        (
            in_channel(thread_ts="1790000000.000001"),
            Rules("main", reply_in_thread=False),
            "agent:main:slack:group:T1/C1:thread=1790000000.000001",
        ),
        (post(channel="G1", kind="mpim"), RULES, f"agent:main:slack:group:T1/G1:thread={TS}"),
        (post(channel="C9", kind="group"), RULES, f"agent:main:slack:group:T1/C9:thread={TS}"),
        (command(), RULES, "agent:main:slack:dm:T1/D1"),
        (command(channel_id="C1", channel_name="general"), RULES, "agent:main:slack:group:T1/C1:user=U1"),
        (post(), Rules("work"), "agent:work:slack:dm:T1/D1"),
    ],
)
def test_every_place_has_its_key(body: dict[str, Any], rules: Rules, expected: str) -> None:
    """Golden keys: they are stored, so they may never change. A post and the replies in its thread share one."""
    message = read(body, rules=rules)
    key = session_key(
        message.place, message.sender.user_id, group_sessions_per_user=True, thread_sessions_per_user=False
    )

    assert key == expected


def test_who_is_meant() -> None:
    """Direct chats, mentions, threads that the bot began; other talk is not for it."""
    assert read(post()).addressed
    assert read(in_channel("well <@UBOT> knows")).addressed
    assert read(in_channel("more", thread_ts="1790000000.000001", parent_user_id="UBOT")).addressed
    assert not read(in_channel("more", thread_ts="1790000000.000001", parent_user_id="U2")).addressed
    assert not read(in_channel("<@U2> hello")).addressed


def test_commands_as_text_behind_the_mention() -> None:
    """They are commands, without the mention."""
    message = read(in_channel("<@UBOT> /new deploy script"))

    assert (message.kind, message.text, message.addressed) == ("command", "/new deploy script", True)
    assert read(in_channel("<@UBOT> /etc/hosts is odd")).kind == "message"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("new title", "/new title"),
        ("", "/help"),
        ("  ", "/help"),
        ("/stop", "/stop"),
        ("search a &amp; b", "/search a & b"),
    ],
)
def test_the_slash_command(text: str, expected: str) -> None:
    """What stands behind it is the command; alone, it asks for help."""
    message = read(command(text))

    assert (message.kind, message.text, message.dedupe_key) == ("command", expected, "c:7.8")
    assert message.sender == Sender("U1", "ann", "T1")
    assert message.addressed


@pytest.mark.parametrize("subtype", ["file_share", "thread_broadcast", "me_message", "brand_new_subtype"])
def test_talk_of_any_subtype_passes(subtype: str) -> None:
    """Only what Slack itself writes is left out; what it may invent next is not lost."""
    assert read(in_channel(subtype=subtype)).text == "hello"


@pytest.mark.parametrize(
    "more",
    [
        {"subtype": "channel_join"},
        {"subtype": "group_topic"},
        {"subtype": "message_replied"},
        {"subtype": "assistant_app_thread"},
        {"subtype": "brand_new_subtype", "hidden": True},
        {"user": "UBOT"},
        {"bot_id": "BBOT"},
        {"text": ""},
        {"text": None},
    ],
)
def test_what_is_no_talk(more: dict[str, Any]) -> None:
    """System messages, the app's own words, and posts without any word or file."""
    assert nothing(in_channel(**more))


@pytest.mark.parametrize(
    "body",
    [
        around({"type": "reaction_added", "user": "U1", "item": {}}),
        around({"type": "assistant_thread_started", "assistant_thread": {}}),
        {"type": "block_actions", "user": {"id": "U1"}},
    ],
)
def test_other_events_carry_no_message(body: dict[str, Any]) -> None:
    """They are confirmed and forgotten."""
    assert nothing(body)


def test_bots_are_flagged() -> None:
    """With a user of their own, with an id only, and Slack's own."""
    with_user = read(in_channel(user="U7", bot_id="B7", app_id="A7"))
    bare = read(in_channel(user=None, bot_id="B7", subtype="bot_message", username="builder"))

    assert with_user.sender == Sender("U7", "", "T1", is_bot=True)
    assert bare.sender == Sender("B7", "builder", "T1", is_bot=True)
    assert read(post(user="USLACKBOT")).sender.is_bot


def test_files_are_described() -> None:
    """With words and without; what Slack tells of them, and which can be fetched at all."""
    files = [
        {"id": "F1", "name": "a &amp; <b>.txt", "size": 12, "mimetype": "text/plain", "mode": "snippet"},
        {"id": "F2", "title": "Voice", "mimetype": "audio/webm", "subtype": "slack_audio", "mode": "hosted"},
        {"id": "F3", "mimetype": "image/png", "file_access": "check_file_info"},
    ]
    described = (
        Attachment("F1", "file", "a &amp; <b>.txt", "text/plain", 12),
        Attachment("F2", "voice", "Voice", "audio/webm"),
        Attachment("F3", "image", None, "image/png"),
    )
    silent = read(post("", subtype="file_share", files=files))
    spoken = read(post("look", subtype="file_share", files=files))

    assert (silent.text, silent.attachments) == ("", described)
    assert (spoken.text, spoken.attachments) == ("look", described)


def test_files_that_cannot_be_fetched_are_named() -> None:
    """They lie with another service, or are gone."""
    files = [
        {"id": "F1", "name": "a &amp; <b>.txt", "mode": "external"},
        {"id": "F2", "mode": "tombstone"},
        {"name": "x"},
    ]
    message = read(post("", files=files))

    assert (message.attachments, message.text) == (
        (),
        "[file: a &amp; <b>.txt]\n[file: without a name]\n[file: x]",
    )


def test_a_shared_message_without_words_is_shown() -> None:
    """What was shared is what is said."""
    assert read(post("", attachments=[{"fallback": "x", "text": "the &lt;deploy&gt;"}])).text == (
        "[attachment: the <deploy>]"
    )


def test_a_message_that_is_shared_with_words_is_quoted() -> None:
    """By whom and what; previews of links are not."""
    shared = {"is_share": True, "text": "ask <@U1> &amp; me", "author_name": "Bob"}
    message = read(post("what is this?", attachments=[{"text": "a preview"}, shared]))

    assert (message.text, message.quoted) == ("what is this?", Quoted("ask @Ann & me", "Bob"))
    assert read(post("see", attachments=[{"text": "a preview"}])).quoted is None


def test_an_edit_is_an_event_of_its_own() -> None:
    """Each version has its own key, in the place of the message."""
    event = read(changed("<@UBOT> better"))

    assert (event.kind, event.text, event.message_id) == ("edit", "better", TS)
    assert (event.dedupe_key, event.subject) == (f"e:T1/C1:{TS}:1790000050.000000", read(in_channel()).dedupe_key)
    assert event.place == read(in_channel()).place


def test_changes_that_nobody_made_are_none() -> None:
    """Previews of links, counts of replies, our own words."""
    same = changed()
    same["event"]["previous_message"]["edited"] = {"user": "U1", "ts": "1790000050.000000"}

    assert nothing(changed(edited=None))
    assert nothing(same)
    assert nothing(changed(user="UBOT"))
    assert nothing(changed(subtype="assistant_app_thread"))


def test_a_deletion_is_an_event_of_its_own() -> None:
    """Whether the message vanishes or, having replies, leaves a stone."""
    event = {
        "type": "message",
        "subtype": "message_deleted",
        "hidden": True,
        "channel": "C1",
        "ts": "1790000060.000000",
    }
    gone = read(around(event | {"deleted_ts": TS, "previous_message": {"user": "U1", "ts": TS, "text": "x"}}))
    stone = read(changed(subtype="tombstone", user="USLACKBOT"))
    bare = read(around(event | {"deleted_ts": TS}))

    assert (gone.kind, gone.dedupe_key, gone.message_id) == ("delete", f"d:T1/C1:{TS}", TS)
    assert (gone.sender.user_id, gone.subject) == ("U1", read(in_channel()).dedupe_key)
    assert (stone.kind, stone.dedupe_key, stone.sender.user_id) == ("delete", f"d:T1/C1:{TS}", "U1")
    assert bare.sender.user_id is None
    assert gone.place == read(in_channel()).place


def test_a_channel_that_gets_a_new_id_is_a_migration() -> None:
    """Both chats are named as places name them."""
    event = read(around({"type": "channel_id_changed", "old_channel_id": "G1", "new_channel_id": "C5"}))

    assert (event.kind, event.addressed) == ("migration", False)
    assert event.extra == {"old_chat": "T1/G1", "new_chat": "T1/C5"}


def test_workspaces_keep_their_chats_apart() -> None:
    """The same channel id in two workspaces is two chats; guests bring their own name space."""
    other = Me("T2", "UBOT2", "BBOT2", "gatebot")

    assert read(post(), me=other).place.chat == "T2/D1"
    assert read(post(team="T1")).sender.realm == "T1"
    assert read(in_channel(user_team="T9", team="T9")).sender.realm == "T9"


def test_an_organization() -> None:
    """The workspace that the event names, else the organization; its people are the same in all its workspaces."""
    org = Me("E1", "UBOT", "BBOT", "gatebot", enterprise="E1", org_wide=True)
    listed = {"enterprise_id": "E1", "team_id": "T5", "is_enterprise_install": True}
    nameless = {"enterprise_id": "E1", "team_id": None, "is_enterprise_install": True}
    event = post()["event"]

    assert read(around(event, authorizations=[listed]), me=org).place.chat == "T5/D1"
    assert read(around(event, authorizations=[nameless], team_id="T6"), me=org).place.chat == "T6/D1"
    bare = {"type": "event_callback", "event": event, "authorizations": [nameless]}
    assert read(bare, me=org).place.chat == "E1/D1"
    assert read(bare, me=org).sender.realm == "E1"
    inside = Me("T1", "UBOT", enterprise="E1")
    assert read(post(), me=inside).sender.realm == "T1"
    assert read(post(user="W1"), me=inside).sender.realm == "E1"


@pytest.mark.parametrize(
    ("body", "mine"),
    [
        (post(), True),
        (around({}, authorizations=[{"team_id": "T2"}]), False),
        (around({}, authorizations=[{"team_id": "T2"}, {"team_id": "T1"}]), True),
        (around({}, authorizations=[], team_id="T2"), False),
        (around({}, authorizations=[{"team_id": "T1"}], team_id="T9"), True),
        (around({}, authorizations=[{"team_id": None, "enterprise_id": None}]), True),
        (around({}, authorizations=[{"team_id": None, "enterprise_id": "E1"}]), False),
        (command(), True),
        (command(team_id="T2"), False),
        ({"type": "block_actions", "team": {"id": "T1"}}, True),
        ({"type": "block_actions", "team": {"id": "T2"}}, False),
        ({"type": "event_callback"}, True),
    ],
)
def test_whose_an_event_is(body: dict[str, Any], *, mine: bool) -> None:
    """Slack's list of installations decides, then the event itself; what names nobody is ours."""
    assert belongs(body, ME) is mine


def test_an_organization_has_the_events_of_its_workspaces() -> None:
    """They name the organization."""
    org = Me("E1", "UBOT", enterprise="E1", org_wide=True)

    assert belongs(around({}, authorizations=[{"team_id": "T5", "enterprise_id": "E1"}]), org)
    assert not belongs(around({}, authorizations=[{"team_id": "T5", "enterprise_id": "E2"}]), org)


def test_own_posts_and_assistant_threads_are_recognized() -> None:
    """They are no messages, yet they tell something."""
    started = {"type": "assistant_thread_started", "assistant_thread": {"channel_id": "D1", "thread_ts": TS}}

    assert own_post(in_channel(user="UBOT"), ME) == ("C1", TS)
    assert own_post(in_channel(bot_id="BBOT"), ME) == ("C1", TS)
    assert own_post(in_channel(), ME) is None
    assert own_post(command(), ME) is None
    assert assistant_thread(around(started)) == ("D1", TS)
    assert assistant_thread(post(thread_ts=TS, assistant_thread={"action_token": "x"})) == ("D1", TS)
    assert assistant_thread(post()) is None
