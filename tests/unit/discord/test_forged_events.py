"""Events of Discord that are not as they should be: a proper message, none, or a named refusal, and nothing else."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.base import InboundMessage, Place
from adapters.discord.events import Me, called, deleted, edited, said
from adapters.discord.fields import MalformedEvent
from tests.forging import Path, forged, paths

ME = Me("1000", "1000", "91000")
ROOM = Place("discord", "main", "group", "501", name="general")
ANN = {"id": "42", "username": "ann", "global_name": "Ann", "bot": False}
GATEBOT = {"id": "1000", "username": "gatebot", "global_name": None, "bot": True}
FILE = {"id": "5", "filename": "a", "size": 9, "url": "u", "content_type": "image/png"}
PLAIN: dict[str, Any] = {
    "id": "77",
    "channel_id": "501",
    "author": ANN,
    "content": "<@1000> hi <@43> <:party:88>",
    "type": 0,
    "mentions": [GATEBOT, {"id": "43", "username": "bob", "member": {"nick": "Bobby"}}],
    "mention_roles": ["91000"],
    "member": {"nick": "A"},
    "attachments": [FILE],
    "flags": 8192,
    "edited_timestamp": "2026-11-29T10:00:00+00:00",
    "webhook_id": None,
}
ANSWERED = {**PLAIN, "id": "70", "author": GATEBOT, "content": "", "attachments": [FILE]}
MESSAGES: list[dict[str, Any]] = [
    PLAIN,
    {**PLAIN, "type": 19, "message_reference": {"message_id": "70", "type": 0}, "referenced_message": ANSWERED},
    {
        **PLAIN,
        "content": "",
        "message_reference": {"message_id": "9", "type": 1},
        "message_snapshots": [{"message": {"content": "x", "attachments": [FILE], "flags": 0}}],
        "sticker_items": [{"id": "1", "name": "wave"}],
        "poll": {"question": {"text": "Tea?"}},
        "embeds": [{}],
    },
]
COMMAND: dict[str, Any] = {
    "id": "88",
    "type": 2,
    "token": "secret",
    "channel_id": "501",
    "data": {"id": "3", "type": 1, "name": "new", "options": [{"name": "text", "type": 3, "value": "a title"}]},
    "member": {"user": ANN, "nick": None},
}
JSON = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.sampled_from(["7", "\u0667", "-1", "1e3", "\ud83d"]),
    st.sampled_from([[], {}, [1], [None], {"id": 3}, [{}], [[]], [{"message": []}], [{"message": None}]]),
)


def check(read: Callable[[], InboundMessage | None]) -> None:
    """Read it: no other error than the named one, and only honest types."""
    told = None
    with contextlib.suppress(MalformedEvent):
        told = read()
    if told is None:
        return
    words = [told.text, told.message_id, told.dedupe_key, told.sender.name, told.place.name]
    words += [word for file in told.attachments for word in (file.reference, file.name or "", file.media_type or "")]
    words += [told.quoted.text, told.quoted.name] if told.quoted is not None else []
    assert all(isinstance(word, str) for word in words)
    assert all(file.size is None or file.size > 0 for file in told.attachments)
    for number in (told.message_id, told.sender.user_id, told.reply_to):
        assert number is None or (number.isascii() and number.isdigit())
    assert told.place == ROOM
    json.dumps(asdict(told))


@given(
    where=st.sampled_from([(body, path) for body in MESSAGES for path in paths(body)]),
    value=JSON,
    missing=st.booleans(),
)
def test_a_forged_message_is_refused_or_harmless(
    where: tuple[dict[str, Any], Path], value: object, *, missing: bool
) -> None:
    """Any field at any depth missing or of another form, in a message and in an edit."""
    body = forged(*where, value, missing=missing)
    check(lambda: said(body, ROOM, ME, 5.0))
    check(lambda: edited(body, ROOM, ME, 5.0))


@given(path=st.sampled_from(paths(COMMAND)), value=JSON, missing=st.booleans())
def test_a_forged_command_is_refused_or_harmless(path: Path, value: object, *, missing: bool) -> None:
    """The same for slash commands."""
    check(lambda: called(forged(COMMAND, path, value, missing=missing), ROOM, 5.0))


@pytest.mark.parametrize("body", MESSAGES)
def test_the_messages_that_are_forged_are_proper_ones(body: dict[str, Any]) -> None:
    """So that a refusal comes from what was forged."""
    told = said(body, ROOM, ME, 5.0)
    assert told is not None
    assert told.attachments


@given(value=JSON)
def test_a_forged_deletion_is_refused(value: object) -> None:
    """A deletion is only about a number."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        assert deleted(value, ROOM, 5.0).message_id == value
    else:
        with pytest.raises(MalformedEvent):
            deleted(value, ROOM, 5.0)


@given(value=JSON)
def test_what_is_no_object_is_no_event(value: object) -> None:
    """Not even the outermost form is taken on trust."""
    for read in (said, edited):
        with pytest.raises(MalformedEvent):
            read(value, ROOM, ME, 5.0)
    with pytest.raises(MalformedEvent):
        called(value, ROOM, 5.0)
