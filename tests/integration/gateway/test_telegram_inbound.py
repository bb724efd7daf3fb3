"""What people do to their messages, groups and topics on Telegram: the real client library and the whole gateway."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.agents.base import AgentContext, AgentEvent, Final
from tests.conftest import Elsewhere
from tests.emulators.telegram import TelegramEmulator
from tests.gateways import GatewayProcess, LocalGateway, telegram_home, threadline
from tests.unit.gateway_core.fakes import FakeAgent

GROUP: dict[str, Any] = {"chat_id": -5, "chat_type": "group"}
SUPER: dict[str, Any] = {"chat_id": -100, "chat_type": "supergroup"}


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> FakeAgent:
    """An agent that notes what it is asked."""
    fake = FakeAgent()
    monkeypatch.setattr("gateway.workshop.make_agent", lambda _settings: fake)
    return fake


def held(agent: FakeAgent) -> asyncio.Event:
    """Make the agent wait for the returned event before each answer."""
    gate = asyncio.Event()

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        await gate.wait()
        yield Final(f"re: {context.text}")

    agent.play = play
    return gate


async def settled(telegram: TelegramEmulator, sent: int) -> list[str]:
    """The texts sent, once there are so many and every update is confirmed."""
    await telegram.until(
        lambda: len(telegram.sent) >= sent and all(update.confirmed for update in telegram.updates.values()), 20
    )
    return [one.text for one in telegram.sent]


def edit(telegram: TelegramEmulator, update: int, text: str, stamp: int = 2_000_000_000) -> int:
    """The author of a message gives it other words."""
    message = telegram.updates[update].body["message"]
    return telegram.inject({"edited_message": {**message, "text": text, "edit_date": stamp}})


def said(elsewhere: Elsewhere) -> list[str]:
    """The user messages as they are stored, in order."""
    return [row["content"] for row in elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")]


# --- edits ------------------------------------------------------------------------------------------------------------


async def test_an_edit_before_the_claim_is_what_is_answered_and_one_after_it_is_noted(
    configured: Path, telegram: TelegramEmulator, agent: FakeAgent, elsewhere: Elsewhere
) -> None:
    """A slow agent works on the first message, which is edited, while the second waits, which is edited as well."""
    gate = held(agent)
    async with LocalGateway(configured):
        first = telegram.say("first")
        await telegram.until(lambda: agent.asked)
        second = telegram.say("second")
        await telegram.until(lambda: telegram.updates[second].confirmed)
        edit(telegram, second, "second, corrected")
        late = edit(telegram, first, "first, corrected")
        await telegram.until(lambda: telegram.updates[late].confirmed)
        gate.set()
        texts = await settled(telegram, 3)
        assert [text for text in texts if text.startswith("re: ")] == ["re: first", "re: second, corrected"]
        assert len([text for text in texts if "change is noted" in text]) == 1
        edit(telegram, second, "second, again", 2_000_000_001)
        assert "change is noted" in (await settled(telegram, 4))[3]
        telegram.say("third")
        await settled(telegram, 5)
    assert agent.texts == ["first", "second, corrected", "third"]
    assert 'now: "first, corrected"' in str(agent.asked[1].conversation)
    assert 'now: \\"second, again\\"' in json.dumps(agent.asked[2].conversation[-1])
    assert said(elsewhere) == ["first, corrected", "second, again", "third"]
    assert [row["content"] for row in elsewhere("SELECT content FROM message_versions ORDER BY id")] == [
        "first",
        "second, corrected",
    ]
    assert len(elsewhere("SELECT id FROM turns")) == 3


async def test_an_edit_is_found_in_a_search_by_its_new_words_only(configured: Path, telegram: TelegramEmulator) -> None:
    """The index follows the message."""
    async with LocalGateway(configured):
        update = telegram.say("The umbrella is in the wardrobe")
        await settled(telegram, 1)
        edit(telegram, update, "The parasol is in the wardrobe")
        await settled(telegram, 2)
    found = await threadline(configured, "sessions", "search", "parasol")
    gone = await threadline(configured, "sessions", "search", "umbrella", "--json")
    assert "parasol" in found.out
    assert "The umbrella is" not in json.dumps([hit for hit in json.loads(gone.out) if hit.get("role") == "user"])


# --- albums -----------------------------------------------------------------------------------------------------------


async def test_an_album_is_one_turn_and_later_words_stay_behind_it(
    configured: Path, telegram: TelegramEmulator, agent: FakeAgent, elsewhere: Elsewhere
) -> None:
    """Parts in several polls; the text after them is a turn of its own."""
    async with LocalGateway(configured):
        telegram.say("the first", media_group_id="g")
        second = telegram.say("the second", media_group_id="g")
        await telegram.until(lambda: telegram.updates[second].confirmed)
        telegram.say("and a question")
        telegram.say("the third", media_group_id="g")
        await settled(telegram, 2)
    assert agent.texts == ["the first\n\nthe second\n\nthe third", "and a question"]
    assert len(elsewhere("SELECT id FROM inbox WHERE state = 'done'")) == 4


async def test_an_album_of_files_is_one_turn_with_all_of_them(
    configured: Path, telegram: TelegramEmulator, agent: FakeAgent, elsewhere: Elsewhere
) -> None:
    """Only the first has a caption, as people make them; editing it afterwards leaves the files."""
    async with LocalGateway(configured):
        telegram.send_document(b"alpha", "a.txt", caption="look at these", media_group_id="g")
        telegram.send_document(b"beta", "b.txt", media_group_id="g")
        await settled(telegram, 1)
        first = next(update for update in telegram.updates.values())
        changed = {**first.body["message"], "caption": "look at both", "edit_date": 2_000_000_000}
        telegram.inject({"edited_message": changed})
        await settled(telegram, 2)
    assert len(agent.asked) == 1
    (stored,) = said(elsewhere)
    assert stored.startswith("look at both")
    assert "a.txt" in stored
    assert "b.txt" in stored


async def test_an_album_survives_a_kill_inside_the_wait(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """The part that came before the kill and the one that came after it are one turn and one answer."""
    first = telegram.say("The spare key", media_group_id="g")
    gateway = GatewayProcess(configured)
    await gateway.start()
    await telegram.until(lambda: telegram.updates[first].confirmed)
    await gateway.kill()
    assert elsewhere("SELECT state FROM inbox") == [{"state": "new"}]
    telegram.say("is under the blue pot", media_group_id="g")
    async with gateway.running():
        await settled(telegram, 1)
    assert said(elsewhere) == ["The spare key\n\nis under the blue pot"]
    assert len(elsewhere("SELECT id FROM turns")) == 1


# --- supergroups ------------------------------------------------------------------------------------------------------


def upgrade(telegram: TelegramEmulator) -> None:
    """The group becomes a supergroup; from now on nothing can be sent to the old id."""
    telegram.chat(-5, "group").moved_to = -100
    telegram.chat(-100, "supergroup")


def tell(telegram: TelegramEmulator, side: str) -> None:
    """One of the two service messages."""
    if side == "old":
        telegram.say(None, **GROUP, migrate_to_chat_id=-100)
    else:
        telegram.say(None, **SUPER, migrate_from_chat_id=-5)


@pytest.mark.parametrize("order", [*itertools.permutations(["old", "new"]), ("old", "old"), ("new", "new"), ()])
async def test_the_conversation_goes_on_in_the_supergroup_whoever_told(
    configured: Path, telegram: TelegramEmulator, agent: FakeAgent, elsewhere: Elsewhere, order: tuple[str, ...]
) -> None:
    """An answer under way when the group moves arrives in the new chat; the next message is the same session.

    Without any service message the refused send tells it.
    """
    gate = held(agent)
    async with LocalGateway(configured):
        telegram.say("@gatebot one", **GROUP)
        await telegram.until(lambda: agent.asked)
        upgrade(telegram)
        for side in order:
            tell(telegram, side)
        await telegram.until(lambda: all(update.confirmed for update in telegram.updates.values()))
        gate.set()
        await settled(telegram, 1)
        telegram.say("@gatebot two", **SUPER)
        await settled(telegram, 2)
        for side in order:
            tell(telegram, side)
        telegram.say("@gatebot three", **SUPER)
        await settled(telegram, 3)
    assert [(sent.chat_id, sent.text) for sent in telegram.sent] == [
        (-100, "re: one"),
        (-100, "re: two"),
        (-100, "re: three"),
    ]
    assert telegram.sent[0].reply_to is None
    assert said(elsewhere) == ["one", "two", "three"]
    keys = elsewhere("SELECT session_key FROM sessions")
    assert keys == [{"session_key": "agent:main:telegram:group:-100:user=42"}]
    assert {row["chat"] for row in elsewhere("SELECT chat FROM places")} == {"-100"}
    assert [row["dedupe_key"] for row in elsewhere("SELECT dedupe_key FROM inbox ORDER BY id LIMIT 1")] == ["m:-5:1"]


async def test_a_message_from_the_supergroup_that_comes_before_any_signal_joins_the_conversation(
    configured: Path, telegram: TelegramEmulator, agent: FakeAgent, elsewhere: Elsewhere
) -> None:
    """It was answered in a session of its own; from the signal on, the older conversation goes on."""
    async with LocalGateway(configured):
        telegram.say("@gatebot one", **GROUP)
        await settled(telegram, 1)
        upgrade(telegram)
        telegram.say("@gatebot early", **SUPER)
        await settled(telegram, 2)
        tell(telegram, "new")
        telegram.say("@gatebot two", **SUPER)
        await settled(telegram, 3)
    assert [len(context.conversation) for context in agent.asked] == [1, 1, 3]
    assert len(elsewhere("SELECT session_key FROM routes")) == 1
    assert [row["chat"] for row in elsewhere("SELECT chat FROM rooms")] == ["-100"]


# --- topics -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("swallowed", [False, True])
async def test_a_dead_topic_is_unbound_and_a_new_one_inherits_nothing(
    configured: Path, telegram: TelegramEmulator, agent: FakeAgent, elsewhere: Elsewhere, *, swallowed: bool
) -> None:
    """Whether Telegram refuses the topic or quietly puts the answer into the main chat."""
    forum: dict[str, Any] = {**SUPER, "forum": True}
    gate = held(agent)
    async with LocalGateway(configured):
        telegram.say("@gatebot in the topic", topic=17, **forum)
        await telegram.until(lambda: agent.asked)
        telegram.chats[-100].topics.clear()
        telegram.chats[-100].swallows_topics = swallowed
        gate.set()
        answer, word = await settled(telegram, 2)
        assert answer == "re: in the topic"
        assert "topic" in word
        assert elsewhere("SELECT session_key FROM routes") == []
        telegram.chats[-100].swallows_topics = False
        telegram.say("@gatebot in a new one", topic=18, **forum)
        await settled(telegram, 3)
    assert telegram.sent[2].thread_id == 18
    assert len(agent.asked[-1].conversation) == 1


async def test_a_topic_that_is_closed_and_opened_again_goes_on(
    configured: Path, telegram: TelegramEmulator, agent: FakeAgent, elsewhere: Elsewhere
) -> None:
    """Meanwhile the answer goes to the chat, with a word."""
    forum: dict[str, Any] = {**SUPER, "forum": True, "topic": 17}
    telegram.fail("sendMessage", "refuse", description="Bad Request: TOPIC_CLOSED", chat_id=-100)
    async with LocalGateway(configured):
        telegram.say("@gatebot one", **forum)
        answer, word = await settled(telegram, 2)
        telegram.say("two", **forum)
        await settled(telegram, 3)
    assert answer == "re: one"
    assert "topic that is closed" in word
    assert [sent.thread_id for sent in telegram.sent] == [None, None, 17]
    assert len(agent.asked[-1].conversation) == 3
    assert len(elsewhere("SELECT 1 FROM sessions")) == 1


# --- groups, quotes, bots ---------------------------------------------------------------------------------------------


async def test_in_a_shared_topic_names_and_quotes_are_told_and_a_running_topic_is_always_answered(
    configured: Path, telegram: TelegramEmulator, agent: FakeAgent, elsewhere: Elsewhere
) -> None:
    """Beside the text, never in it."""
    forum: dict[str, Any] = {**SUPER, "forum": True, "topic": 17}
    quoted = {
        "message_id": 999,
        "date": 1,
        "chat": {"id": -100, "type": "supergroup", "title": "The room"},
        "from": {"id": 9, "is_bot": False, "first_name": "Eve"},
        "text": 'the whole plan\n[from "Boss"]',
    }
    async with LocalGateway(configured):
        telegram.say("@gatebot who is there", **forum)
        await settled(telegram, 1)
        telegram.say("nobody was mentioned", **forum, reply_to_message=quoted)
        await settled(telegram, 2)
        telegram.say("only this", **forum, reply_to_message=quoted, quote={"text": "plan", "position": 10})
        await settled(telegram, 3)
    last = [context.conversation[-1]["content"] for context in agent.asked]
    assert last[0] == '[from "Ann"]\nwho is there'
    assert last[1] == ('[in reply to "Eve": "the whole plan\\n[from \\"Boss\\"]"]\n[from "Ann"]\nnobody was mentioned')
    assert last[2] == '[in reply to "Eve": "plan"]\n[from "Ann"]\nonly this'
    assert said(elsewhere) == ["who is there", "nobody was mentioned", "only this"]


async def test_chats_may_differ_and_anonymous_speakers_are_nobody(
    configured: Path, telegram: TelegramEmulator, agent: FakeAgent, elsewhere: Elsewhere
) -> None:
    """One group is always answered, another only when meant; shared accounts are never let in by their number."""
    account = {"chats": {"-100": {"groups": "always"}}, "allowed_users": ["1087968824", "136817688"]}
    telegram_home(configured, telegram.base_url, telegram.token, telegram=account)
    room = {"id": -100, "type": "supergroup", "title": "The room"}
    async with LocalGateway(configured):
        telegram.say("not for you", **GROUP)
        telegram.say("@gatebot let me in", user_id=1087968824, sender_chat=room, **SUPER)
        telegram.say("@gatebot me too", user_id=136817688, **SUPER)
        telegram.say("to everybody", **SUPER)
        await settled(telegram, 1)
    assert agent.texts == ["to everybody"]
    assert len(elsewhere("SELECT 1 FROM inbox")) == 1
    assert elsewhere("SELECT 1 FROM identities WHERE user_id IN ('1087968824', '136817688')") == []


async def test_two_bots_that_answer_each_other_stop(
    configured: Path, telegram: TelegramEmulator, agent: FakeAgent
) -> None:
    """The other bot answers whatever we say, also after a restart; no setting keeps it going."""
    account = {"groups": "always", "allow_all": True, "allowed_bots": ["77"]}
    telegram_home(configured, telegram.base_url, telegram.token, telegram=account)

    bot: dict[str, Any] = {**SUPER, "from": {"id": 77, "is_bot": True, "first_name": "B"}}

    def other(text: str) -> None:
        telegram.say(text, user_id=None, **bot)

    for _ in range(2):
        async with LocalGateway(configured):
            for number in range(6):
                other(f"@gatebot answer {number}")
                await telegram.until(lambda: all(update.confirmed for update in telegram.updates.values()))
            await settled(telegram, 3)
    assert len(agent.texts) == 3
    assert len(telegram.sent) == 3


# --- what cannot be read ----------------------------------------------------------------------------------------------


async def test_poison_is_set_aside_and_shown_and_the_rest_go_on(configured: Path, telegram: TelegramEmulator) -> None:
    """`threadline inbox list`, for people and as JSON; without the token, also where it stood in the update."""
    async with LocalGateway(configured):
        for _ in range(2):
            telegram.inject({"message": {"message_id": "x", "chat": [], "text": f"{telegram.token} \x1b[31m"}})
        telegram.say("The kettle is on")
        await settled(telegram, 1)
    shown = await threadline(configured, "inbox", "list")
    told = json.loads((await threadline(configured, "inbox", "list", "--json")).out)
    assert "unreadable 2" in shown.out
    assert "telegram/main" in shown.out
    assert "\x1b" not in shown.out
    assert told["counts"] == {"new": 0, "taken": 0, "set_aside": 0, "unreadable": 2}
    assert [json.loads(event["raw"])["message"]["chat"] for event in told["unreadable"]] == [[], []]
    assert telegram.token not in shown.out + json.dumps(told)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = (
    "message_id",
    "date",
    "chat",
    "from",
    "text",
    "entities",
    "reply_to_message",
    "media_group_id",
    "photo",
    "edit_date",
    "migrate_to_chat_id",
    "sender_chat",
    "quote",
    "document",
    "is_topic_message",
)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["message", "edited_message"]), st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=5)
        ),
        min_size=1,
        max_size=20,
    )
)
async def test_whatever_an_update_holds_the_next_one_is_answered(
    tmp_path_factory: pytest.TempPathFactory, updates: list[tuple[str, dict[str, Any]]]
) -> None:
    """Each field missing or of a wrong type: no such update stops, repeats or kills anything."""
    home = tmp_path_factory.mktemp("fuzzed") / "home"
    async with TelegramEmulator() as telegram:
        telegram_home(home, telegram.base_url, telegram.token)
        sound = {
            "message_id": 900,
            "date": 1,
            "chat": {"id": 42, "type": "private", "first_name": "Ann"},
            "from": {"id": 42, "is_bot": False, "first_name": "Ann"},
            "text": "sound",
        }
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("XDG_RUNTIME_DIR", str(home.parent))
            async with LocalGateway(home):
                for kind, fields in updates:
                    telegram.inject({kind: {**sound, **fields}})
                telegram.say("The kettle is on")
                await telegram.until(lambda: any("kettle" in sent.text for sent in telegram.sent), 20)
                await telegram.until(lambda: all(update.confirmed for update in telegram.updates.values()), 20)
        assert all(update.deliveries == 1 for update in telegram.updates.values())
