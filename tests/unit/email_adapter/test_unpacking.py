"""Parts of mails are unpacked while they come, wherever the pieces are cut."""

from __future__ import annotations

import base64
import itertools
import quopri
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.email.unpacking import LONGEST_LINE, unpacker


def pieces(packed: bytes, cuts: list[int]) -> Iterator[bytes]:
    """Cut what was sent at these places."""
    places = [0, *sorted(cut % (len(packed) + 1) for cut in cuts), len(packed)]
    for start, end in itertools.pairwise(places):
        yield packed[start:end]


def unpacked(encoding: str, packed: bytes, cuts: list[int] | None = None) -> bytes:
    """Unpack something that comes in pieces."""
    made = unpacker(encoding)
    return b"".join([*map(made.take, pieces(packed, cuts or [])), made.end()])


CUTS = st.lists(st.integers(0, 1000), max_size=6)


@given(data=st.binary(max_size=300), cuts=CUTS)
def test_every_byte_comes_back_however_it_is_cut(data: bytes, cuts: list[int]) -> None:
    """In each of the encodings that mails have."""
    assert unpacked("plain", data, cuts) == data
    assert unpacked("base64", base64.encodebytes(data).replace(b"\n", b"\r\n"), cuts) == data
    assert unpacked("quoted-printable", quopri.encodestring(data), cuts) == data


@given(packed=st.binary(max_size=200), cuts=CUTS)
def test_whatever_is_sent_gives_something_that_does_not_depend_on_the_cuts(packed: bytes, cuts: list[int]) -> None:
    """Nothing that a mail holds is an error."""
    for encoding in ("base64", "quoted-printable"):
        assert unpacked(encoding, packed, cuts) == unpacked(encoding, packed)


@pytest.mark.parametrize(
    ("packed", "data"),
    [(b"aGk", b"hi"), (b"aGk=aGk=", b"hi"), (b"a G\r\nk!=", b"hi"), (b"aGkh\r\nx", b"hi!"), (b"", b"")],
)
def test_what_mail_programs_leave_out_or_put_in_is_put_up_with(packed: bytes, data: bytes) -> None:
    """Missing padding, signs that are none, words behind the end."""
    assert unpacked("base64", packed) == data


def test_a_line_without_end_is_refused() -> None:
    """It would have to be kept whole."""
    with pytest.raises(ValueError, match="without end"):
        unpacked("quoted-printable", b"x" * (LONGEST_LINE + 1))
