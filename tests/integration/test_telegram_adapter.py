"""The Telegram adapter receives: the real client library against an emulated Bot API server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from adapters.base import AdapterState, InboundMessage, StartError, Verdict
from adapters.telegram import TelegramAdapter
from tests.emulators.telegram import TelegramEmulator

BOUND = 5.0


class Gateway:
    """Takes what is delivered, as long as it is let."""

    def __init__(self) -> None:
        self.tried: list[InboundMessage] = []
        self.taken: list[InboundMessage] = []
        self.failing: set[str] = set()
        self.held: set[str] = set()
        self.let_go = asyncio.Event()

    async def deliver(self, message: InboundMessage) -> Verdict:
        """Take a message, fail for texts in `failing`, wait with those in `held`."""
        self.tried.append(message)
        if message.text in self.held:
            await self.let_go.wait()
        if message.text in self.failing:
            raise OSError("disk full")
        self.taken.append(message)
        return Verdict.ACCEPTED

    @property
    def texts(self) -> list[str]:
        """What was taken, in order."""
        return [message.text for message in self.taken]


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramEmulator]:
    """A Bot API server."""
    async with TelegramEmulator() as emulator:
        yield emulator


@pytest.fixture
def gateway() -> Gateway:
    """Where messages go."""
    return Gateway()


@pytest.fixture
async def adapter(telegram: TelegramEmulator) -> AsyncIterator[TelegramAdapter]:
    """An adapter that is not started; stopped at the end."""
    made = TelegramAdapter("main", telegram.token, telegram.base_url)
    yield made
    await made.stop()


async def test_messages_are_delivered_and_then_confirmed(
    telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway
) -> None:
    """What waited before the start comes too; nothing is confirmed before it was taken."""
    gateway.held = {"before"}
    early = telegram.say("before")
    await adapter.start(gateway.deliver)
    assert (adapter.state, adapter.problem) == (AdapterState.CONNECTED, None)

    await telegram.until(lambda: gateway.tried)
    assert not telegram.updates[early].confirmed
    gateway.let_go.set()
    await telegram.until(lambda: telegram.updates[early].confirmed)
    later = telegram.say("after")
    await telegram.until(lambda: telegram.updates[later].confirmed)

    assert gateway.texts == ["before", "after"]
    assert telegram.updates[early].deliveries == 1
    assert ("deleteWebhook", {"drop_pending_updates": "false"}) in telegram.calls


async def test_one_update_delivered_three_times_keeps_its_key(telegram: TelegramEmulator, gateway: Gateway) -> None:
    """A failed delivery and a restart in the middle of one lose nothing and change no key."""
    first = TelegramAdapter("main", telegram.token, telegram.base_url)
    gateway.failing = {"hello"}
    number = telegram.say("hello")
    await first.start(gateway.deliver)
    await telegram.until(lambda: gateway.tried)
    gateway.held, gateway.failing = {"hello"}, set()
    await telegram.until(lambda: telegram.updates[number].deliveries == 2)
    await first.stop()
    assert not telegram.updates[number].confirmed

    gateway.held = set()
    second = TelegramAdapter("main", telegram.token, telegram.base_url)
    await second.start(gateway.deliver)
    await telegram.until(lambda: telegram.updates[number].confirmed)
    await second.stop()

    assert telegram.updates[number].deliveries == 3
    assert {message.dedupe_key for message in gateway.tried} == {"m:42:1"}
    assert gateway.texts == ["hello"]


async def test_one_message_in_several_updates_has_one_key(
    telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway
) -> None:
    """The key is the message's, not the update's: numbers of updates are not for ever."""
    body = telegram.updates[telegram.say("hello")].body
    last = [telegram.inject({"message": body["message"]}) for _ in range(2)][-1]
    await adapter.start(gateway.deliver)
    await telegram.until(lambda: telegram.updates[last].confirmed)

    assert [message.dedupe_key for message in gateway.taken] == ["m:42:1"] * 3


async def test_a_failed_delivery_is_tried_again_and_holds_up_only_its_own_chat(
    telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway
) -> None:
    """Other chats go on and are not delivered twice; later words of the same chat wait for the earlier ones."""
    gateway.failing = {"one"}
    one, two = telegram.say("one"), telegram.say("two")
    other = telegram.say("other", chat_id=7)
    await adapter.start(gateway.deliver)
    await telegram.until(lambda: telegram.updates[one].deliveries == 2)

    assert adapter.state is AdapterState.RETRYING
    assert "disk full" in (adapter.problem or "")
    assert gateway.texts == ["other"]
    assert not telegram.updates[one].confirmed
    gateway.failing = set()
    await telegram.until(lambda: telegram.updates[other].confirmed)
    assert gateway.texts == ["other", "one", "two"]
    assert telegram.updates[two].confirmed
    await telegram.until(lambda: adapter.state is AdapterState.CONNECTED)


async def test_chats_do_not_wait_for_each_other(
    telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway
) -> None:
    """A slow delivery in one chat does not keep back the others of the batch; order within a chat is kept."""
    gateway.held = {"a1"}
    for text, chat in (("a1", 1), ("b1", 2), ("a2", 1), ("b2", 2)):
        telegram.say(text, chat_id=chat)
    await adapter.start(gateway.deliver)
    await telegram.until(lambda: gateway.texts == ["b1", "b2"])
    gateway.let_go.set()
    await telegram.until(lambda: all(update.confirmed for update in telegram.updates.values()))

    assert gateway.texts == ["b1", "b2", "a1", "a2"]


async def test_a_poison_update_is_set_aside_visibly(
    telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway
) -> None:
    """It is logged as it came and confirmed; its neighbours are delivered, and the server is not hammered."""
    poison = telegram.inject({"message": {"message_id": "?", "chat": 5}})
    good = telegram.say("good")
    with capture_logs() as logs:
        await adapter.start(gateway.deliver)
        await telegram.until(lambda: telegram.updates[good].confirmed)

    assert gateway.texts == ["good"]
    assert telegram.updates[poison].confirmed
    (note,) = [entry for entry in logs if entry["event"] == "telegram_update_set_aside"]
    assert f'"update_id": {poison}' in note["update"]
    assert [method for method, _ in telegram.calls].count("getUpdates") == 2


async def test_what_is_not_for_us_is_confirmed_and_ignored(
    telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway
) -> None:
    """Service messages and unknown kinds of updates block nothing."""
    telegram.say(None, chat_id=-7, chat_type="group", new_chat_members=[{"id": 8, "is_bot": False, "first_name": "B"}])
    telegram.inject({"brand_new_kind": {"what": "ever"}})
    last = telegram.say("talk")
    await adapter.start(gateway.deliver)
    await telegram.until(lambda: telegram.updates[last].confirmed)

    assert gateway.texts == ["talk"]
    assert all(update.confirmed for update in telegram.updates.values())


async def test_an_edit_comes_as_an_edit(telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway) -> None:
    """It is not a second message."""
    number = telegram.say("better", kind="edited_message", edit_date=1_790_000_000)
    await adapter.start(gateway.deliver)
    await telegram.until(lambda: telegram.updates[number].confirmed)

    (edit,) = gateway.taken
    assert (edit.kind, edit.dedupe_key) == ("edit", "e:42:1:1790000000")


async def test_a_wrong_token_is_told_without_quoting_it(telegram: TelegramEmulator, gateway: Gateway) -> None:
    """It is a matter of the configuration: one sentence, no retry, no secret."""
    adapter = TelegramAdapter("main", "4711:wrong-secret", telegram.base_url)
    with pytest.raises(StartError, match="refused the token of account 'main'") as caught:
        await adapter.start(gateway.deliver)

    assert "wrong-secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert adapter.state is AdapterState.STOPPED


async def test_a_wrong_address_is_told(gateway: Gateway) -> None:
    """An address that is none cannot get better by waiting."""
    adapter = TelegramAdapter("main", "4711:x", "api.telegram.org/bot")
    with pytest.raises(StartError, match="no address of a Telegram server"):
        await adapter.start(gateway.deliver)


async def test_start_without_network_goes_on_in_the_background(telegram: TelegramEmulator, gateway: Gateway) -> None:
    """The daemon comes up all the same; the account connects when the server is there."""
    port, base_url = telegram.port, telegram.base_url
    await telegram.stop()
    adapter = TelegramAdapter("main", telegram.token, base_url)
    await adapter.start(gateway.deliver)
    assert adapter.state is AdapterState.RETRYING
    assert "cannot be reached" in (adapter.problem or "")

    await telegram.start(port)
    telegram.say("now")
    await telegram.until(lambda: gateway.texts == ["now"])
    assert (adapter.state, adapter.problem) == (AdapterState.CONNECTED, None)
    await adapter.stop()


async def test_an_outage_is_survived(telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway) -> None:
    """While the server is away the state says so; afterwards everything arrives, once."""
    await adapter.start(gateway.deliver)
    port = telegram.port
    await telegram.stop()
    telegram.say("said meanwhile")
    await telegram.start(port)
    await telegram.until(lambda: gateway.texts == ["said meanwhile"])
    await telegram.until(lambda: telegram.updates[max(telegram.updates)].confirmed)

    assert gateway.texts == ["said meanwhile"]


async def test_server_errors_and_garbage_are_retried(
    telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway
) -> None:
    """Whatever the server answers to a poll, the loop goes on, with pauses."""
    telegram.fail("getUpdates", "refuse", status=502, description="Bad Gateway")
    telegram.fail("getUpdates", "garbage")
    number = telegram.say("through")
    await adapter.start(gateway.deliver)
    await telegram.until(lambda: adapter.state is AdapterState.RETRYING)
    await telegram.until(lambda: telegram.updates[number].confirmed)

    assert gateway.texts == ["through"]
    assert [method for method, _ in telegram.calls].count("getUpdates") == 4


async def test_a_second_reader_is_named(telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway) -> None:
    """Two programs with one token cannot both read; the one that is cut off says why."""
    rival = TelegramAdapter("main", telegram.token, telegram.base_url)
    await adapter.start(gateway.deliver)
    await telegram.until(lambda: telegram.calls[-1][0] == "getUpdates")
    await rival.start(gateway.deliver)
    await telegram.until(lambda: adapter.state is AdapterState.RETRYING or rival.state is AdapterState.RETRYING)

    (cut_off,) = [one for one in (adapter, rival) if one.state is AdapterState.RETRYING]
    assert "Another program reads this bot's messages with the same token" in (cut_off.problem or "")
    await rival.stop()


async def test_a_webhook_in_the_way_is_removed(
    telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway
) -> None:
    """Polling is taken back from a webhook, and what waits is kept."""
    telegram.fail(
        "getUpdates",
        "refuse",
        status=409,
        description="Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete it",
    )
    telegram.say("kept")
    await adapter.start(gateway.deliver)
    await telegram.until(lambda: gateway.texts == ["kept"])

    assert telegram.calls.count(("deleteWebhook", {"drop_pending_updates": "false"})) == 2


async def test_a_token_revoked_later_shows_as_failed(
    telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway
) -> None:
    """Nobody but a person can mend it, so the state says failed and what to do."""
    await adapter.start(gateway.deliver)
    del telegram.bots[telegram.token]
    await telegram.stop()
    await telegram.start(telegram.port)
    await telegram.until(lambda: adapter.state is AdapterState.FAILED)

    assert "BotFather" in (adapter.problem or "")


async def test_stop_ends_the_long_poll_at_once_and_twice_is_fine(
    telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway
) -> None:
    """Also while a delivery hangs; what was not taken stays with Telegram."""
    gateway.held = {"stuck"}
    number = telegram.say("stuck")
    await adapter.start(gateway.deliver)
    await telegram.until(lambda: gateway.tried)
    async with asyncio.timeout(BOUND):
        await adapter.stop()
        await adapter.stop()

    assert adapter.state is AdapterState.STOPPED
    assert not telegram.updates[number].confirmed
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "telegram receiver"]


async def test_a_stopped_adapter_can_start_again(
    telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway
) -> None:
    """A supervisor may restart it."""
    await adapter.start(gateway.deliver)
    await adapter.stop()
    await adapter.start(gateway.deliver)
    telegram.say("again")
    await telegram.until(lambda: gateway.texts == ["again"])


async def test_the_token_is_never_logged(
    telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even with debugging on: it is part of every address that the HTTP library would log."""
    caplog.set_level(logging.DEBUG)
    telegram.fail("getUpdates", "drop")
    with capture_logs() as logs:
        await adapter.start(gateway.deliver)
        telegram.say("hello")
        await telegram.until(lambda: gateway.taken)

    assert telegram.token not in caplog.text
    assert telegram.token not in repr(logs)


@pytest.mark.parametrize("told", [["soon"], "soon", -1, 10**18, float("nan")])
async def test_a_wait_that_makes_no_sense_does_not_end_receiving(
    telegram: TelegramEmulator, adapter: TelegramAdapter, gateway: Gateway, told: object
) -> None:
    """Whatever stands before the platform says; the next try comes soon."""
    refused = telegram.fail(
        "getUpdates", "refuse", status=429, description="Too Many Requests", parameters={"retry_after": told}
    )
    with capture_logs() as logs:
        await adapter.start(gateway.deliver)
        telegram.say("one")
        await telegram.until(lambda: gateway.texts == ["one"], BOUND)
    assert refused.times == 0
    assert not [entry for entry in logs if entry["event"] == "telegram_receiver_ended"]
