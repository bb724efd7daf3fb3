"""The IMAP client against a server that says exactly what the test wants: what real servers may say, and seldom do."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable

import pytest

from adapters.email import Server, imap
from adapters.email.credentials import Credentials
from adapters.email.imap import CommandRefused, ConnectionLost, FetchedMail, Folder, ImapClient
from tests.servers.scripted_imap import DEFAULT, Script, serving

BOUND = 5.0
CONTEXT = ssl.create_default_context()


@contextlib.asynccontextmanager
async def connected(**answers: bytes | None) -> AsyncIterator[tuple[ImapClient, Script]]:
    """A client that is connected to such a server."""
    script = Script(dict(answers))
    async with serving(script) as server, asyncio.timeout(BOUND):
        client = await ImapClient.open(server, CONTEXT)
        try:
            yield client, script
        finally:
            await client.close()


async def test_news_in_the_packet_that_begins_idling_is_heard() -> None:
    """It comes with the word that idling begins, and never again."""
    async with connected(IDLE=b"+ idling\r\n* 5 EXISTS\r\n", DONE=b"t2 OK idled\r\n") as (client, script):
        await client.idle(BOUND)

        assert script.heard[-2:] == [b"t2 IDLE", b"DONE"]


async def test_news_along_with_another_answer_is_not_forgotten() -> None:
    """Servers report new mail with whatever they answer next; the coming idle ends at once."""
    async with connected(STORE=b"* 2 EXISTS\r\n{tag} OK\r\n", DONE=b"t4 OK idled\r\n") as (client, _):
        assert await client.search("ALL") == []
        await client.mark([1], "\\Seen")
        await client.idle(BOUND)


async def test_news_during_a_search_belongs_to_the_next_one() -> None:
    """It may not have been counted."""
    answer = b"* SEARCH 3 1\r\n* SEARCH 2 x\r\n* 4 EXISTS\r\n{tag} OK\r\n"
    async with connected(SEARCH=answer, DONE=b"t3 OK idled\r\n") as (client, _):
        assert await client.search("ALL") == [1, 2, 3]
        await client.idle(BOUND)


async def test_the_same_number_of_mails_again_is_no_news() -> None:
    """Some servers tell it with every answer; after one has gone, the same number means that one has come."""
    answers = iter([b"* 2 EXISTS\r\n", b"* 2 EXISTS\r\n", b"* 1 EXPUNGE\r\n", b"* 2 EXISTS\r\n"])
    async with connected() as (client, script):
        news = []
        for answer in answers:
            client.news.clear()
            script.answers["NOOP"] = answer + b"{tag} OK\r\n"
            await client.noop()
            news.append(client.news.is_set())

    assert news == [True, False, False, True]


async def test_idling_ends_with_its_time() -> None:
    """Nothing happened."""
    async with connected(DONE=b"t2 OK idled\r\n") as (client, script):
        await client.idle(0.01)

        assert script.heard[-1] == b"DONE"


async def test_a_connection_that_ends_while_idling_is_noticed_at_once() -> None:
    """Whether it ends with a word or without."""
    async with connected(IDLE=b"+ idling\r\n* BYE going down\r\n") as (client, _):
        waiting = asyncio.create_task(client.idle(BOUND))
        await asyncio.sleep(0)
        client._writer.transport.abort()  # noqa: SLF001  (as a network that goes away)
        with pytest.raises(ConnectionLost):
            await waiting
        with pytest.raises(ConnectionLost):
            await client.noop()


async def test_a_server_that_refuses_to_idle_says_so() -> None:
    """Although it announced that it can."""
    async with connected(IDLE=b"{tag} BAD no\r\n") as (client, _):
        with pytest.raises(CommandRefused):
            await client.idle(BOUND)
        await client.noop()


async def test_mails_come_in_every_form_that_is_allowed() -> None:
    """As a literal, quoted, not at all; amid reports of other things; a literal may hold what looks like answers."""
    nasty = b"x {3}\r\nt3 OK done\r\n* 9 EXISTS\r\n"
    for answer, expected in (
        (
            b"* 1 FETCH (FLAGS (\\Seen))\r\n* 1 FETCH (UID 4 BODY[]<0> {2}\r\nhi RFC822.SIZE 9)\r\n",
            FetchedMail(4, b"hi", 9),
        ),
        (b"* 1 FETCH (BODY[]<0> {%d}\r\n%b UID 4)\r\n" % (len(nasty), nasty), FetchedMail(4, nasty, len(nasty))),
        (b'* 1 FETCH (UID 4 RFC822.SIZE 4 BODY[] "a\\"b\\\\")\r\n', FetchedMail(4, b'a"b\\', 4)),
        (b"* 1 FETCH (UID 4 RFC822.SIZE 0 BODY[] NIL)\r\n", FetchedMail(4, b"", 0)),
        (b"* 1 FETCH (UID 5 BODY[] {1}\r\nx)\r\n", None),
        (b"", None),
    ):
        async with connected(FETCH=answer + b"{tag} OK\r\n") as (client, script):
            assert await client.fetch(4, 100) == expected
            assert script.heard[-1] == b"t2 UID FETCH 4 (UID RFC822.SIZE BODY.PEEK[]<0.100>)"
            assert not client.news.is_set()


@pytest.mark.parametrize(
    "answer",
    [
        b"* 1 FETCH (BODY[] {99999999}\r\n",
        b"* 1 FETCH " + b"x" * (2 << 20) + b"\r\n",
        b"* 1 FETCH (BODY[] {10}\r\nshort",
        None,
    ],
)
async def test_a_server_that_breaks_the_rules_costs_only_the_connection(
    answer: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory and time stay bounded."""
    monkeypatch.setattr(imap, "COMMAND_SECONDS", 0.3)
    async with connected(FETCH=answer) as (client, _):
        with pytest.raises(ConnectionLost):
            await client.fetch(4, 100)


