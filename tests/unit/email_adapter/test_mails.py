"""One mail to one message: place, sender, words, and what is no message."""

from __future__ import annotations

import contextlib
import dataclasses
from email.message import EmailMessage
from email.policy import SMTP

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.base import Attachment, InboundMessage, Place, Quoted, Sender
from adapters.email import MailAccount, Server
from adapters.email.attached import address_of
from adapters.email.imap import FetchedMail
from adapters.email.mails import MOST_WORDS, Arrival, MalformedMail, NotForUs, inbound
from adapters.email.threads import own_message_id
from gateway.keys import session_key
from tests.servers.letters import delivery_report, letter

OPEN = MailAccount(
    address="agent@example.org",
    username="agent",
    password="",
    imap=Server("127.0.0.1", 143, "none"),
    smtp=Server("127.0.0.1", 25, "none"),
    trust_from=True,
)
HERE = Arrival("main", 77, 1000.0)
HEAD = b"From: ann@example.org\r\nMessage-ID: <m@x>\r\nSubject: s\r\n"


def judged(raw: bytes, account: MailAccount = OPEN, *, size: int = 0) -> InboundMessage | NotForUs:
    """What becomes of a mail."""
    return inbound(FetchedMail(5, raw, max(size, len(raw))), account, HERE)


def taken(raw: bytes, *, size: int = 0) -> InboundMessage:
    """The message that a mail is."""
    message = judged(raw, size=size)
    assert isinstance(message, InboundMessage), message
    return message


def key_of(message: InboundMessage) -> str:
    """The session that a message belongs to."""
    return session_key(
        message.place, message.sender.user_id, group_sessions_per_user=True, thread_sessions_per_user=False
    )


def test_a_new_mail_begins_a_thread_with_its_author() -> None:
    """Everything of it that later steps need."""
    raw = letter("Where is the key?", "The key", sender="Ann <Ann@Example.org>", Message_ID="<m1@mail.example.org>")

    assert taken(raw) == InboundMessage(
        place=Place("email", "main", "dm", "ann@example.org", "m1@mail.example.org"),
        sender=Sender("ann@example.org", "Ann"),
        dedupe_key="m:m1@mail.example.org",
        kind="message",
        text="Where is the key?",
        message_id="m1@mail.example.org",
        received_at=1000.0,
        extra={"subject": "The key"},
    )
    assert taken(raw).place.name == "The key"
    assert key_of(taken(raw)) == "agent:main:email:dm:ann@example.org:thread=m1@mail.example.org"


def test_an_answer_goes_on_with_its_session_and_a_new_mail_with_none() -> None:
    """The same person, two threads, two sessions; two people in one thread have a session each."""
    first = taken(letter("one", Message_ID="<m1@x>"))
    reply = taken(letter("two", "Re: Notes", In_Reply_To="<m1@x>", References="<m1@x>"))
    other = taken(letter("three"))
    somebody = taken(letter("two", In_Reply_To="<m1@x>", sender="bob@example.org"))

    assert key_of(reply) == key_of(first)
    assert len({key_of(message) for message in (first, other, somebody)}) == 3
    assert (reply.reply_to, reply.place.name) == ("m1@x", "Notes")


def test_what_somebody_else_wrote_comes_along_and_what_we_wrote_does_not() -> None:
    """An answer to another's mail speaks of that; an answer to ours speaks of what the session holds."""
    ours = own_message_id("tl1", "x", "m1@x", "example.org")
    text = "Please file this.\n\nOn Sun, 29 Nov 2026 at 10:00, Bob <bob@example.org> wrote:\n> the code is 17\n"
    foreign = taken(letter(text, In_Reply_To="<bob@x>"))

    assert foreign.text == "Please file this."
    assert foreign.quoted == Quoted("On Sun, 29 Nov 2026 at 10:00, Bob <bob@example.org> wrote:\n> the code is 17")
    assert taken(letter(text, In_Reply_To=f"<{ours}>")).quoted is None
    assert taken(letter("Yes.", In_Reply_To="<bob@x>")).quoted is None


def test_a_mail_without_an_id_is_known_by_its_number() -> None:
    """In this folder, which keeps its numbers."""
    message = taken(letter("words", Message_ID=""))

    assert (message.dedupe_key, message.message_id, message.place.thread) == ("m:77:5", "77:5", "77:5")


