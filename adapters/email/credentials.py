"""What proves to the mail servers who we are: the password, or an access token that a command prints.

Contract: an account with a `token_command` gets a token from it for every connection; keeping it fresh, and keeping the
lasting secret behind it, is the command's affair. It runs without a shell, and its first line is the token. Tokens are
given to servers as XOAUTH2, which Google and Microsoft take.
Failure: `NoToken`, a sentence for people. lasting: no later try can mend it.
Limits: a command has `COMMAND_SECONDS`, and is then ended with everything that it started; tokens of `LONGEST_TOKEN`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass, field
from typing import Final

from adapters.email.account import MailAccount

__all__ = ["COMMAND_SECONDS", "LONGEST_TOKEN", "Credentials", "NoToken", "credentials"]

COMMAND_SECONDS: Final = 30.0
LONGEST_TOKEN: Final = 16_384
_TOLD: Final = 300
_KEY: Final = "platforms.email.token_command"


class NoToken(Exception):
    """There is no access token: a sentence. lasting: only a change of the configuration mends it."""

    def __init__(self, sentence: str, *, lasting: bool = False) -> None:
        super().__init__(sentence)
        self.lasting = lasting


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user name and its secret; `token`: the secret is an access token."""

    username: str
    secret: str = field(repr=False)
    token: bool = False

    def xoauth2(self) -> bytes:
        """Return what the XOAUTH2 mechanism says first."""
        return f"user={self.username}\1auth=Bearer {self.secret}\1\1".encode()


async def credentials(account: MailAccount) -> Credentials:
    """Return what proves who we are now; raises NoToken."""
    if not account.token_command:
        return Credentials(account.username, account.password)
    return Credentials(account.username, await _token(account.token_command), token=True)


async def _token(command: tuple[str, ...]) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise NoToken(
            f"The command {command[0]!r} in {_KEY} cannot be run ({reason or error}); check it.", lasting=True
        ) from error
    try:
        async with asyncio.timeout(COMMAND_SECONDS):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise NoToken(
            f"The command {command[0]!r} in {_KEY} did not end within {COMMAND_SECONDS:.0f} s; it must ask nothing."
        ) from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    token = out.split(b"\n", 1)[0].strip()
    if process.returncode != 0:
        raise NoToken(f"The command {command[0]!r} in {_KEY} failed ({_last_line(err) or process.returncode}).")
    if not token.isascii() or not 0 < len(token) <= LONGEST_TOKEN or any(byte <= ord(" ") for byte in token):
        raise NoToken(f"The command {command[0]!r} in {_KEY} printed no access token; it must print nothing else.")
    return token.decode("ascii")


def _last_line(told: bytes) -> str:
    lines = [line.strip() for line in told.decode("utf-8", "replace").splitlines() if line.strip()]
    return "".join(letter for letter in lines[-1] if letter.isprintable())[:_TOLD] if lines else ""
