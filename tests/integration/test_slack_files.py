"""Files of Slack messages: the real client library fetches them from an emulated Slack."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest

import adapters.slack.client as client_module
from adapters.base import FetchError, FetchesFiles
from adapters.slack import SlackAdapter
from tests.emulators.slack import SlackEmulator
from tests.emulators.slack_journal import Journal


@pytest.fixture
async def slack() -> AsyncIterator[SlackEmulator]:
    """A Slack."""
    async with SlackEmulator() as emulator:
        yield emulator


@pytest.fixture
def journal() -> Journal:
    """Where messages go."""
    return Journal()


@pytest.fixture
async def adapter(slack: SlackEmulator, journal: Journal) -> AsyncIterator[SlackAdapter]:
    """A started adapter."""
    made = SlackAdapter("main", slack.bot_token, slack.app_token, slack.base_url)
    await made.start(journal.deliver)
    yield made
    await made.stop()


async def fetched(adapter: FetchesFiles, reference: str) -> bytes:
    """Fetch a file whole."""
    pieces: list[bytes] = []

    async def write(piece: bytes) -> None:
        pieces.append(piece)

    await adapter.fetch(reference, write)
    return b"".join(pieces)


async def test_a_file_that_comes_with_a_message_can_be_fetched(
    slack: SlackEmulator, adapter: SlackAdapter, journal: Journal
) -> None:
    """By what the message says of it, whole, however large."""
    data = bytes(range(256)) * 2000
    stored = slack.file(data, "data.bin", "application/octet-stream")
    await slack.confirmed(slack.say("", subtype="file_share", files=[stored.facts]))
    (attachment,) = journal.taken[0].attachments

    assert isinstance(adapter, FetchesFiles)
    assert (attachment.name, attachment.size) == ("data.bin", len(data))
    assert await fetched(adapter, attachment.reference) == data


async def test_a_page_that_somebody_uploaded_is_a_file(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """It is no page to log in."""
    stored = slack.file(b"<html></html>", "page.html", "text/html")

    assert await fetched(adapter, stored.id) == b"<html></html>"


@pytest.mark.parametrize(
    ("gate", "again", "reason"),
    [
        ("login", False, "files:read"),
        ("redirect", False, "files:read"),
        ("missing", False, "404"),
        ("cut", True, "connection"),
    ],
)
async def test_bytes_that_do_not_come(
    slack: SlackEmulator,
    adapter: SlackAdapter,
    gate: Literal["login", "redirect", "missing", "cut"],
    reason: str,
    *,
    again: bool,
) -> None:
    """What is no file is not taken for one; the reason says whether another try may help."""
    stored = slack.file(b"secret", "a.txt")
    stored.gate = gate
    with pytest.raises(FetchError, match=reason) as caught:
        await fetched(adapter, stored.id)

    assert caught.value.again is again


@pytest.mark.parametrize(
    ("fault", "again"),
    [
        ({"error": "file_deleted"}, False),
        ({"error": "missing_scope"}, False),
        ({"error": "internal_error"}, True),
        ({"status": 500}, True),
        ({"status": 429, "headers": {"Retry-After": "7"}}, True),
    ],
)
async def test_a_file_that_slack_does_not_tell_of(
    slack: SlackEmulator, adapter: SlackAdapter, fault: dict[str, Any], *, again: bool
) -> None:
    """A wait that it asks for is told."""
    stored = slack.file(b"secret", "a.txt")
    slack.fail("files.info", "refuse", **fault)
    with pytest.raises(FetchError) as caught:
        await fetched(adapter, stored.id)

    assert caught.value.again is again
    assert caught.value.delay == (7.0 if fault.get("status") == 429 else 0.0)


@pytest.mark.parametrize(
    "url", ["https://slack.com.evil.example/f", "http://files.slack.com/f", "file:///etc/passwd", 5]
)
async def test_the_token_goes_to_nobody_else(slack: SlackEmulator, adapter: SlackAdapter, url: object) -> None:
    """An address that is not Slack's is not asked."""
    stored = slack.file(b"secret", "a.txt", url_private_download=url)
    with pytest.raises(FetchError, match="no address of its own"):
        await fetched(adapter, stored.id)


async def test_what_the_taker_says_is_let_through(slack: SlackEmulator, adapter: SlackAdapter) -> None:
    """Enough is enough."""

    async def full(piece: bytes) -> None:
        raise OverflowError(len(piece))

    stored = slack.file(b"x" * 300_000, "a.txt")
    with pytest.raises(OverflowError):
        await adapter.fetch(stored.id, full)


async def test_without_an_account_nothing_is_fetched(
    slack: SlackEmulator, adapter: SlackAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for, but not for ever."""
    monkeypatch.setattr(client_module, "FIRST_SOCKET_SECONDS", 0.05)
    await adapter.stop()
    with pytest.raises(FetchError, match="not connected") as caught:
        await fetched(adapter, slack.file(b"x", "a.txt").id)

    assert caught.value.again
