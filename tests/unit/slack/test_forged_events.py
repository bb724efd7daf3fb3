"""Events of Slack that are not as they should be: a proper message, or a named refusal, and nothing else."""

from __future__ import annotations

import contextlib
import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.slack.events import assistant_thread, inbound, own_post
from adapters.slack.fields import MalformedEvent
from adapters.slack.origin import belongs
from tests.forging import Path, forged, paths
from tests.unit.slack.payloads import KNOWN, ME, NOW, RULES, TS, around, changed, command, in_channel, post, read

RICH = [
    in_channel("<@UBOT> look", thread_ts=TS, parent_user_id="UBOT", team="T1", files=[{"id": "F1", "name": "n"}]),
    post("", attachments=[{"text": "t"}], thread_ts=TS, user_profile={"display_name": "A"}, bot_id="B1", username="u"),
    changed(),
    around({"type": "message", "subtype": "message_deleted", "channel": "C1", "deleted_ts": TS, "ts": TS}),
    around({"type": "channel_id_changed", "old_channel_id": "G1", "new_channel_id": "C5", "event_ts": TS}),
    command(thread_ts=TS),
]
JSON = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.just([]), st.just({}), st.just([1]))


PLACES = [(number, path) for number, body in enumerate(RICH) for path in paths(body)]


@given(where=st.sampled_from(PLACES), value=JSON, missing=st.booleans())
def test_a_forged_event_gives_a_proper_message_or_a_malformed_event(
    where: tuple[int, Path], value: object, *, missing: bool
) -> None:
    """Any field missing or of another form: never a message whose fields are of the wrong type, no other error."""
    number, path = where
    body = forged(RICH[number], path, value, missing=missing)
    message = None
    with contextlib.suppress(MalformedEvent):
        belongs(body, ME)
        message = inbound(body, ME, RULES, KNOWN, NOW)
    own_post(body, ME)
    assistant_thread(body)

    if message is not None:
        facts = (message.place.chat, message.place.thread, message.sender.name, message.text, message.dedupe_key)
        assert all(isinstance(fact, str) for fact in (*facts, message.sender.realm, message.message_id))
        assert message.sender.user_id is None or isinstance(message.sender.user_id, str)
        assert message.place.name is None or isinstance(message.place.name, str)
        team, channel = message.place.chat.split("/")
        assert team
        assert channel
        json.dumps(message.extra)


@pytest.mark.parametrize(
    ("name", "value"),
    [("ts", None), ("ts", 17.5), ("ts", "soon"), ("channel", None), ("channel", "C/1"), ("text", 7), ("user", ["U1"])],
)
def test_what_cannot_be_understood_is_named(name: str, value: object) -> None:
    """It raises; nothing is guessed."""
    with pytest.raises(MalformedEvent, match=f"{name}"):
        read(around(in_channel()["event"] | {name: value}))


def test_reading_changes_nothing() -> None:
    """The payload can still be set aside as it came."""
    before = copy.deepcopy(RICH)
    for body in RICH:
        inbound(body, ME, RULES, KNOWN, NOW)

    assert before == RICH
