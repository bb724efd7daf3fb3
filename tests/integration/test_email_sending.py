"""The mail adapter sends: the real client library against a real SMTP server."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import pytest

from adapters.base import (
    Gone,
    InboundMessage,
    OutboundPart,
    Place,
    Refused,
    RetryLater,
    SendError,
    StartError,
    UnknownOutcome,
    Verdict,
)
from adapters.email import EmailAdapter, MailAccount, Server, client, sending
from adapters.email.imap import FetchedMail
from adapters.email.mails import Arrival, NotForUs, inbound
from gateway.keys import session_key
from tests.servers.smtp import DROP, HANG, MailServer

THREAD = "first@mail.example.org"
PLACE = Place("email", "main", "dm", "ann@example.org", THREAD, "Deploy script")
PASSWORD = "pässword"  # noqa: S105  (of a server that lives as long as a test)


async def nobody(message: InboundMessage) -> Verdict:
    """Where no mail comes."""
    raise AssertionError(message)


@pytest.fixture
async def smtp() -> AsyncIterator[MailServer]:
    """An SMTP server that asks for no password."""
    async with MailServer() as server:
        yield server


def mailbox(smtp: MailServer) -> MailAccount:
    """An account that sends through the server; nothing listens where it would receive."""
    return MailAccount(
        address="agent@example.org",
        username="agent",
        password=PASSWORD,
        imap=Server("127.0.0.1", 1, "none"),
        smtp=Server("127.0.0.1", smtp.port, "none"),
        trust_from=True,
    )


@pytest.fixture
async def adapter(smtp: MailServer) -> AsyncIterator[EmailAdapter]:
    """An adapter that is started and can send."""
    made = EmailAdapter("main", mailbox(smtp))
    await made.start(nobody)
    yield made
    await made.stop()


def sent(smtp: MailServer) -> EmailMessage:
    """The one mail that the server took."""
    (accepted,) = smtp.accepted
    message = message_from_bytes(accepted.raw, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def content(message: EmailMessage, kind: str) -> str:
    """The text of one form of a mail."""
    part = message.get_body((kind,))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n").rstrip()


async def test_an_answer_stands_in_its_thread_in_both_forms(smtp: MailServer, adapter: EmailAdapter) -> None:
    """Mail programs thread by References; answering machines are told not to answer."""
    (part,) = adapter.render("It is **here**: `bin/deploy`\n\n| a | b |\n|---|---|\n| ü | 中 |")
    receipt = await adapter.send(PLACE, dataclasses.replace(part, reply_to="latest@mail.example.org"))

    message = sent(smtp)
    assert smtp.accepted[0].recipient == "ann@example.org"
    assert (message["From"], message["To"]) == ("agent@example.org", "ann@example.org")
    assert message["Subject"] == "Re: Deploy script"
    assert message["Message-ID"] == f"<{receipt.message_id}>"
    assert message["In-Reply-To"] == "<latest@mail.example.org>"
    assert str(message["References"]).split() == [f"<{THREAD}>", "<latest@mail.example.org>"]
    assert message["Auto-Submitted"] == "auto-replied"
    assert content(message, "plain") == part.plain
    assert "<strong>here</strong>" in content(message, "html")
    assert "<td>ü</td>" in content(message, "html")


async def test_long_ids_are_not_encoded(smtp: MailServer, adapter: EmailAdapter) -> None:
    """The standard library would make encoded words of them, which no mail program can follow."""
    thread = f"{'x' * 150}@mail.example.org"
    await adapter.send(dataclasses.replace(PLACE, thread=thread), OutboundPart("hello"))

    head = smtp.accepted[0].raw.partition(b"\r\n\r\n")[0].decode("ascii")
    assert f"In-Reply-To: <{thread}>\r\n" in head
    assert f"References: <{thread}>\r\n" in head


async def test_a_repeat_is_the_same_mail_and_another_part_is_not(adapter: EmailAdapter) -> None:
    """The id comes from the key, so that a double can be recognised; equal keys of two homes differ."""
    part = OutboundPart("hello", idempotency_key="tl7")
    first, second = [(await adapter.send(PLACE, part)).message_id for _ in range(2)]
    others = [
        await adapter.send(PLACE, dataclasses.replace(part, idempotency_key="tl8")),
        await adapter.send(PLACE, dataclasses.replace(part, plain="another home's words")),
        await adapter.send(dataclasses.replace(PLACE, chat="bob@example.org"), part),
    ]

    assert first == second
    assert len({first, *(receipt.message_id for receipt in others)}) == 4


async def test_control_characters_and_dots_arrive_as_they_are(smtp: MailServer, adapter: EmailAdapter) -> None:
    """Nothing in a text can end the mail or forge a header."""
    text = "a\x00b\n.\nFrom here\n" + "long " * 400 + "\n..\nend"
    place = dataclasses.replace(PLACE, name="Subject\r\nBcc: eve@example.org")
    await adapter.send(place, OutboundPart(text))

    message = sent(smtp)
    assert message.get_content().replace("\r\n", "\n").rstrip() == text
    assert message["Subject"] == "Re: Subject Bcc: eve@example.org"
    assert message["Bcc"] is None


async def test_an_opened_thread_is_the_place_that_answers_carry(smtp: MailServer, adapter: EmailAdapter) -> None:
    """Whatever a mail program keeps of the headers, the answer has the key of the opened thread."""
    place = await adapter.open_thread(dataclasses.replace(PLACE, thread=""), "Trip to Berlin")
    opening = sent(smtp)
    assert (opening["Subject"], opening["Message-ID"]) == ("Trip to Berlin", f"<{place.thread}>")
    smtp.accepted.clear()
    await adapter.send(place, OutboundPart("We can go on here.", idempotency_key="tl1"))
    follow_up = sent(smtp)
    assert (follow_up["Subject"], follow_up["References"]) == ("Re: Trip to Berlin", f"<{place.thread}>")

    answered = str(follow_up["Message-ID"])
    for headers in (
        f"References: <{place.thread}> {answered}\r\nIn-Reply-To: {answered}",
        f"In-Reply-To: {answered}",
        f"References: {answered}",
    ):
        raw = f"From: ann@example.org\r\nMessage-ID: <reply@mail>\r\n{headers}\r\n\r\nfine".encode()
        message = inbound(FetchedMail(1, raw, len(raw)), mailbox(smtp), Arrival("main", 1, 0.0))
        assert not isinstance(message, NotForUs)
        assert message.place == place
        rules = {"group_sessions_per_user": True, "thread_sessions_per_user": False}
        assert session_key(message.place, message.sender.user_id, **rules) == session_key(place, None, **rules)


async def test_what_we_send_is_never_taken_in(smtp: MailServer, adapter: EmailAdapter) -> None:
    """Two gateways that write to each other fall silent at once."""
    await adapter.send(PLACE, OutboundPart("hello"))
    raw = smtp.accepted[0].raw
    other = dataclasses.replace(mailbox(smtp), address="other@example.org")

    assert inbound(FetchedMail(1, raw, len(raw)), other, Arrival("main", 1, 0.0)) == NotForUs("a gateway sent it")


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (("MAIL", "451 4.3.0 try again"), RetryLater, "does not want the mail now"),
        (("MAIL", "550 5.7.1 not yours"), RetryLater, "does not let this account send as agent@example.org"),
        (("MAIL", "552 5.3.4 too big"), Refused, "refused the mail"),
        (("RCPT", "450 4.2.0 greylisted"), RetryLater, "greylisted"),
        (("RCPT", "550 5.1.1 no such user"), Gone, "no such mailbox"),
        (("RCPT", "550 no such user"), Gone, "no such mailbox"),
        (("RCPT", "550 5.7.1 policy"), Refused, "policy"),
        (("DATA", "452 4.3.1 disk full"), RetryLater, "disk full"),
        (("DATA", "554 5.6.0 spam"), Refused, "spam"),
        (("MAIL", DROP), RetryLater, "cannot be reached"),
        (("RCPT", DROP), RetryLater, "cannot be reached"),
        (("DATA", DROP), UnknownOutcome, "failed while sending"),
    ],
)
async def test_every_failure_is_one_kind_of_error(
    smtp: MailServer, adapter: EmailAdapter, answer: tuple[str, str], kind: type[SendError], words: str
) -> None:
    """What is surely not sent is told from what nobody knows, and what may pass from what never will."""
    smtp.answers = dict([answer])
    with pytest.raises(SendError, match=words) as caught:
        await adapter.send(PLACE, OutboundPart("hello"))

    assert type(caught.value) is kind
    smtp.answers.clear()
    await adapter.send(PLACE, OutboundPart("hello"))


async def test_a_refused_sender_stops_the_whole_account(smtp: MailServer, adapter: EmailAdapter) -> None:
    """No other mail would fare better."""
    smtp.answers["MAIL"] = "550 5.7.1 not yours"
    with pytest.raises(RetryLater) as caught:
        await adapter.send(PLACE, OutboundPart("hello"))

    assert caught.value.whole_account


async def test_a_silent_server_is_given_up_by_what_it_may_have(
    smtp: MailServer, adapter: EmailAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the mail was on its way it is surely not sent."""
    monkeypatch.setattr(sending, "STEP_SECONDS", 0.2)
    for step, kind in (("RCPT", RetryLater), ("DATA", UnknownOutcome)):
        smtp.answers = {step: HANG}
        with pytest.raises(SendError) as caught:
            await adapter.send(PLACE, OutboundPart("hello"))
        assert type(caught.value) is kind


