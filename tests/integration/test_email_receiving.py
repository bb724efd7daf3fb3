"""The mail adapter receives: against a real IMAP server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator

import pytest
from structlog.testing import capture_logs

from adapters.base import AdapterState, Reports, StartError, Unreadable, Verdict
from adapters.email import EmailAdapter, Server, receiving
from adapters.email.imap import FetchedMail, ImapClient
from tests.servers.dovecot import PASSWORD, Dovecot, missing
from tests.servers.letters import letter
from tests.servers.mailbox import DONE, KEYWORD, Box, Gateway, eventually
from tests.servers.smtp import MailServer

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

DAY = 86_400.0
NEW: frozenset[str] = frozenset()
#: Flags of a mail that nobody here has read.
PASSED_BY = frozenset({KEYWORD})


@pytest.fixture(scope="module")
def dovecot() -> Iterator[Dovecot]:
    """An IMAP server."""
    with Dovecot() as server:
        yield server


@pytest.fixture
def passing_dovecot() -> Iterator[Dovecot]:
    """An IMAP server that the test may end."""
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
async def adapter(box: Box) -> AsyncIterator[EmailAdapter]:
    """An adapter that is not started; stopped at the end."""
    made = EmailAdapter("main", box.account)
    yield made
    await made.stop()


async def test_mails_are_delivered_and_then_marked(box: Box, adapter: EmailAdapter, gateway: Gateway) -> None:
    """What waited before the start comes too; nothing is marked before it was taken; later mail is pushed."""
    gateway.held = {"before"}
    await box.put(letter("before"))
    await adapter.start(gateway.deliver)
    assert (adapter.state, adapter.problem) == (AdapterState.CONNECTED, None)

    await gateway.until(lambda: gateway.tried)
    assert await box.flags() == [NEW]
    gateway.let_go.set()
    await box.marked(DONE)
    await box.put(letter("after"))
    await gateway.until(lambda: gateway.texts == ["before", "after"])
    await box.marked(DONE, DONE)


async def test_mail_that_comes_while_another_is_handled_is_not_forgotten(
    box: Box, adapter: EmailAdapter, gateway: Gateway
) -> None:
    """The server reports it between two commands, and never again."""
    gateway.held = {"first"}
    await box.put(letter("first"))
    await adapter.start(gateway.deliver)
    await gateway.until(lambda: gateway.tried)
    await box.put(letter("second"))
    gateway.let_go.set()

    await gateway.until(lambda: gateway.texts == ["first", "second"])


async def test_many_mails_come_in_order(box: Box, adapter: EmailAdapter, gateway: Gateway) -> None:
    """More than one batch, from two people; each one's mails keep their order."""
    senders = ("ann@example.org", "bob@example.org")
    await box.put(*(letter(str(number), sender=senders[number % 2]) for number in range(45)))
    await adapter.start(gateway.deliver)
    await gateway.until(lambda: len(gateway.taken) == 45)
    await box.marked(*[DONE] * 45)

    for remainder in (0, 1):
        numbers = [int(text) for text in gateway.texts if int(text) % 2 == remainder]
        assert numbers == list(range(remainder, 45, 2))


async def test_one_mail_delivered_three_times_keeps_its_key(box: Box, gateway: Gateway) -> None:
    """A failed delivery and a restart in the middle of one lose nothing and change no key."""
    gateway.failing = {"hello"}
    await box.put(letter("hello", Message_ID="<hello@mail.example.org>"))
    first = EmailAdapter("main", box.account)
    await first.start(gateway.deliver)
    await gateway.until(lambda: gateway.tried)
    gateway.held, gateway.failing = {"hello"}, set()
    await gateway.until(lambda: len(gateway.tried) == 2)
    await first.stop()
    assert await box.flags() == [NEW]

    gateway.held = set()
    second = EmailAdapter("main", box.account)
    await second.start(gateway.deliver)
    await box.marked(DONE)
    await second.stop()
    assert {message.dedupe_key for message in gateway.tried} == {"m:hello@mail.example.org"}
    assert (len(gateway.tried), gateway.texts) == (3, ["hello"])


