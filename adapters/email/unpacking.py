"""A part of a mail, unpacked piece by piece while it comes.

Contract: `unpacker` returns something that takes pieces of what was sent, cut anywhere, and gives back what is surely
unpacked so far; `end` gives the rest. What does not belong into the encoding is passed over, as mail programs do.
Limits: of quoted-printable, a line of `LONGEST_LINE` bytes; a longer one raises ValueError.
"""

from __future__ import annotations

import binascii
import re
from typing import Final, Protocol

__all__ = ["LONGEST_LINE", "Unpacker", "unpacker"]

LONGEST_LINE: Final = 1 << 20
_GROUP: Final = 4
_FOREIGN: Final = re.compile(rb"[^A-Za-z0-9+/=]")


class Unpacker(Protocol):
    """Takes what was sent, gives what it means."""

    def take(self, piece: bytes) -> bytes:
        """Take the next piece; return what can be told by now."""
        ...

    def end(self) -> bytes:
        """Nothing more comes; return the rest."""
        ...


def unpacker(encoding: str) -> Unpacker:
    """Return one for `base64`, `quoted-printable` or, for any other name, bytes as they are."""
    if encoding == "base64":
        return _Base64()
    return _QuotedPrintable() if encoding == "quoted-printable" else _Plain()


class _Plain:
    def take(self, piece: bytes) -> bytes:
        return piece

    def end(self) -> bytes:
        return b""


class _Base64:
    """Groups of four letters; after the first padding nothing counts."""

    def __init__(self) -> None:
        self._rest = b""
        self._over = False

    def take(self, piece: bytes) -> bytes:
        if self._over:
            return b""
        letters = self._rest + _FOREIGN.sub(b"", piece)
        if b"=" in letters:
            self._over, self._rest = True, letters.partition(b"=")[0]
            return self.end()
        groups = len(letters) // _GROUP * _GROUP
        self._rest = letters[groups:]
        return binascii.a2b_base64(letters[:groups])

    def end(self) -> bytes:
        letters, self._rest = self._rest, b""
        if len(letters) % _GROUP == 1:
            letters = letters[:-1]  # six bits are no byte
        return binascii.a2b_base64(letters + b"=" * (-len(letters) % _GROUP))


class _QuotedPrintable:
    """Whole lines: what stands at the end of one decides what it means."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, piece: bytes) -> bytes:
        lines, ended, self._rest = (self._rest + piece).rpartition(b"\n")
        if len(self._rest) > LONGEST_LINE:
            raise ValueError("a line without end")
        return binascii.a2b_qp(lines + ended)

    def end(self) -> bytes:
        line, self._rest = self._rest, b""
        return binascii.a2b_qp(line)