async def test_without_a_server_nothing_is_sent(smtp: MailServer, adapter: EmailAdapter) -> None:
    """It is tried again later, and works when the server is back."""
    await smtp.stop()
    with pytest.raises(RetryLater, match="cannot be reached"):
        await adapter.send(PLACE, OutboundPart("hello"))

    await smtp.start()
    await adapter.send(PLACE, OutboundPart("hello"))
    assert len(smtp.accepted) == 1


async def test_an_impossible_address_is_refused(smtp: MailServer, adapter: EmailAdapter) -> None:
    """Nothing else may come out of a place that was made by hand."""
    for chat in ("", "ann", "ann@example.org, bob@example.org", "ann@example.org\r\nBcc: eve@example.org"):
        with pytest.raises(Refused, match="is no mail address"):
            await adapter.send(dataclasses.replace(PLACE, chat=chat), OutboundPart("hello"))

    assert not smtp.accepted


async def test_a_password_is_given_where_it_is_asked_for() -> None:
    """Right: mail goes out. Wrong: the start says so, without quoting it."""
    async with MailServer(logins={"agent": PASSWORD}) as smtp:
        adapter = EmailAdapter("main", mailbox(smtp))
        await adapter.start(nobody)
        await adapter.send(PLACE, OutboundPart("hello"))
        await adapter.stop()
        wrong = EmailAdapter("main", dataclasses.replace(mailbox(smtp), password="wrong-horse"))  # noqa: S106
        with pytest.raises(StartError, match="refused the user name or password of agent") as caught:
            await wrong.start(nobody)

    assert len(smtp.accepted) == 1
    assert "wrong-horse" not in str(caught.value)


