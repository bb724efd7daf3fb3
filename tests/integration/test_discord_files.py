"""Files of Discord messages: the real client library fetches them from an emulated Discord."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest

import adapters.discord.client as client_module
import adapters.discord.fetching as fetching_module
from adapters.base import FetchError, FetchesFiles, InboundMessage, Verdict
from adapters.discord import DiscordAdapter
from tests.emulators.discord import TEXT, DiscordEmulator
from tests.emulators.discord_state import Stored


@pytest.fixture
async def discord() -> AsyncIterator[DiscordEmulator]:
    """A Discord."""
    async with DiscordEmulator() as emulator:
        yield emulator


@pytest.fixture
def taken() -> list[InboundMessage]:
    """What was delivered."""
    return []


@pytest.fixture
async def adapter(discord: DiscordEmulator, taken: list[InboundMessage]) -> AsyncIterator[DiscordAdapter]:
    """A started adapter."""

    async def deliver(message: InboundMessage) -> Verdict:
        taken.append(message)
        return Verdict.ACCEPTED

    made = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    await made.start(deliver)
    yield made
    await made.stop()


async def fetched(adapter: FetchesFiles, reference: str) -> bytes:
    """Fetch a file whole."""
    pieces: list[bytes] = []

    async def write(piece: bytes) -> None:
        pieces.append(piece)

    await adapter.fetch(reference, write)
    return b"".join(pieces)


def posted(discord: DiscordEmulator, stored: Stored) -> str:
    """Let somebody post a file; returns its reference."""
    return f"{TEXT}/{discord.say('', attachments=[stored.facts])}/{stored.id}"


async def test_a_file_that_comes_with_a_message_can_be_fetched(
    discord: DiscordEmulator, adapter: DiscordAdapter, taken: list[InboundMessage]
) -> None:
    """By what the message says of it, whole, however large."""
    data = bytes(range(256)) * 2000
    reference = posted(discord, discord.file(data, "data.bin", "application/octet-stream"))
    await discord.until(lambda: taken)
    (attachment,) = taken[0].attachments

    assert isinstance(adapter, FetchesFiles)
    assert (attachment.reference, attachment.name, attachment.size) == (reference, "data.bin", len(data))
    assert await fetched(adapter, attachment.reference) == data


async def test_the_files_of_a_forwarded_message_can_be_fetched(
    discord: DiscordEmulator, adapter: DiscordAdapter, taken: list[InboundMessage]
) -> None:
    """They belong to the message that forwards them."""
    stored = discord.file(b"passed on", "note.txt", "text/plain")
    reference = {"type": 1, "message_id": "9", "channel_id": "8"}
    forwarded = [{"message": {"content": "look", "attachments": [stored.facts]}}, {"message": {"content": "and"}}]
    discord.say("", channel=discord.dm(), message_snapshots=forwarded, message_reference=reference)
    await discord.until(lambda: taken)
    (attachment,) = taken[0].attachments

    assert taken[0].text == "[forwarded: look]\n[forwarded: and]"
    assert (attachment.name, attachment.kind, attachment.size) == ("note.txt", "file", 9)
    assert await fetched(adapter, attachment.reference) == b"passed on"


async def test_a_reference_is_good_when_the_address_has_run_out_and_after_a_restart(
    discord: DiscordEmulator, adapter: DiscordAdapter
) -> None:
    """A new address is asked for each time, by whatever process."""
    stored = discord.file(b"lasting", "a.txt", "text/plain")
    reference = posted(discord, stored)
    assert await fetched(adapter, reference) == b"lasting"
    stored.expire()
    await adapter.stop()

    async def deliver(_: InboundMessage) -> Verdict:
        return Verdict.IGNORED

    later = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    await later.start(deliver)
    try:
        assert await fetched(later, reference) == b"lasting"
    finally:
        await later.stop()


@pytest.mark.parametrize(
    ("gate", "again", "reason"),
    [
        ("redirect", False, "302"),
        ("gone", True, "404"),
        ("trouble", True, "503"),
        ("cut", True, "connection"),
    ],
)
async def test_bytes_that_do_not_come(
    discord: DiscordEmulator,
    adapter: DiscordAdapter,
    gate: Literal["redirect", "gone", "trouble", "cut"],
    reason: str,
    *,
    again: bool,
) -> None:
    """What is no file, or not the whole, is not taken for one; the reason says whether another try may help."""
    stored = discord.file(b"secret", "a.txt")
    reference = posted(discord, stored)
    stored.gate = gate
    with pytest.raises(FetchError, match=reason) as caught:
        await fetched(adapter, reference)

    assert caught.value.again is again
    assert "ex=" not in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "again"),
    [
        ({"action": "refuse", "status": 404, "code": 10008}, False),
        ({"action": "refuse", "status": 403, "code": 50013}, False),
        ({"action": "refuse", "status": 400}, True),
        ({"action": "limit", "seconds": 30.0}, True),
        ({"action": "garbage"}, True),
    ],
)
async def test_a_message_that_discord_does_not_tell_of(
    discord: DiscordEmulator, adapter: DiscordAdapter, fault: dict[str, Any], *, again: bool
) -> None:
    """A wait that it asks for is told."""
    reference = posted(discord, discord.file(b"secret", "a.txt"))
    discord.fail("message", **fault)
    with pytest.raises(FetchError) as caught:
        await fetched(adapter, reference)

    assert caught.value.again is again
    assert caught.value.delay == fault.get("seconds", 0.0)


@pytest.mark.parametrize("reference", ["", "a/b/c", "1/2", "501/2/3/4", "../1/2"])
async def test_what_names_no_file_is_not_asked_for(
    discord: DiscordEmulator, adapter: DiscordAdapter, reference: str
) -> None:
    """It is made of three numbers."""
    with pytest.raises(FetchError) as caught:
        await fetched(adapter, reference)

    assert not caught.value.again
    assert "message" not in [name for name, _ in discord.calls]


async def test_a_file_that_was_taken_out_is_told(discord: DiscordEmulator, adapter: DiscordAdapter) -> None:
    """The author may take a file out of a message and leave the words."""
    reference = posted(discord, discord.file(b"x", "a.txt"))
    discord.channels[TEXT].messages[reference.split("/")[1]]["attachments"] = []
    with pytest.raises(FetchError, match="taken out") as caught:
        await fetched(adapter, reference)

    assert not caught.value.again


@pytest.mark.parametrize(
    "url",
    ["https://cdn.discordapp.com.evil.example/f", "http://cdn.discordapp.com/f", "file:///etc/passwd", "http://[", 5],
)
async def test_no_foreign_address_is_asked(discord: DiscordEmulator, adapter: DiscordAdapter, url: object) -> None:
    """Whatever the answer names."""
    stored = discord.file(b"secret", "a.txt")
    stored.address = url
    with pytest.raises(FetchError, match="no address of its own") as caught:
        await fetched(adapter, posted(discord, stored))

    assert not caught.value.again


async def test_what_the_taker_says_is_let_through(discord: DiscordEmulator, adapter: DiscordAdapter) -> None:
    """Enough is enough."""

    async def full(piece: bytes) -> None:
        raise OverflowError(len(piece))

    reference = posted(discord, discord.file(b"x" * 300_000, "a.txt"))
    with pytest.raises(OverflowError):
        await adapter.fetch(reference, full)


async def test_a_server_that_says_nothing_is_left(
    discord: DiscordEmulator, adapter: DiscordAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every wait for it is bounded."""
    monkeypatch.setattr(fetching_module, "WAIT_SECONDS", 0.05)
    stored = discord.file(b"x", "a.txt")
    reference = posted(discord, stored)
    stored.gate = "hang"
    with pytest.raises(FetchError, match="connection") as caught:
        await fetched(adapter, reference)

    assert caught.value.again


async def test_without_an_account_nothing_is_fetched(discord: DiscordEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for, but not for ever."""
    monkeypatch.setattr(client_module, "CONNECT_SECONDS", 0.05)
    adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
    with pytest.raises(FetchError, match="not connected") as caught:
        await fetched(adapter, posted(discord, discord.file(b"x", "a.txt")))

    assert caught.value.again
