"""What a server tells of the parts of a mail, as a mail without content."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.email.body import body_of
from adapters.email.structure import DEEPEST, skeleton

TEXT = b'("TEXT" "PLAIN" ("CHARSET" "utf-8") NIL NIL "BASE64" 12 1 NIL NIL NIL NIL)'
PICTURE = b'("IMAGE" "PNG" NIL NIL NIL "base64" 4000 NIL ("ATTACHMENT" ("FILENAME" "a.png")) NIL NIL)'
MAIL = (
    b'("MESSAGE" "RFC822" NIL NIL NIL "7BIT" 99 (NIL "The subject" NIL NIL NIL NIL NIL NIL NIL NIL) '
    + TEXT
    + b" 9 NIL NIL NIL NIL)"
)


def attachments(structure: bytes, *literals: bytes) -> list[tuple[str | None, str, str | None]]:
    """Name, type and number of what is attached."""
    mail = skeleton(structure, literals)
    assert mail is not None
    return [(part.name, part.type, part.section) for part in body_of(mail).attachments]


def test_a_mail_of_one_text_has_nothing_attached() -> None:
    """And its text counts as there, however it is packed."""
    mail = skeleton(TEXT, ())
    assert mail is not None
    assert (body_of(mail).text, body_of(mail).attachments) == (".", ())


def test_parts_have_the_numbers_that_they_can_be_asked_for_by() -> None:
    """At every depth; a mail inside the mail is one part, named by its subject."""
    inner = b"(" + TEXT + PICTURE + b' "RELATED" ("BOUNDARY" "x") NIL NIL NIL)'
    assert attachments(b"(" + inner + MAIL + PICTURE + b' "MIXED" ("BOUNDARY" "y") NIL NIL)') == [
        ("a.png", "image/png", "1.2"),
        ("The subject", "message/rfc822", "2"),
        ("a.png", "image/png", "3"),
    ]
    assert attachments(PICTURE) == [("a.png", "image/png", "1")]


@pytest.mark.parametrize(
    ("told", "literals", "name"),
    [
        (b'("NAME" "b.pdf") NIL NIL "8BIT" 1 NIL NIL', (), "b.pdf"),
        (b'("NAME" "b.pdf") NIL NIL "8BIT" 1', (), "b.pdf"),
        (b'NIL NIL NIL "8BIT" 1 NIL ("ATTACHMENT" ("FILENAME*" "utf-8\'\'caf%C3%A9.pdf"))', (), "café.pdf"),
        (b'NIL NIL NIL "8BIT" 1 NIL ("ATTACHMENT" ("FILENAME" "=?utf-8?q?caf=C3=A9?="))', (), "café"),
        (b'NIL NIL NIL "8BIT" 1 NIL ("ATTACHMENT" ("FILENAME" "a \\"b\\" \\\\.x"))', (), 'a "b" \\.x'),
        (b'NIL NIL NIL "8BIT" 1 NIL ("ATTACHMENT" ("FILENAME" {5}\r\n))', (b"(x).y",), "(x).y"),
        (b'NIL NIL NIL "8BIT" 1 NIL ("ATTACHMENT" NIL)', (), None),
        (b'("_name" "x" "_value" "y") NIL NIL "8BIT" 1 NIL NIL', (), None),
    ],
)
def test_names_come_in_many_forms(told: bytes, literals: tuple[bytes, ...], name: str | None) -> None:
    """As in the mail itself."""
    assert attachments(b'("APPLICATION" "PDF" ' + told + b")", *literals) == [(name, "application/pdf", "1")]


def test_the_packing_of_a_part_is_known() -> None:
    """It is unpacked by it later."""
    mail = skeleton(PICTURE, ())
    assert mail is not None
    assert [part.encoding for part in body_of(mail).attachments] == ["base64"]


@pytest.mark.parametrize("odd", [b"", b"NIL", b"(", b")", b"((((", b"(" * 500, b"{5}", b'("TEXT" "PLA', b"x"])
def test_what_makes_no_sense_is_nothing(odd: bytes) -> None:
    """However deep."""
    assert skeleton(odd, ()) is None
    assert skeleton(b"(" * (3 * DEEPEST) + PICTURE + b' "MIXED")' * (3 * DEEPEST), ()) is None


@given(st.lists(st.sampled_from([b"(", b")", b"NIL", b'"a"', b" ", b"7", b"{3}", PICTURE, TEXT, MAIL]), max_size=30))
def test_any_answer_is_read_without_an_error(pieces: list[bytes]) -> None:
    """A server is not ours."""
    mail = skeleton(b"".join(pieces), (b"abc",))
    assert mail is None or isinstance(body_of(mail).attachments, tuple)