async def test_a_password_changed_later_stops_the_account_with_a_sentence() -> None:
    """Answers wait until a person mends it."""
    logins = {"agent": PASSWORD}
    async with MailServer(logins=logins) as smtp:
        adapter = EmailAdapter("main", mailbox(smtp))
        await adapter.start(nobody)
        logins["agent"] = "changed"
        with pytest.raises(RetryLater, match=r"check both under platforms\.email") as caught:
            await adapter.send(PLACE, OutboundPart("hello"))
        await adapter.stop()

    assert caught.value.whole_account


async def test_stop_is_quick_and_honest_about_mails_in_flight(
    smtp: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that the server may have is unknown; one that it cannot have is for later."""
    monkeypatch.setattr(client, "STOP_GRACE", 0.3)
    outcomes: list[BaseException | None] = []
    adapter = EmailAdapter("main", mailbox(smtp))
    for step in ("DATA", "RCPT"):
        smtp.answers = {step: HANG}
        smtp.steps.clear()
        await adapter.start(nobody)
        flying = asyncio.create_task(adapter.send(PLACE, OutboundPart("hello")))
        while step not in smtp.steps:
            await smtp.asked.wait()
            smtp.asked.clear()
        async with asyncio.timeout(5.0):
            await adapter.stop()
        await asyncio.wait([flying])
        outcomes.append(flying.exception())

    assert [type(outcome) for outcome in outcomes] == [UnknownOutcome, RetryLater]
    with pytest.raises(RetryLater, match="not connected"):
        await adapter.send(PLACE, OutboundPart("hello"))


async def test_a_crowd_of_mails_is_sent_without_a_crowd_of_connections(smtp: MailServer, adapter: EmailAdapter) -> None:
    """All arrive."""
    await asyncio.gather(*(adapter.send(PLACE, OutboundPart(str(number))) for number in range(20)))

    assert len(smtp.accepted) == 20


async def test_typing_and_an_empty_answer_do_nothing(smtp: MailServer, adapter: EmailAdapter) -> None:
    """Mail has no typing mark."""
    await adapter.typing(PLACE)

    assert adapter.render("") == []
    assert not smtp.accepted


async def test_a_server_without_encryption_gets_nothing_if_encryption_is_asked_for(smtp: MailServer) -> None:
    """`starttls` never falls back to plain text."""
    account = dataclasses.replace(mailbox(smtp), smtp=Server("127.0.0.1", smtp.port, "starttls"))
    adapter = EmailAdapter("main", account)
    await adapter.start(nobody)
    with pytest.raises(RetryLater):
        await adapter.send(PLACE, OutboundPart("hello"))
    await adapter.stop()

    assert not smtp.accepted
