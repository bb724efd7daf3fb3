"""The whole way of a mail: a real gateway process between real servers."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator, Iterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP, default
from pathlib import Path

import pytest
import yaml

from tests.conftest import Elsewhere
from tests.gateways import GatewayProcess, free_port, threadline
from tests.servers.dovecot import PASSWORD, Dovecot, missing
from tests.servers.letters import delivery_report, letter
from tests.servers.mailbox import eventually
from tests.servers.smtp import MailServer

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")


class Post:
    """Ann, the mailbox of her agent, and the server between them."""

    def __init__(self, dovecot: Dovecot, smtp: MailServer) -> None:
        self.dovecot = dovecot
        self.smtp = smtp
        self.user = f"agent-{uuid.uuid4().hex[:12]}"
        self._read = itertools.count()

    async def write(self, text: str, subject: str = "Notes", **more: str) -> None:
        """Send a mail to the agent."""
        await asyncio.to_thread(self.dovecot.deliver, self.user, letter(text, subject, **more))

    async def read(self) -> EmailMessage:
        """The next mail that Ann gets."""
        number = next(self._read)
        await eventually(lambda: len(self.smtp.accepted) > number)
        accepted = self.smtp.accepted[number]
        assert accepted.recipient == "ann@example.org"
        message = message_from_bytes(accepted.raw, policy=default)
        assert isinstance(message, EmailMessage)
        return message

    async def answer(self, mail: EmailMessage, text: str) -> None:
        """Answer a mail as mail programs do, quoting it."""
        quoted = "\n".join(f"> {line}" for line in words(mail).splitlines())
        own = str(mail["Message-ID"])
        history = f"On Sun, 29 Nov 2026 at 10:00, Agent <agent@example.org> wrote:\n{quoted}\n"
        await self.write(
            f"{text}\n\n{history}",
            str(mail["Subject"]),
            In_Reply_To=own,
            References=f"{mail['References']} {own}",
        )


def words(mail: EmailMessage) -> str:
    """The plain text of a mail."""
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


@pytest.fixture(scope="module")
def dovecot() -> Iterator[Dovecot]:
    """An IMAP server."""
    with Dovecot() as server:
        yield server


@pytest.fixture
async def post(dovecot: Dovecot) -> AsyncIterator[Post]:
    """Servers for both directions."""
    async with MailServer() as smtp:
        yield Post(dovecot, smtp)


@pytest.fixture
def gateway(home: Path, post: Post) -> GatewayProcess:
    """A gateway that owns the mailbox; not started."""
    mailbox = {
        "enabled": True,
        "address": "agent@example.org",
        "username": post.user,
        "password": PASSWORD,
        "imap_host": "127.0.0.1",
        "imap_port": post.dovecot.port,
        "imap_tls": "none",
        "smtp_host": "127.0.0.1",
        "smtp_port": post.smtp.port,
        "smtp_tls": "none",
        "trust_from": True,
    }
    settings = {"owner": {"email": ["Ann@example.org"]}, "web": {"port": free_port()}, "platforms": {"email": mailbox}}
    (home / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return GatewayProcess(home)


async def test_a_mail_thread_is_a_conversation(gateway: GatewayProcess, post: Post) -> None:
    """Each mail is answered once, in its thread, and what was said in one is found from another, also after a kill."""
    async with gateway.running():
        await post.write("The deploy script is in bin/deploy.", "Deploy", Message_ID="<first@x>")
        filed = await post.read()
        assert filed["Subject"] == "Re: Deploy"
        assert filed["References"] == "<first@x>"

        await post.answer(filed, "/title Shipping")
        titled = await post.read()
        assert titled["References"] == "<first@x>"
        assert "Shipping" in words(titled)
        await gateway.kill()

        await post.answer(titled, "/status")
        await post.write("Where is the deploy script?", "Other", Message_ID="<second@x>")
        await gateway.start()
        by_subject = {str(mail["Subject"]): mail for mail in [await post.read(), await post.read()]}
        assert set(by_subject) == {"Re: Deploy", "Re: Other"}
        assert "Shipping" in words(by_subject["Re: Deploy"])
        assert "bin/deploy" in words(by_subject["Re: Other"])
        assert by_subject["Re: Other"]["References"] == "<second@x>"
        assert await gateway.stop() == 0

    assert len(post.smtp.accepted) == 4


async def test_a_stranger_gets_no_answer(gateway: GatewayProcess, post: Post) -> None:
    """The same door as everywhere."""
    async with gateway.running():
        await post.write("hello?", sender="eve@evil.test")
        await post.write("hello!", Message_ID="<first@x>")
        assert (await post.read())["References"] == "<first@x>"
        assert await gateway.stop() == 0

    assert [accepted.recipient for accepted in post.smtp.accepted] == ["ann@example.org"]


async def test_an_answer_that_comes_back_is_shown_as_failed_and_nothing_answers_it(
    gateway: GatewayProcess, post: Post, home: Path, elsewhere: Elsewhere
) -> None:
    """With the server's reason; however often the report comes. It begins no turn, and no machine gets an answer."""
    async with gateway.running():
        await post.write("Where is the key?", Message_ID="<first@x>")
        answer = await post.read()
        number = str(answer["Message-ID"]).strip("<>")
        for report in (delivery_report(number, action="delayed"), delivery_report(number), delivery_report(number)):
            await asyncio.to_thread(post.dovecot.deliver, post.user, report)
        await eventually(lambda: elsewhere("SELECT 1 FROM outbox WHERE state = 'failed'"))
        await post.write("And the door?", Message_ID="<second@x>")
        assert (await post.read())["References"] == "<second@x>"
        listed = await threadline(home, "outbox", "list")
        assert await gateway.stop() == 0

    assert "It came back: 550 5.1.1" in listed.out
    assert len(post.smtp.accepted) == 2
    assert len(elsewhere("SELECT id FROM inbox")) == len(elsewhere("SELECT id FROM turns")) == 2


async def test_an_attachment_is_kept_and_its_words_are_found(gateway: GatewayProcess, post: Post) -> None:
    """Read from the mailbox again once the mail is safe; a later mail finds what it says."""
    message = EmailMessage(policy=SMTP)
    message["From"], message["Subject"], message["Message-ID"] = "ann@example.org", "Door", "<first@x>"
    message.set_content("see this")
    message.add_attachment("The door code is 4711.\n", filename="door.txt", cte="base64")
    async with gateway.running():
        await asyncio.to_thread(post.dovecot.deliver, post.user, message.as_bytes())
        await post.read()
        await post.write("What is the door code?", "Other")
        assert "4711" in words(await post.read())
        assert await gateway.stop() == 0