async def test_a_server_that_goes_away_between_delivery_and_mark_costs_no_second_delivery(
    passing_dovecot: Dovecot, smtp: MailServer, gateway: Gateway
) -> None:
    """The mail is found again, but this process knows that it was taken, and only marks it."""
    box = Box(passing_dovecot, smtp)
    gateway.held = {"once"}
    await box.put(letter("once"))
    adapter = EmailAdapter("main", box.account)
    await adapter.start(gateway.deliver)
    await gateway.until(lambda: gateway.tried)
    await asyncio.to_thread(passing_dovecot.stop)
    gateway.let_go.set()
    await eventually(lambda: adapter.state is AdapterState.RETRYING)
    assert "cannot be reached" in (adapter.problem or "")

    await asyncio.to_thread(passing_dovecot.start)
    await box.marked(DONE)
    await box.put(letter("and on"))
    await gateway.until(lambda: gateway.texts == ["once", "and on"])
    assert (adapter.state, adapter.problem) == (AdapterState.CONNECTED, None)
    await adapter.stop()


async def test_a_failed_delivery_is_tried_again_and_holds_up_only_its_own_sender(
    box: Box, adapter: EmailAdapter, gateway: Gateway
) -> None:
    """Others go on and are not delivered twice; later words of the same sender wait for the earlier ones."""
    gateway.failing = {"one"}
    await box.put(letter("one"), letter("two"), letter("other", sender="bob@example.org"))
    await adapter.start(gateway.deliver)
    await gateway.until(lambda: [message.text for message in gateway.tried].count("one") == 2)

    assert adapter.state is AdapterState.RETRYING
    assert "disk full" in (adapter.problem or "")
    assert gateway.texts == ["other"]
    gateway.failing = set()
    await box.marked(DONE, DONE, DONE)
    assert gateway.texts == ["other", "one", "two"]
    await eventually(lambda: adapter.state is AdapterState.CONNECTED)


async def test_what_is_not_for_us_stays_unread_and_blocks_nothing(
    box: Box, adapter: EmailAdapter, gateway: Gateway
) -> None:
    """Programs get no answer, so that two of them never talk to each other; people find their mail unread."""
    await box.put(
        letter("I am away", Auto_Submitted="auto-replied"),
        letter("a list", Precedence="bulk"),
        letter("could not be delivered", sender="MAILER-DAEMON@example.org"),
        letter("from myself", sender="Agent@Example.org"),
        letter("from another gateway", X_Threadline="1"),
        letter("a person"),
    )
    await adapter.start(gateway.deliver)
    await box.marked(*[PASSED_BY] * 5, DONE)

    assert gateway.texts == ["a person"]


async def test_a_stranger_s_mail_stays_unread(box: Box, adapter: EmailAdapter, gateway: Gateway) -> None:
    """The gateway said that this sender is not served; the mail is left to whoever reads the mailbox."""
    gateway.verdict = Verdict.DENIED
    await box.put(letter("let me in"))
    await adapter.start(gateway.deliver)

    await box.marked(PASSED_BY)


async def test_only_senders_that_the_server_vouches_for_are_believed(
    dovecot: Dovecot, smtp: MailServer, gateway: Gateway
) -> None:
    """A From is only a claim; the report that counts is the one of our own server."""
    box = Box(dovecot, smtp, trust_from=False, authserv_id="mx.example.org")
    proof = "{}; dmarc=pass (p=none) header.from=example.org"
    await box.put(
        letter("claimed"),
        letter("vouched by somebody else", Authentication_Results=proof.format("mx.evil.test")),
        letter("proven", Authentication_Results=proof.format("mx.example.org")),
    )
    adapter = EmailAdapter("main", box.account)
    with capture_logs() as logs:
        await adapter.start(gateway.deliver)
        await box.marked(PASSED_BY, PASSED_BY, DONE)
    await adapter.stop()

    assert gateway.texts == ["proven"]
    reasons = [entry["reason"] for entry in logs if entry["event"] == "email_ignored"]
    assert reasons == ["the receiving server does not vouch for its author ann@example.org"] * 2