@pytest.mark.parametrize(
    ("text", "subject", "kind", "words"),
    [
        ("/new Trip\n\nBest wishes\nAnn", "x", "command", "/new Trip"),
        ("/status", "x", "command", "/status"),
        ("", "/status", "command", "/status"),
        ("/usr/bin is a folder", "x", "message", "/usr/bin is a folder"),
        ("please /new", "x", "message", "please /new"),
        ("", "only a subject", "message", "only a subject"),
        ("words", "", "message", "words"),
    ],
)
def test_a_command_is_the_first_line(text: str, subject: str, kind: str, words: str) -> None:
    """What people put below it by habit is no argument; a mail without a text is its subject."""
    message = taken(letter(text, subject))

    assert (message.kind, message.text) == (kind, words)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"Auto_Submitted": "auto-replied"}, "a program sent it"),
        ({"Auto_Submitted": "auto-generated; why=holiday"}, "a program sent it"),
        ({"Precedence": "Bulk"}, "a program sent it"),
        ({"List_Id": "<list.example.org>"}, "a program sent it"),
        ({"Return_Path": "<>"}, "a program sent it"),
        ({"From": "MAILER-DAEMON@example.org"}, "a program sent it"),
        ({"From": "no-reply@example.org"}, "a program sent it"),
        ({"From": "bounces+123=x@example.org"}, "a program sent it"),
        ({"From": "AGENT@example.org"}, "it is from this account itself"),
        ({"From": "a@x.org, b@x.org"}, "it does not name one author"),
        ({"From": ""}, "it does not name one author"),
        ({"X_Threadline": "1"}, "a gateway sent it"),
    ],
)
def test_what_no_person_sent_is_not_taken(more: dict[str, str], reason: str) -> None:
    """Two machines must never talk to each other."""
    assert judged(letter("words", **more)) == NotForUs(reason)


def test_a_mail_of_ours_that_came_back_is_told_as_such() -> None:
    """It is nobody's, whoever the report claims to be from, and needs no proof: it begins nothing."""
    ours = own_message_id("tl1", "words", "first@x", "example.org")
    told = judged(delivery_report(ours), dataclasses.replace(OPEN, trust_from=False))

    assert isinstance(told, InboundMessage)
    assert (told.kind, told.subject, told.sender) == ("bounce", ours, Sender(None))
    assert told.text.startswith("550 5.1.1")


def test_a_report_on_anything_else_is_not_taken() -> None:
    """Its form tells."""
    raw = HEAD + b"Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\n\r\nfailed\r\n--b--\r\n"

    assert judged(raw) == NotForUs("a program sent it")


def test_a_person_who_says_that_no_program_sent_it_is_taken() -> None:
    """`no` is the standard's word for that."""
    assert taken(letter("words", Auto_Submitted="no")).text == "words"


def test_an_author_that_nobody_vouches_for_gets_nowhere() -> None:
    """A From is only a claim, and would open the claimed person's sessions."""
    strict = dataclasses.replace(OPEN, trust_from=False)
    named = dataclasses.replace(strict, authserv_id="mx.example.net")
    report = "mx.example.net; dmarc=pass header.from=example.org"
    proven = letter("words", Authentication_Results=report)

    assert judged(proven, strict) == judged(letter("words"), named)
    assert judged(proven, strict) == NotForUs("the receiving server does not vouch for its author ann@example.org")
    assert isinstance(judged(proven, named), InboundMessage)


@pytest.mark.parametrize(
    ("head", "body", "text"),
    [
        (b'text/plain; charset="iso-8859-1"', b"caf\xe9", "café"),
        (b"text/plain; charset=koi8-r", "привет".encode("koi8-r"), "привет"),
        (b"text/plain; charset=gb2312", "钥匙".encode("gb2312"), "钥匙"),
        (b"text/plain; charset=shift_jis", "鍵".encode("shift_jis"), "鍵"),
        (b"text/plain; charset=no-such-charset", "ü".encode(), "ü"),
        (b"text/plain; charset=idna", b"xn--a", "xn--a"),
        (b"text/plain; charset=base64", b"aGk=", "aGk="),
        (b"text/plain; charset=utf-8", b"caf\xe9", "café"),
        (b"text/plain", "naïve 中".encode(), "naïve 中"),
        (b"text/plain; charset*=x'y'z%ff", b"a", "a"),
        (b"nonsense", b"a", "a"),
        (b"text/html", b"<p>one</p><p>two</p>", "one\n\ntwo"),
        (b"text/plain\r\nContent-Transfer-Encoding: base64", b"Z3LDvMOfZQ==", "grüße"),
        (b"text/plain\r\nContent-Transfer-Encoding: base64", b"Z3L*DvMOfZQ", "grüße"),
        (b"text/plain\r\nContent-Transfer-Encoding: quoted-printable", b"gr=C3=BC=C3=9F=\r\ne=", "grüße"),
        (b"text/plain\r\nContent-Transfer-Encoding: x-unheard-of", b"a", "a"),
        (b"text/plain; format=flowed", b"one \r\nline", "one line"),
    ],
)
def test_odd_charsets_and_encodings_are_read_as_well_as_can_be(head: bytes, body: bytes, text: str) -> None:
    """A wrong claim costs no words."""
    assert taken(HEAD + b"Content-Type: " + head + b"\r\n\r\n" + body).text == text


