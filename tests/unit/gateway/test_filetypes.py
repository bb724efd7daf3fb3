"""What a file is, by its content."""

# ruff: noqa: RUF001 - words of other scripts on purpose
from __future__ import annotations

import io
import wave
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.filetypes import UNKNOWN, judge


def a_zip() -> bytes:
    """An archive."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("a.txt", "b")
    return held.getvalue()


def a_wave() -> bytes:
    """A tenth of a second of silence."""
    held = io.BytesIO()
    with wave.open(held, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(1600))
    return held.getvalue()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (bytes.fromhex("89504e470d0a1a0a0000000d49484452"), "image/png"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01" + bytes(50), "image/jpeg"),
        (b"GIF89a" + b"\1\0" * 20, "image/gif"),
        (b"RIFF\x24\0\0\0WEBPVP8 " + bytes(40), "image/webp"),
        (b"%PDF-1.4 plain letters only", "application/pdf"),
        (a_zip(), "application/zip"),
        (a_wave(), "audio/wave"),
        (b"OggS\x00\x02" + bytes(22) + b"\x01\x13OpusHead" + b"\1" * 30, "application/ogg"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(30), "video/mp4"),
        (bytes(range(128, 256)), UNKNOWN),
        (b"\0", UNKNOWN),
    ],
)
def test_types_by_signature(data: bytes, expected: str) -> None:
    """Whatever the name claims; none of them is a text."""
    assert judge(data, "notes.txt") == (expected, None)


def test_a_name_chooses_only_among_what_fits() -> None:
    """An archive may be a document; it is never a picture."""
    assert judge(a_zip(), "report.docx").media_type.endswith("wordprocessingml.document")
    assert judge(a_zip(), "report.png").media_type == "application/zip"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain words\r\n\tand a tab",
        "Straße, 部署, привет 🎉".encode(),
        "with a mark".encode("utf-8-sig"),
        "\ufeffпривет 🎉".encode("utf-16-le"),
        "\ufeffпривет 🎉".encode("utf-16-be"),
        b"\x1b[1mcoloured\x1b[0m",
        b"<script>alert(1)</script>",
        b"#!/bin/sh\nrm -rf /",
    ],
)
def test_texts(data: bytes) -> None:
    """A text is a text, whatever language it is written in: it is not told apart what it may do to others."""
    media_type, text = judge(data, "x.exe")
    encoding = "utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    assert (media_type, text) == ("text/plain", data.decode(encoding))


@pytest.mark.parametrize("data", [b"words\0words", b"caf\xe9", b"\xff\xfea\0\0\0", b"words\x01"])
def test_what_is_no_text(data: bytes) -> None:
    """Control characters that texts do not have, and other encodings."""
    assert judge(data).text is None


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")), st.integers(0, 3))
def test_a_beginning_that_ends_inside_a_character_is_a_text(words: str, cut: int) -> None:
    """Only whole characters are read of it."""
    data = words.encode()
    beginning = data[: len(data) - cut] if cut < len(data) else data
    text = judge(beginning, whole=False).text
    if not beginning.startswith(b"%PDF-"):
        assert text is not None
        assert words.removeprefix("\ufeff").startswith(text)


@given(st.binary(max_size=300), st.text(max_size=20))
def test_any_bytes_give_an_answer(data: bytes, name: str) -> None:
    """Never an error, always a type."""
    media_type, text = judge(data, name)
    assert "/" in media_type
    assert text is None or media_type == "text/plain"