async def test_a_mail_that_cannot_be_understood_is_set_aside_visibly(
    box: Box, adapter: EmailAdapter, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is recorded as it came and then marked, not before; its neighbours are delivered."""
    body = EmailAdapter._parse  # noqa: SLF001  (no mail is known that defeats the parser, yet one may exist)

    def parse(self: EmailAdapter, mail: FetchedMail, uid_validity: int) -> object:
        if b"poison" in mail.raw:
            raise ValueError("poisoned")
        return body(self, mail, uid_validity)

    monkeypatch.setattr(EmailAdapter, "_parse", parse)
    assert isinstance(adapter, Reports)
    recorded: list[Unreadable] = []
    working = False

    async def record(event: Unreadable) -> None:
        if not working:
            raise OSError("disk full")
        recorded.append(event)

    adapter.report_to(record)
    await box.put(letter("poison"), letter("good"))
    await adapter.start(gateway.deliver)
    await box.marked(NEW, DONE)
    await eventually(lambda: adapter.state is AdapterState.RETRYING)
    assert "disk full" in (adapter.problem or "")
    working = True
    await box.marked(PASSED_BY, DONE)

    assert gateway.texts == ["good"]
    (event,) = recorded
    assert (event.platform, event.account, event.reason) == ("email", "main", "poisoned")
    assert "poison" in event.raw


async def test_an_old_mailbox_does_not_come_back_to_life(box: Box, adapter: EmailAdapter, gateway: Gateway) -> None:
    """Only what came within the last two weeks is new."""
    await asyncio.to_thread(box.dovecot.deliver, box.user, letter("long ago"), 20 * DAY)
    await asyncio.to_thread(box.dovecot.deliver, box.user, letter("last week"), 7 * DAY)
    await adapter.start(gateway.deliver)
    await gateway.until(lambda: gateway.taken)
    await box.marked(NEW, DONE)

    assert gateway.texts == ["last week"]


async def test_where_the_server_cannot_push_the_mailbox_is_asked(
    smtp: MailServer, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IDLE is an extension."""
    monkeypatch.setattr(receiving, "POLL_SECONDS", 0.05)
    with Dovecot(more="imap_capability = IMAP4rev1") as plain_dovecot:
        box = Box(plain_dovecot, smtp)
        adapter = EmailAdapter("main", box.account)
        await adapter.start(gateway.deliver)
        await box.put(letter("found"))
        await gateway.until(lambda: gateway.texts == ["found"])
        await adapter.stop()


async def test_idling_begins_anew_before_the_server_hangs_up(
    box: Box, adapter: EmailAdapter, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renewals change nothing."""
    renewals = 0
    ask = ImapClient.search

    async def search(self: ImapClient, criteria: str) -> list[int]:
        nonlocal renewals
        renewals += 1
        return await ask(self, criteria)

    monkeypatch.setattr(receiving, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(ImapClient, "search", search)
    await adapter.start(gateway.deliver)
    await eventually(lambda: renewals > 3)
    await box.put(letter("still here"))

    await gateway.until(lambda: gateway.texts == ["still here"])


@pytest.mark.parametrize("tls", ["tls", "starttls"])
async def test_the_connection_is_encrypted(
    dovecot: Dovecot, smtp: MailServer, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, tls: str
) -> None:
    """From the first byte or by STARTTLS, with a certificate that the system trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(dovecot.certificate))
    port = dovecot.tls_port if tls == "tls" else dovecot.port
    box = Box(dovecot, smtp, imap=Server("localhost", port, "tls" if tls == "tls" else "starttls"))
    await box.put(letter("in secret"))
    adapter = EmailAdapter("main", box.account)
    await adapter.start(gateway.deliver)
    await gateway.until(lambda: gateway.texts == ["in secret"])
    await adapter.stop()


@pytest.mark.parametrize("tls", ["tls", "starttls"])
async def test_a_server_that_nobody_vouches_for_gets_no_password(
    dovecot: Dovecot, smtp: MailServer, gateway: Gateway, tls: str
) -> None:
    """An unknown certificate is named as the problem, and tried again: it may be mended there."""
    port = dovecot.tls_port if tls == "tls" else dovecot.port
    box = Box(dovecot, smtp, imap=Server("localhost", port, "tls" if tls == "tls" else "starttls"))
    adapter = EmailAdapter("main", box.account)
    await adapter.start(gateway.deliver)

    assert adapter.state is AdapterState.RETRYING
    assert "certificate" in (adapter.problem or "")
    await adapter.stop()


async def test_a_wrong_password_is_told_without_quoting_it(
    dovecot: Dovecot, smtp: MailServer, gateway: Gateway
) -> None:
    """It is a matter of the configuration: one sentence, no retry, no secret."""
    adapter = EmailAdapter("main", Box(dovecot, smtp, password="wrong-horse").account)  # noqa: S106  (it is refused)
    with pytest.raises(StartError, match="refused the user name or password of agent") as caught:
        await adapter.start(gateway.deliver)

    assert "wrong-horse" not in str(caught.value)
    assert adapter.state is AdapterState.STOPPED


async def test_a_folder_that_does_not_exist_is_told(dovecot: Dovecot, smtp: MailServer, gateway: Gateway) -> None:
    """Waiting would not make it."""
    adapter = EmailAdapter("main", Box(dovecot, smtp, folder='Gespräche & "mehr"').account)
    with pytest.raises(StartError, match="cannot be opened"):
        await adapter.start(gateway.deliver)


async def test_start_without_network_goes_on_in_the_background(
    passing_dovecot: Dovecot, smtp: MailServer, gateway: Gateway
) -> None:
    """The daemon comes up all the same; the account connects when the server is there."""
    box = Box(passing_dovecot, smtp)
    await box.put(letter("now"))
    await asyncio.to_thread(passing_dovecot.stop)
    adapter = EmailAdapter("main", box.account)
    await adapter.start(gateway.deliver)
    assert adapter.state is AdapterState.RETRYING
    assert "cannot be reached" in (adapter.problem or "")

    await asyncio.to_thread(passing_dovecot.start)
    await gateway.until(lambda: gateway.texts == ["now"])
    await eventually(lambda: (adapter.state, adapter.problem) == (AdapterState.CONNECTED, None))
    await adapter.stop()


async def test_stop_ends_the_wait_at_once_and_twice_is_fine(box: Box, adapter: EmailAdapter, gateway: Gateway) -> None:
    """Also while a delivery hangs; what was not taken stays new."""
    gateway.held = {"stuck"}
    await box.put(letter("stuck"))
    await adapter.start(gateway.deliver)
    await gateway.until(lambda: gateway.tried)
    async with asyncio.timeout(5.0):
        await adapter.stop()
        await adapter.stop()

    assert adapter.state is AdapterState.STOPPED
    assert await box.flags() == [NEW]
    assert not [task for task in asyncio.all_tasks() if task.get_name() in {"email receiver", "imap reader"}]


async def test_a_stopped_adapter_can_start_again(box: Box, adapter: EmailAdapter, gateway: Gateway) -> None:
    """A supervisor may restart it, but not start it twice."""
    await adapter.start(gateway.deliver)
    with pytest.raises(RuntimeError, match="started already"):
        await adapter.start(gateway.deliver)
    await adapter.stop()
    await adapter.start(gateway.deliver)
    await box.put(letter("again"))

    await gateway.until(lambda: gateway.texts == ["again"])


async def test_the_password_is_never_logged(
    box: Box, adapter: EmailAdapter, gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even with debugging on."""
    caplog.set_level(logging.DEBUG)
    with capture_logs() as logs:
        await adapter.start(gateway.deliver)
        await box.put(letter("hello"))
        await gateway.until(lambda: gateway.taken)

    assert PASSWORD not in caplog.text + repr(logs) + repr(box.account) + repr(adapter)
