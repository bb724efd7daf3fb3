"""Reports of mail servers that a mail of ours came back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.email.body import parsed
from adapters.email.bounces import Bounce, bounced
from adapters.email.threads import own_message_id
from tests.servers.letters import delivery_report, letter

OURS = own_message_id("tl1", "words", "first@x", "example.org")


@pytest.mark.parametrize(
    "returned", ["message/rfc822", "text/rfc822-headers", "message/rfc822-headers", "message/global"]
)
def test_a_report_names_the_mail_and_the_reason(returned: str) -> None:
    """However much of the mail the server sends back."""
    told = bounced(parsed(delivery_report(OURS, returned=returned)))
    assert told == Bounce(OURS, "ann@example.org", "550 5.1.1 <ann@example.org>: User unknown")


def test_the_mail_may_only_be_named_as_what_is_answered() -> None:
    """Some servers send nothing back."""
    raw = delivery_report("other@x").replace(b"Auto-Submitted", f"In-Reply-To: <{OURS}>\r\nAuto-Submitted".encode())
    assert (told := bounced(parsed(raw))) is not None
    assert told.message_id == OURS


def test_the_status_is_the_reason_where_there_are_no_words() -> None:
    """A number is better than nothing."""
    assert (told := bounced(parsed(delivery_report(OURS, reason="")))) is not None
    assert told.reason == "5.1.1"
    assert (long := bounced(parsed(delivery_report(OURS, reason="smtp; " + "x" * 5000)))) is not None
    assert len(long.reason) == 300


@pytest.mark.parametrize(
    "raw",
    [
        delivery_report(OURS, action="delayed"),
        delivery_report(OURS, action="delivered"),
        delivery_report("somebody-elses@x"),
        delivery_report(OURS).replace(b"multipart/report", b"multipart/mixed"),
        letter("words", In_Reply_To=f"<{OURS}>"),
    ],
)
def test_other_mails_are_no_bounces(raw: bytes) -> None:
    """The mail is still on its way, or arrived, or was not ours; or a person answers it."""
    assert bounced(parsed(raw)) is None


@given(cut=st.integers(0, 2000), junk=st.binary(max_size=40))
def test_a_broken_report_is_none_or_one(cut: int, junk: bytes) -> None:
    """Whatever is missing or odd in it."""
    raw = delivery_report(OURS)
    told = bounced(parsed(raw[:cut] + junk + raw[cut + len(junk) :]))
    assert told is None or told.reason