@pytest.mark.parametrize(
    ("subject", "shown"),
    [
        (b"=?utf-8?b?5Lit5paH?=", "中文"),
        (b"=?iso-8859-1?q?caf=E9?= =?utf-8?q?_=C3=BC?=", "café ü"),
        ("rohe Umläute".encode(), "rohe Umläute"),
        (b"latin \xe9", "latin é"),
        (b"=?no-such?q?x?=", "x"),
        (b"=?utf-8?b?!!?=", "=?utf-8?b?!!?="),
        (b"=?utf-8?q?line=0Abreak=E2=80=AEx?=", "line break x"),
        (b"Re: =?utf-8?q?AW:_x?=", "x"),
    ],
)
def test_odd_subjects_are_read_as_well_as_can_be(subject: bytes, shown: str) -> None:
    """Encoded or not, and without what would break a line."""
    raw = b"From: ann@example.org\r\nSubject: " + subject + b"\r\n\r\nwords"

    assert taken(raw).extra["subject"] == shown


def test_of_two_forms_the_plain_one_is_read_unless_it_is_blank() -> None:
    """Some programs leave it so."""
    for plain, text in (("plain words", "plain words"), (" \n", "formatted words")):
        message = EmailMessage(policy=SMTP)
        message["From"], message["Subject"] = "ann@example.org", "x"
        message.set_content(plain)
        message.add_alternative("<p>formatted words</p>", subtype="html")
        assert taken(message.as_bytes()).text == text


def test_attachments_are_described_by_where_they_lie() -> None:
    """Texts between them follow each other; a mail in a mail is named by its subject."""
    message = EmailMessage(policy=SMTP)
    message["From"], message["Subject"] = "ann@example.org", "x"
    message.set_content("see these")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="Gebühren.pdf")
    message.add_attachment("not words", filename="notes.txt")
    message.add_attachment(b"\x89PNG", maintype="image", subtype="png")
    inner = EmailMessage(policy=SMTP)
    inner["Subject"] = "inner"
    inner.set_content("inner words")
    message.add_attachment(inner)
    found = taken(message.as_bytes())

    assert found.text == "see these"
    assert found.attachments == (
        Attachment("77/5/2/base64", "file", "Gebühren.pdf", "application/pdf", 4),
        Attachment("77/5/3/plain", "file", "notes.txt", "text/plain", 11),
        Attachment("77/5/4/base64", "image", None, "image/png", 4),
        Attachment("77/5/5/plain", "file", "inner", "message/rfc822"),
    )


def test_parts_are_numbered_as_servers_number_them() -> None:
    """By the way that leads to them; of a mail that is one part, the part is the first."""
    message = EmailMessage(policy=SMTP)
    message["From"], message["Subject"] = "ann@example.org", "x"
    message.set_content("<p>words</p>", subtype="html")
    message.add_related(b"GIF", maintype="image", subtype="gif", cid="<1>")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="a.pdf")
    assert [file.reference for file in taken(message.as_bytes()).attachments] == ["77/5/1.2/base64", "77/5/2/base64"]

    alone = taken(HEAD + b"Content-Type: application/pdf\r\nContent-Transfer-Encoding: BASE64\r\n\r\nJVBERg==")
    assert [file.reference for file in alone.attachments] == ["77/5/1/base64"]


def test_a_mail_that_is_only_an_attachment_says_its_subject_once() -> None:
    """An answer only repeats it, so it says nothing."""
    message = EmailMessage(policy=SMTP)
    message["From"], message["Subject"] = "ann@example.org", "A picture"
    message.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="cat.png")
    assert taken(message.as_bytes()).text == "A picture"
    message["In-Reply-To"] = "<m@x>"
    answer = taken(message.as_bytes())

    assert (answer.text, [file.name for file in answer.attachments]) == ("", ["cat.png"])


@pytest.mark.parametrize(
    "part",
    [
        b"Content-Type: application/x; name=odd.bin\r\nContent-Transfer-Encoding: x-uuencode\r\n\r\nx",
        b"Content-Type: message/rfc822\r\nSubject: odd.bin\r\n\r\nSubject: odd.bin\r\n\r\nx",
    ],
)
def test_what_cannot_be_fetched_is_named(part: bytes) -> None:
    """Packed as nobody packs any more, or without a number that could be asked for."""
    told = taken(HEAD + part)

    assert (told.attachments, told.text) == ((), "s\n[attachment: odd.bin]")