async def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of anything."""
    monkeypatch.setattr(imap, "COMMAND_SECONDS", 0.1)
    async with connected(NOOP=b"") as (client, _):
        with pytest.raises(ConnectionLost, match="does not answer"):
            await client.noop()
    async with connected(IDLE=b"") as (client, _):
        with pytest.raises(ConnectionLost, match="does not answer"):
            await client.idle(BOUND)


@pytest.mark.parametrize(
    ("greeting", "words"),
    [(b"* BYE full\r\n", "BYE full"), (b"HTTP/1.1 400\r\n", "HTTP"), (b"\x16\x03\x01\r\n", "greets with")],
)
async def test_another_kind_of_server_is_told(greeting: bytes, words: str) -> None:
    """A wrong port is a common mistake."""
    async with serving(Script(greeting=greeting)) as server:
        with pytest.raises(ConnectionLost, match=words):
            await ImapClient.open(server, CONTEXT)


async def test_what_is_said_before_encryption_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody in between may have put it there; and there is no way on without encryption."""
    monkeypatch.setattr(imap, "CONNECT_SECONDS", 0.3)
    script = Script({"STARTTLS": b"tls OK go ahead\r\n* 5 EXISTS\r\nt1 OK done\r\n"})
    async with serving(script) as server:
        with pytest.raises(ConnectionLost):
            await ImapClient.open(Server("127.0.0.1", server.port, "starttls"), CONTEXT)
    script = Script({"STARTTLS": b"tls BAD what\r\n"})
    async with serving(script) as server:
        with pytest.raises(ConnectionLost, match="refuses STARTTLS"):
            await ImapClient.open(Server("127.0.0.1", server.port, "starttls"), CONTEXT)

    assert script.heard == [b"tls STARTTLS"]


async def test_the_old_way_to_log_in_quotes_what_it_must() -> None:
    """Nothing in a password can become a command; what the old way cannot carry is refused here."""
    async with connected() as (client, script):
        await client.login(Credentials("ann", 'a"b\\c'))
        assert b't2 LOGIN "ann" "a\\"b\\\\c"' in script.heard
        for impossible in ("pässword", "a\r\nt9 DELETE INBOX"):
            with pytest.raises(CommandRefused):
                await client.login(Credentials("ann", impossible))

    assert len(script.heard) == 4


async def test_the_new_way_carries_every_password() -> None:
    """It is encoded."""
    capability = b"* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\n{tag} OK\r\n"
    async with connected(CAPABILITY=capability, AUTHENTICATE=b"+ \r\nt2 OK in\r\n") as (client, script):
        await client.login(Credentials("ann", "pä ss\n"))

        assert b"AGFubgBww6Qgc3MK" in script.heard


TOKENS = b"* CAPABILITY IMAP4rev1 AUTH=PLAIN AUTH=XOAUTH2\r\n{tag} OK\r\n"


async def test_a_token_goes_its_own_way() -> None:
    """Never as a password."""
    async with connected(CAPABILITY=TOKENS, AUTHENTICATE=b"+ \r\nt2 OK in\r\n") as (client, script):
        await client.login(Credentials("ann@x", "ya29.token", token=True))

        assert script.heard[1:3] == [b"t2 AUTHENTICATE XOAUTH2", b"dXNlcj1hbm5AeAFhdXRoPUJlYXJlciB5YTI5LnRva2VuAQE="]


