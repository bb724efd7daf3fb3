"""Messages that are edited: what each platform has of its own, with its real library against its emulator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from adapters.base import Gone, InboundMessage, OutboundPart, Place, Refused, RetryLater, Verdict
from adapters.discord import DiscordAdapter
from adapters.slack import SlackAdapter
from adapters.slack.formatting import MAX_PLAIN
from adapters.telegram import TelegramAdapter
from tests.emulators.discord import TEXT, THREAD, DiscordEmulator
from tests.emulators.slack import SlackEmulator
from tests.emulators.telegram import TelegramEmulator

ANN = Place("telegram", "main", "dm", "42")
DIRECT = Place("slack", "main", "dm", "T1/D1")
TALK = Place("discord", "main", "thread", THREAD)
BEFORE = OutboundPart(plain="before")
LONG = "word " * MAX_PLAIN


@pytest.fixture
def inbox() -> list[InboundMessage]:
    """What was received."""
    return []


class Deliver:
    """Keeps what comes in."""

    def __init__(self, inbox: list[InboundMessage]) -> None:
        self._inbox = inbox

    async def __call__(self, message: InboundMessage) -> Verdict:
        """Take it."""
        await asyncio.sleep(0)
        self._inbox.append(message)
        return Verdict.ACCEPTED


class TestTelegram:
    """The Bot API."""

    @pytest.fixture
    async def server(self) -> AsyncIterator[TelegramEmulator]:
        """It knows Ann."""
        async with TelegramEmulator() as telegram:
            telegram.chat(42)
            yield telegram

    @pytest.fixture
    async def adapter(self, server: TelegramEmulator, inbox: list[InboundMessage]) -> AsyncIterator[TelegramAdapter]:
        """A started adapter."""
        made = TelegramAdapter("main", server.token, server.base_url)
        await made.start(Deliver(inbox))
        yield made
        await made.stop()

    async def test_formatting_that_is_refused_is_left_out_rather_than_the_words(
        self, server: TelegramEmulator, adapter: TelegramAdapter
    ) -> None:
        """As it is when sent."""
        receipt = await adapter.send(ANN, BEFORE)
        server.fail(
            "editMessageText", "refuse", description="Bad Request: can't parse entities: x", formatted_only=True
        )
        (part,) = adapter.render("**after**")
        await adapter.edit(ANN, receipt.message_id, part)
        assert [(sent.text, sent.entities) for sent in server.sent] == [(part.plain, [])]

    async def test_a_group_that_became_a_supergroup_is_told_as_moved(
        self, server: TelegramEmulator, adapter: TelegramAdapter
    ) -> None:
        """Its messages stay behind."""
        room = Place("telegram", "main", "group", "-5")
        server.chat(-5, "group")
        receipt = await adapter.send(room, BEFORE)
        server.chats[-5].moved_to = -100
        with pytest.raises(Gone) as told:
            await adapter.edit(room, receipt.message_id, OutboundPart(plain="after"))
        assert told.value.moved_to == "-100"

    async def test_groups_put_up_with_fewer_edits_than_direct_chats(self, adapter: TelegramAdapter) -> None:
        """Twenty messages a minute are for everything there."""
        room = Place("telegram", "main", "group", "-5")
        assert 60 / adapter.edit_pause(room) < 20
        assert adapter.edit_pause(ANN) < adapter.edit_pause(room)

    async def test_what_is_no_number_names_no_message(self, server: TelegramEmulator, adapter: TelegramAdapter) -> None:
        """Nothing is asked of the server."""
        with pytest.raises(Refused):
            await adapter.edit(ANN, "1790000000.000001", BEFORE)
        assert "editMessageText" not in [method for method, _ in server.calls]


class TestSlack:
    """The Web API."""

    @pytest.fixture
    async def server(self) -> AsyncIterator[SlackEmulator]:
        """It tells the app of its own posts and edits."""
        async with SlackEmulator() as slack:
            slack.channel("D1")
            slack.echoes = True
            yield slack

    @pytest.fixture
    async def adapter(self, server: SlackEmulator, inbox: list[InboundMessage]) -> AsyncIterator[SlackAdapter]:
        """A started adapter."""
        made = SlackAdapter("main", server.bot_token, server.app_token, server.base_url)
        await made.start(Deliver(inbox))
        yield made
        await made.stop()

    def part(self, plain: str, key: str | None = "tl1") -> OutboundPart:
        """A part with its formatted form."""
        return OutboundPart(plain=plain, payload={"markdown": plain}, idempotency_key=key)

    async def test_own_edits_are_no_input(
        self, server: SlackEmulator, adapter: SlackAdapter, inbox: list[InboundMessage]
    ) -> None:
        """Slack tells of them as it tells of those of people."""
        receipt = await adapter.send(DIRECT, BEFORE)
        await adapter.edit(DIRECT, receipt.message_id, self.part("after"))
        server.say("hello")
        await server.until(lambda: inbox)
        await server.until(lambda: all(event.acked for event in server.events))
        assert [message.text for message in inbox] == ["hello"]

    async def test_formatting_that_is_refused_is_left_out_rather_than_the_words(
        self, server: SlackEmulator, adapter: SlackAdapter
    ) -> None:
        """The plain form takes the place of the message."""
        receipt = await adapter.send(DIRECT, BEFORE)
        server.fail("chat.update", "refuse", error="invalid_blocks", formatted_only=True)
        await adapter.edit(DIRECT, receipt.message_id, self.part("after"))
        assert [(sent.text, sent.markdown) for sent in server.sent] == [("after", None)]

    async def test_a_plain_form_of_several_messages_goes_on_below_also_after_a_wait(
        self, server: SlackEmulator, adapter: SlackAdapter
    ) -> None:
        """What is out stays out, and nothing is posted twice."""
        receipt = await adapter.send(DIRECT, BEFORE)
        server.fail("chat.update", "refuse", error="invalid_blocks", formatted_only=True, times=None)
        # The first takes the place of the message; what belongs below it has to wait.
        waiting = server.flood(7, times=None)
        with pytest.raises(RetryLater):
            await adapter.edit(DIRECT, receipt.message_id, self.part(LONG))
        waiting.times = 0
        await adapter.edit(DIRECT, receipt.message_id, self.part(LONG))
        assert server.sent[0].ts == receipt.message_id
        assert len(server.sent) > 1
        assert "".join(sent.words for sent in server.sent).split() == LONG.split()
        assert len(server.edits) == 1

    async def test_what_is_shown_early_never_becomes_several_messages(
        self, server: SlackEmulator, adapter: SlackAdapter
    ) -> None:
        """It has no key under which it could go on."""
        receipt = await adapter.send(DIRECT, BEFORE)
        server.fail("chat.update", "refuse", error="invalid_blocks", formatted_only=True)
        with pytest.raises(Refused):
            await adapter.edit(DIRECT, receipt.message_id, self.part(LONG, None))
        assert [sent.words for sent in server.sent] == ["before"]

    @pytest.mark.parametrize("error", ["cant_update_message", "edit_window_closed", "message_not_found"])
    async def test_a_message_that_cannot_be_edited_is_not_tried_as_plain_text(
        self, server: SlackEmulator, adapter: SlackAdapter, error: str
    ) -> None:
        """Its form is not what is wrong."""
        receipt = await adapter.send(DIRECT, BEFORE)
        server.fail("chat.update", "refuse", error=error, times=None)
        with pytest.raises(Refused, match=error):
            await adapter.edit(DIRECT, receipt.message_id, self.part("after"))
        assert [method for method, _ in server.calls].count("chat.update") == 1

    async def test_what_was_sent_through_a_response_address_cannot_be_edited(
        self, server: SlackEmulator, adapter: SlackAdapter
    ) -> None:
        """Its receipt names no message of the channel."""
        with pytest.raises(Refused):
            await adapter.edit(DIRECT, "response:1", BEFORE)
        assert "chat.update" not in [method for method, _ in server.calls]


class TestDiscord:
    """REST and gateway."""

    @pytest.fixture
    async def server(self) -> AsyncIterator[DiscordEmulator]:
        """A Discord."""
        async with DiscordEmulator() as discord:
            yield discord

    @pytest.fixture
    async def adapter(self, server: DiscordEmulator, inbox: list[InboundMessage]) -> AsyncIterator[DiscordAdapter]:
        """A started adapter."""
        made = DiscordAdapter("main", server.token, server.api_url, server.gateway_url)
        await made.start(Deliver(inbox))
        yield made
        await made.stop()

    async def test_an_edit_notifies_nobody(self, server: DiscordEmulator, adapter: DiscordAdapter) -> None:
        """Whatever the agent writes."""
        receipt = await adapter.send(TALK, BEFORE)
        await adapter.edit(TALK, receipt.message_id, OutboundPart(plain="@everyone <@42>"))
        (sent,) = server.sent
        assert (sent.text, sent.mentions) == ("@everyone <@42>", {"parse": []})

    async def test_own_edits_are_no_input(
        self, server: DiscordEmulator, adapter: DiscordAdapter, inbox: list[InboundMessage]
    ) -> None:
        """The gateway tells of them as it tells of those of people."""
        receipt = await adapter.send(TALK, BEFORE)
        await adapter.edit(TALK, receipt.message_id, OutboundPart(plain="after"))
        server.say("hello", channel=TEXT)
        await server.until(lambda: inbox)
        assert [message.text for message in inbox] == ["hello"]

    @pytest.mark.parametrize("how", [{"archived": True}, {"locked": True}])
    async def test_nothing_is_edited_in_a_thread_that_was_closed(
        self, server: DiscordEmulator, adapter: DiscordAdapter, how: dict[str, Any]
    ) -> None:
        """A message of its own opens it again, or is refused by itself."""
        receipt = await adapter.send(TALK, BEFORE)
        for name, value in how.items():
            setattr(server.channels[THREAD], name, value)
        with pytest.raises((Gone, Refused)):
            await adapter.edit(TALK, receipt.message_id, OutboundPart(plain="after"))
        assert [sent.text for sent in server.sent] == ["before"]

    async def test_what_is_no_number_names_no_message(self, server: DiscordEmulator, adapter: DiscordAdapter) -> None:
        """Nothing is asked of the server."""
        with pytest.raises(Refused):
            await adapter.edit(TALK, "1790000000.000001", BEFORE)
        assert "edit" not in [operation for operation, _ in server.calls]
