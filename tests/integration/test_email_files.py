"""Attachments of mails: read again from a real IMAP server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from email.message import EmailMessage
from email.policy import SMTP

import pytest

from adapters.base import Attachment, FetchError, FetchesFiles
from adapters.email import EmailAdapter, fetching, receiving
from tests.servers.dovecot import Dovecot, missing
from tests.servers.mailbox import DONE, Box, Gateway
from tests.servers.smtp import MailServer

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

DATA = bytes(range(256)) * 3000


@pytest.fixture(scope="module")
def dovecot() -> Iterator[Dovecot]:
    """An IMAP server."""
    with Dovecot() as server:
        yield server


@pytest.fixture
async def smtp() -> AsyncIterator[MailServer]:
    """An SMTP server that asks for no password."""
    async with MailServer() as server:
        yield server


@pytest.fixture
def box(dovecot: Dovecot, smtp: MailServer) -> Box:
    """A mailbox of its own."""
    return Box(dovecot, smtp)


@pytest.fixture
def gateway() -> Gateway:
    """Where messages go."""
    return Gateway()


@pytest.fixture
async def adapter(box: Box, gateway: Gateway) -> AsyncIterator[EmailAdapter]:
    """A started adapter."""
    made = EmailAdapter("main", box.account)
    await made.start(gateway.deliver)
    yield made
    await made.stop()


def mail() -> EmailMessage:
    """A mail with words."""
    message = EmailMessage(policy=SMTP)
    message["From"], message["Subject"], message["Message-ID"] = "ann@example.org", "Files", "<f1@x>"
    message.set_content("see these")
    return message


async def arrived(box: Box, gateway: Gateway, message: EmailMessage) -> tuple[Attachment, ...]:
    """Let a mail come in; returns its attachments."""
    await box.put(message.as_bytes())
    await gateway.until(lambda: gateway.taken)
    return gateway.taken[0].attachments


async def fetched(adapter: FetchesFiles, reference: str) -> bytes:
    """Fetch a file whole."""
    pieces: list[bytes] = []

    async def write(piece: bytes) -> None:
        pieces.append(piece)

    await adapter.fetch(reference, write)
    return b"".join(pieces)


async def test_attachments_are_fetched_as_they_were_sent(box: Box, adapter: EmailAdapter, gateway: Gateway) -> None:
    """Whatever packs them, at whatever depth, whole; also the form of a mail in a mail and an empty file."""
    message = mail()
    message.add_alternative("<p>see these</p>", subtype="html")
    message.add_attachment(DATA, maintype="application", subtype="octet-stream", filename="data.bin")
    message.add_attachment("grüße = gut\r\n" * 50, filename="notes.txt", cte="quoted-printable")
    message.add_attachment(b"plain\r\nlines\r\n", maintype="text", subtype="x-log", filename="a.log", cte="7bit")
    message.add_attachment(b"", maintype="image", subtype="png", filename="empty.png")
    inner = mail()
    inner.add_attachment(b"deep", maintype="image", subtype="png", filename="deep.png")
    message.add_attachment(inner)
    files = await arrived(box, gateway, message)

    assert isinstance(adapter, FetchesFiles)
    assert [file.name for file in files] == ["data.bin", "notes.txt", "a.log", "empty.png", "Files"]
    assert await fetched(adapter, files[0].reference) == DATA
    assert (await fetched(adapter, files[1].reference)).decode().split() == ["grüße", "=", "gut"] * 50
    assert (await fetched(adapter, files[2].reference)).split() == [b"plain", b"lines"]
    assert await fetched(adapter, files[3].reference) == b""
    assert b"deep.png" in await fetched(adapter, files[4].reference)


async def test_a_mail_that_is_an_attachment_alone(box: Box, adapter: EmailAdapter, gateway: Gateway) -> None:
    """Its only part is the first."""
    message = EmailMessage(policy=SMTP)
    message["From"], message["Subject"] = "ann@example.org", "A picture"
    message.set_content(DATA, maintype="image", subtype="png", filename="cat.png")
    (file,) = await arrived(box, gateway, message)

    assert await fetched(adapter, file.reference) == DATA


async def test_an_attachment_is_whole_though_only_the_beginning_of_its_mail_was_looked_at(
    box: Box, adapter: EmailAdapter, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And however many pieces it comes in."""
    monkeypatch.setattr(receiving, "MOST_BYTES", 2000)
    monkeypatch.setattr(fetching, "PIECE_BYTES", 100_000)
    message = mail()
    message.add_attachment(DATA, maintype="image", subtype="png", filename="cat.png")
    (file,) = await arrived(box, gateway, message)

    assert (file.size, await fetched(adapter, file.reference)) == (None, DATA)