def test_a_mail_without_any_words_is_not_taken() -> None:
    """There is nothing to answer."""
    assert judged(letter("", "")) == NotForUs("it holds no words")
    assert judged(letter("\n", "Re: x", In_Reply_To="<m@x>")) == NotForUs("it holds no words")


def test_a_mail_cut_off_by_its_size_is_still_read() -> None:
    """What came of it, and that more was there."""
    whole = letter("words\n" * 100_000)
    message = taken(whole[:300_000], size=len(whole))

    assert message.extra["truncated"] is True
    assert len(message.text) < MOST_WORDS + 200
    assert message.text.splitlines()[-2].endswith("characters were left out.]")
    assert message.text.endswith("attachments may be missing.]")


def test_of_a_mail_that_was_cut_no_size_is_told() -> None:
    """Nobody knows how much of the last attachment is missing."""
    message = EmailMessage(policy=SMTP)
    message["From"], message["Subject"] = "ann@example.org", "x"
    message.set_content("see this")
    message.add_attachment(b"x" * 9000, maintype="image", subtype="png", filename="cat.png")
    whole = message.as_bytes()
    (attachment,) = taken(whole[:2000], size=len(whole)).attachments

    assert (attachment.name, attachment.size) == ("cat.png", None)


def test_parts_in_parts_without_end_are_named_not_followed() -> None:
    """Nobody nests that deep by accident."""
    raw = HEAD + b"".join(b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (i, i) for i in range(40))
    message = taken(raw + b"Content-Type: text/plain\r\n\r\ndeep words")

    assert message.text == "s\n[attachment: (too deep inside the mail)]"


FRAGMENTS = st.sampled_from(
    [
        b"From: ann@example.org\r\n",
        b"From: =?utf-8?q?=FF?= <ann@example.org>\r\n",
        b"Subject: =?utf-8?b?///?=\r\n",
        b"Subject: \xff\xfe\r\n",
        b"Message-ID: <a@b>\r\n",
        b"Message-ID: <\x00>\r\n",
        b"References: <" + b"x" * 500 + b"@y> <z@y>\r\n",
        b"In-Reply-To: <threadline.000000000000000000000000.AAAA@x>\r\n",
        b"Content-Type: multipart/mixed; boundary=b\r\n",
        b"Content-Type: multipart/alternative; boundary=\r\n",
        b"Content-Type: message/rfc822\r\n",
        b"Content-Type: message/partial; number=x\r\n",
        b"Content-Type: message/external-body\r\n",
        b"Content-Type: text/html; charset=utf-16\r\n",
        b"Content-Type: text/plain; charset*0*=a; charset*1=''\r\n",
        b"Content-Type: text/plain; format=flowed; delsp=yes\r\n",
        b"Content-Disposition: attachment; filename*=utf-8''%ff; filename*0=\"x\r\n",
        b"Content-Disposition: inline; filename*1*=x'\r\n",
        b"Content-Transfer-Encoding: base64\r\n",
        b"Content-Transfer-Encoding: x-uuencode\r\n",
        b"Content-Transfer-Encoding: quoted-printable\r\n",
        b"Authentication-Results: x; dmarc=pass (\r\n",
        b"begin 644 x\r\n!!!\r\n",
        b"\r\n",
        b"--b\r\n",
        b"--b--\r\n",
        b"<p>a<br>&#x110000;&nbsp;</p",
        b"> quoted\r\n-- \r\nme\r\n",
        b"/new x\r\n",
        b"\xff\x00\x85\xe2\x80",
        b" \tfolded\r\n",
        b":\r\n",
    ]
)


@settings(max_examples=400)
@example(b"From: ann@example.org\r\nContent-Type: multipart/mixed\r\n\r\n--\r\n")
@given(st.lists(FRAGMENTS | st.binary(max_size=30), max_size=14).map(b"".join))
def test_any_bytes_are_a_message_or_none_or_malformed(raw: bytes) -> None:
    """Nothing else is ever raised, and what comes out can be stored as it is."""
    with contextlib.suppress(MalformedMail):
        for prefix in (b"", b"From: ann@example.org\r\n"):
            message = judged(prefix + raw)
            if isinstance(message, InboundMessage):
                assert message.text or message.attachments
                assert all(address_of(file.reference) for file in message.attachments)
                assert message.place.thread
                f"{message}{message.place.name}".encode()
