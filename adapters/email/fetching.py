"""An attachment, read from the mailbox again when it is wanted, in pieces, on a connection of its own.

Contract: `fetch_part` hands on every byte of the part, unpacked, or raises. The mail is not marked as read by it.
Failure: FetchError. Worth another try: no connection, a server that says no now. Not worth one: a mail that is not in
the folder any more, a folder whose numbers have begun anew, a part that is not there or not packed as it says.
Limits: `PIECE_BYTES` at a time; each wait for the server is bounded, the whole is not, that is the caller's part.
"""

from __future__ import annotations

import ssl
from typing import Final

from adapters.base import FetchError, Write
from adapters.email.account import MailAccount
from adapters.email.attached import PartAddress, address_of
from adapters.email.credentials import NoToken, credentials
from adapters.email.imap import ImapClient, ImapError
from adapters.email.unpacking import unpacker

__all__ = ["PIECE_BYTES", "fetch_part"]

PIECE_BYTES: Final = 1 << 18


async def fetch_part(account: MailAccount, context: ssl.SSLContext, reference: str, write: Write) -> None:
    """Fetch one attachment; see the module."""
    address = address_of(reference)
    if address is None:
        raise FetchError("it is no attachment of a mail", again=False)
    try:
        client = await ImapClient.open(account.imap, context)
        try:
            await client.login(await credentials(account))
            folder = await client.select(account.folder)
            if folder.uid_validity != address.uid_validity:
                raise FetchError("the mailbox has numbered its mails anew", again=False)
            await _read(client, address, write)
        finally:
            await client.close()
    except (ImapError, NoToken) as error:
        raise FetchError(f"the mailbox cannot be read now: {error}".rstrip("."), again=True) from error


async def _read(client: ImapClient, address: PartAddress, write: Write) -> None:
    unpacked = unpacker(address.encoding)
    offset = 0
    while True:
        piece = await client.fetch_part(address.uid, address.section, offset, PIECE_BYTES)
        if piece is None:
            raise FetchError("its mail is not in the mailbox any more", again=False)
        offset += len(piece)
        try:
            data = unpacked.take(piece) if piece else unpacked.end()
        except ValueError as error:
            raise FetchError("it is not packed in the way that it says", again=False) from error
        if data:
            await write(data)
        if not piece:
            return