async def test_attachments_behind_what_was_read_of_a_large_mail_are_known_and_fetched(
    box: Box, adapter: EmailAdapter, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server tells what parts there are: the same, with the same names and numbers, as in a mail read whole."""
    message = mail()
    message.add_alternative("<p>see these</p>", subtype="html")
    message.add_attachment(DATA, maintype="application", subtype="octet-stream", filename="first (1).bin")
    message.add_attachment("grüße", filename="grüße, 日本.txt", cte="quoted-printable")
    inner = mail()
    inner.add_attachment(b"deep", maintype="image", subtype="png", filename="deep.png")
    message.add_attachment(inner)
    message.add_attachment(DATA[::-1], maintype="image", subtype="png", filename='say "cheese"\\.png')
    whole = await arrived(box, gateway, message)
    gateway.taken.clear()
    monkeypatch.setattr(receiving, "MOST_BYTES", 3000)
    message.replace_header("Message-ID", "<f2@x>")
    files = await arrived(box, gateway, message)

    assert len(files) == 4
    assert [(file.name, file.kind, file.media_type) for file in files] == [
        (file.name, file.kind, file.media_type) for file in whole
    ]
    assert await fetched(adapter, files[3].reference) == DATA[::-1]
    assert "[This mail is so large that its end was not read; words may be missing.]" in gateway.texts[0]


async def test_a_reference_is_good_after_a_restart_and_reads_nothing_for_people(
    box: Box, adapter: EmailAdapter, gateway: Gateway
) -> None:
    """The mail keeps the marks it had."""
    message = mail()
    message.add_attachment(b"lasting", maintype="image", subtype="png", filename="a.png")
    (file,) = await arrived(box, gateway, message)
    await box.marked(DONE)
    await adapter.stop()
    later = EmailAdapter("main", box.account)
    await later.start(gateway.deliver)
    try:
        assert await fetched(later, file.reference) == b"lasting"
    finally:
        await later.stop()
    assert await box.flags() == [DONE]


async def test_what_is_not_there_any_more_is_told(box: Box, adapter: EmailAdapter, gateway: Gateway) -> None:
    """A mail that was deleted, a folder that was made anew, a reference that is none."""
    message = mail()
    message.add_attachment(b"x", maintype="image", subtype="png", filename="a.png")
    (file,) = await arrived(box, gateway, message)
    validity, uid, section, encoding = file.reference.split("/")
    for reference, reason in (
        (f"{validity}/{int(uid) + 7}/{section}/{encoding}", "not in the mailbox"),
        (f"{int(validity) + 1}/{uid}/{section}/{encoding}", "anew"),
        (f"{validity}/{uid}/2] BODY[1/{encoding}", "no attachment"),
        ("", "no attachment"),
    ):
        with pytest.raises(FetchError, match=reason) as caught:
            await fetched(adapter, reference)
        assert not caught.value.again


async def test_what_the_taker_says_is_let_through(box: Box, adapter: EmailAdapter, gateway: Gateway) -> None:
    """Enough is enough."""

    async def full(piece: bytes) -> None:
        raise OverflowError(len(piece))

    message = mail()
    message.add_attachment(DATA, maintype="image", subtype="png", filename="a.png")
    (file,) = await arrived(box, gateway, message)
    with pytest.raises(OverflowError):
        await adapter.fetch(file.reference, full)


async def test_a_mailbox_that_is_away_is_tried_again(
    box: Box, smtp: MailServer, adapter: EmailAdapter, gateway: Gateway
) -> None:
    """Whether the server is away, or the account has been stopped."""
    message = mail()
    message.add_attachment(b"x", maintype="image", subtype="png", filename="a.png")
    (file,) = await arrived(box, gateway, message)
    await adapter.stop()
    with pytest.raises(FetchError, match="not connected") as caught:
        await fetched(adapter, file.reference)
    assert caught.value.again
    with Dovecot() as passing:
        away = Box(passing, smtp)
        other = EmailAdapter("main", away.account)
        await other.start(gateway.deliver)
    try:
        with pytest.raises(FetchError, match="cannot be read now") as caught:
            await fetched(other, file.reference)
        assert caught.value.again
    finally:
        await other.stop()