async def test_a_token_that_is_refused_is_refused_in_words() -> None:
    """Once what the server says in its own form is acknowledged: it waits for that."""
    async with connected(
        CAPABILITY=TOKENS, AUTHENTICATE=b"+ \r\n+ eyJzdGF0dXMiOiI0MDAifQ==\r\nt2 NO [AUTHENTICATIONFAILED] No\r\n"
    ) as (client, _):
        with pytest.raises(CommandRefused, match="No") as caught:
            await client.login(Credentials("ann", "old", token=True))

    assert caught.value.code == "AUTHENTICATIONFAILED"


async def test_a_server_that_knows_no_tokens_gets_none() -> None:
    """It would be sent to a server that cannot judge it."""
    async with connected(CAPABILITY=b"* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\n{tag} OK\r\n") as (client, script):
        with pytest.raises(CommandRefused, match="no access tokens"):
            await client.login(Credentials("ann", "token", token=True))
        assert script.heard == [b"t1 CAPABILITY"]


async def test_no_password_goes_where_none_is_wanted() -> None:
    """The server says that the line is not safe."""
    capability = b"* CAPABILITY IMAP4rev1 LOGINDISABLED\r\n{tag} OK\r\n"
    async with connected(CAPABILITY=capability) as (client, script):
        with pytest.raises(CommandRefused, match="only over an encrypted connection"):
            await client.login(Credentials("ann", "secret"))

    assert not any(b"secret" in line for line in script.heard)


@pytest.mark.parametrize(
    ("answer", "folder"),
    [
        (DEFAULT["SELECT"], Folder(uid_validity=7, any_keyword=True, writable=True)),
        (
            b"* OK [UIDVALIDITY 7]\r\n* OK [PERMANENTFLAGS (\\Seen)]\r\n{tag} OK done\r\n",
            Folder(uid_validity=7, any_keyword=False, writable=True),
        ),
        (
            b"* OK [UIDVALIDITY 7]\r\n{tag} OK [READ-ONLY] done\r\n",
            Folder(uid_validity=7, any_keyword=False, writable=False),
        ),
    ],
)
async def test_a_folder_tells_what_can_be_done_with_it(answer: bytes, folder: Folder) -> None:
    """Which decides how mails are marked."""
    async with connected(SELECT=answer) as (client, script):
        assert await client.select("Gespräche & mehr") == folder
        assert script.heard[-1] == b't2 SELECT "Gespr&AOQ-che &- mehr"'


async def test_a_refusal_keeps_its_reason() -> None:
    """For people, and as a code."""
    async with connected(SELECT=b"{tag} NO [NONEXISTENT] No such folder\r\n", NOOP=b"{tag} BAD\r\n") as (client, _):
        with pytest.raises(CommandRefused, match="No such folder") as caught:
            await client.select("x")
        with pytest.raises(CommandRefused):
            await client.noop()

    assert caught.value.code == "NONEXISTENT"


async def test_closing_is_quick_and_twice_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the server says nothing any more."""
    monkeypatch.setattr(imap, "CLOSE_SECONDS", 0.1)
    ended: Callable[[], bool] = lambda: not [t for t in asyncio.all_tasks() if t.get_name() == "imap reader"]  # noqa: E731
    async with connected(bye=b"") as (client, _):
        await client.close()
        await client.close()

        assert ended()
        with pytest.raises(ConnectionLost):
            await client.noop()


@pytest.mark.parametrize(
    ("answer", "offset", "piece"),
    [
        (b"* 3 FETCH (UID 7 BODY[1.2]<0> {4}\r\nab\r\n)\r\n", 0, b"ab\r\n"),
        (b'* 3 FETCH (BODY[1.2]<0> "a\\"b" UID 7)\r\n', 0, b'a"b'),
        (b'* 3 FETCH (UID 7 BODY[1.2]<0> "")\r\n', 0, b""),
        (b"* 3 FETCH (UID 7 BODY[1.2] NIL)\r\n", 0, None),
        (b"* 3 FETCH (UID 7 BODY[1.2]<9> NIL)\r\n", 9, b""),
        (b"* 4 FETCH (UID 8 BODY[1.2]<0> {1}\r\nx)\r\n", 0, None),
        (b"* 4 FETCH (FLAGS (\\Seen))\r\n", 0, None),
        (b"", 0, None),
    ],
)
async def test_a_piece_of_a_part_in_every_form(answer: bytes, offset: int, piece: bytes | None) -> None:
    """However the server writes it; what is about other mails is none."""
    async with connected(FETCH=answer + b"{tag} OK done\r\n") as (client, script):
        assert await client.fetch_part(7, "1.2", offset, 50) == piece

        assert script.heard[-1].endswith(b"UID FETCH 7 (UID BODY.PEEK[1.2]<%d.50>)" % offset)
