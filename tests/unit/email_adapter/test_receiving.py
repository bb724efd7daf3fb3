"""What the receiver does with servers that can less than others, or say no."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import pytest

from adapters.base import AdapterState
from adapters.email import EmailAdapter, MailAccount, Server, receiving
from adapters.email.mails import NotForUs
from adapters.email.receiving import Misconfigured, Receiver
from tests.servers.letters import letter
from tests.servers.mailbox import BOUND, Gateway, eventually
from tests.servers.scripted_imap import Script, serving

ONE_MAIL = letter("hello", Message_ID="<hello@x>")
FETCH = b"* 1 FETCH (UID 4 RFC822.SIZE %d BODY[]<0> {%d}\r\n%b)\r\n{tag} OK\r\n" % (
    len(ONE_MAIL),
    len(ONE_MAIL),
    ONE_MAIL,
)
SEARCH = b"* SEARCH 4\r\n{tag} OK\r\n"
NO_PUSH = b"* CAPABILITY IMAP4rev1\r\n{tag} OK\r\n"


def account(server: Server) -> MailAccount:
    """An account on the server; nothing listens where it would send."""
    return MailAccount(
        address="agent@example.org",
        username="agent",
        password="secret",  # noqa: S106  (the script takes any)
        imap=server,
        smtp=Server("127.0.0.1", 1, "none"),
        trust_from=True,
    )


@contextlib.asynccontextmanager
async def receiving_from(script: Script) -> AsyncIterator[tuple[EmailAdapter, Gateway]]:
    """An adapter that is started."""
    gateway = Gateway()
    async with serving(script) as server, asyncio.timeout(BOUND):
        adapter = EmailAdapter("main", account(server))
        await adapter.start(gateway.deliver)
        yield adapter, gateway
        await adapter.stop()


async def test_a_server_that_keeps_no_keywords_shows_by_reading_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then unread is new, and whatever was judged is read; a mark that does not stay costs no second delivery."""
    monkeypatch.setattr(receiving, "POLL_SECONDS", 0.01)
    select = b"* OK [UIDVALIDITY 7]\r\n* OK [PERMANENTFLAGS (\\Seen)]\r\n{tag} OK\r\n"
    script = Script({"SELECT": select, "SEARCH": SEARCH, "FETCH": FETCH, "CAPABILITY": NO_PUSH})
    async with receiving_from(script) as (_, gateway):
        await eventually(lambda: sum(b"STORE" in line for line in script.heard) >= 3)

    assert gateway.texts == ["hello"]
    commands = [line.partition(b" ")[2] for line in script.heard]
    assert any(command.startswith(b"UID SEARCH UNSEEN UNDELETED UNDRAFT SINCE ") for command in commands)
    assert b"UID STORE 4 +FLAGS.SILENT (\\Seen)" in commands


async def test_a_server_that_will_not_push_after_all_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a new connection, and without asking it to push again."""
    monkeypatch.setattr(receiving, "POLL_SECONDS", 0.01)
    script = Script({"IDLE": b"{tag} NO not for you\r\n"})
    async with receiving_from(script) as (adapter, _):
        await eventually(lambda: sum(b"NOOP" in line for line in script.heard) >= 3)
        assert adapter.state is AdapterState.CONNECTED

    assert sum(b"IDLE" in line for line in script.heard) == 1
    assert sum(b"LOGIN" in line for line in script.heard) == 1


async def test_mails_that_the_server_finds_and_does_not_give_are_not_asked_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More of them than one batch."""
    monkeypatch.setattr(receiving, "BATCH", 2)
    script = Script({"SEARCH": b"* SEARCH 1 2 3 4 5\r\n{tag} OK\r\n", "FETCH": b"{tag} OK\r\n", "DONE": b""})
    async with receiving_from(script):
        await eventually(lambda: any(b"IDLE" in line for line in script.heard))

    assert sum(b"FETCH" in line for line in script.heard) == 2


async def test_a_mail_that_is_gone_when_it_is_fetched_is_no_trouble() -> None:
    """Somebody else deleted it."""
    script = Script({"SEARCH": SEARCH, "FETCH": b"{tag} OK\r\n", "DONE": b""})
    async with receiving_from(script) as (adapter, gateway):
        await eventually(lambda: any(b"IDLE" in line for line in script.heard))

        assert (adapter.state, gateway.tried) == (AdapterState.CONNECTED, [])


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"LOGIN": b"{tag} NO [AUTHENTICATIONFAILED] wrong\r\n"}, "refused the user name or password"),
        ({"SELECT": b"{tag} NO [NONEXISTENT] none\r\n"}, "cannot be opened"),
        ({"SELECT": b"* OK [UIDVALIDITY 7]\r\n{tag} OK [READ-ONLY] ok\r\n"}, "can only be read"),
        ({"CAPABILITY": b"* CAPABILITY IMAP4rev1 LOGINDISABLED\r\n{tag} OK\r\n"}, "set imap_tls under platforms.email"),
    ],
)
async def test_what_only_a_person_can_mend_is_told(answers: dict[str, bytes | None], words: str) -> None:
    """With the setting to look at; later, when it happens to a running account, as its problem."""
    context = ssl.create_default_context()
    gateway = Gateway()
    states: list[tuple[AdapterState, str | None]] = []
    async with serving(Script(answers)) as server, asyncio.timeout(BOUND):
        receiver = Receiver(
            account(server), context, lambda *_: NotForUs(""), gateway.deliver, lambda *told: states.append(told)
        )
        with pytest.raises(Misconfigured, match=words):
            await receiver.connect()
        running = asyncio.create_task(receiver.run())
        await eventually(lambda: states)
        running.cancel()
        await asyncio.wait([running])

    assert states[0][0] is AdapterState.FAILED
    assert words in (states[0][1] or "")


async def test_a_login_that_only_fails_now_is_tried_again() -> None:
    """The server says so itself."""
    script = Script({"LOGIN": b"{tag} NO [UNAVAILABLE] try later\r\n"})
    async with receiving_from(script) as (adapter, _):
        assert adapter.state is AdapterState.RETRYING
        assert "try later" in (adapter.problem or "")
        del script.answers["LOGIN"]
        await eventually(lambda: adapter.state is AdapterState.CONNECTED)


async def test_a_folder_that_was_made_anew_starts_over() -> None:
    """Its numbers mean other mails now."""
    script = Script({"SEARCH": SEARCH, "FETCH": FETCH, "IDLE": None})
    async with receiving_from(script) as (_, gateway):
        await gateway.until(lambda: gateway.taken)
        script.answers["SELECT"] = b"* OK [UIDVALIDITY 8]\r\n* OK [PERMANENTFLAGS (\\*)]\r\n{tag} OK\r\n"
        await gateway.until(lambda: len(gateway.taken) == 2)

    assert {message.dedupe_key for message in gateway.taken} == {"m:hello@x"}
