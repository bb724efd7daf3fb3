"""One mail to the server that sends it on, and what went wrong as exactly one kind of `SendError`.

Which error means what:
- the server cannot be reached, or the connection broke before it could have the mail: `RetryLater`; surely not sent.
- it broke or went silent after the mail was on its way: `UnknownOutcome`. The repeat has the same Message-ID, so that
  servers and mail programs that know doubles show it once; there is nothing to ask beforehand, since what was sent is
  in no folder that every server keeps.
- a status 4xx at any step ("not now": greylisting, quotas, load): `RetryLater`.
- the password, the access token or our own address refused for good, or no token to be had: `RetryLater` for the whole
  account, until a person mends it.
- the recipient unknown: `Gone`. Any other status 5xx (policy, size, content): `Refused`.
Limits: `STEP_SECONDS` for one step; one connection per mail.
"""

from __future__ import annotations

import contextlib
import re
import ssl
from typing import Final

from aiosmtplib import (
    SMTP,
    SMTPAuthenticationError,
    SMTPException,
    SMTPRecipientRefused,
    SMTPResponseException,
    SMTPSenderRefused,
)

from adapters.base import Gone, Refused, RetryLater, SendError, UnknownOutcome
from adapters.email.account import MailAccount, refused_login
from adapters.email.composing import Letter
from adapters.email.credentials import NoToken, credentials

__all__ = ["Transmission", "login_refusal"]

STEP_SECONDS: Final = 15.0
QUIT_SECONDS: Final = 1.0
_RECONNECT: Final = 5.0
#: How long until a mail is tried again that the server did not want now, and until refused secrets are.
_NOT_NOW: Final = 60.0
_ACCOUNT_REFUSED: Final = 60.0
_PERMANENT: Final = 500
_TRANSIENT: Final = range(400, 500)
_TOO_LARGE: Final = 552
_NO_SUCH_MAILBOX: Final = frozenset({550, 551, 553})
_STATUS: Final = re.compile(r"\b5\.(\d{1,3})\.\d{1,3}\b")


class Transmission:
    """One attempt. begun: from now on the server may have the mail."""

    def __init__(self, account: MailAccount, context: ssl.SSLContext) -> None:
        self._account = account
        self._client = _client(account, context)
        self.begun = False

    async def run(self, letter: Letter) -> None:
        """Hand the mail over; raises a SendError."""
        try:
            await _log_in(self._client, self._account)
            await self._client.mail(self._account.address)
            await self._client.rcpt(letter.recipient)
            self.begun = True
            await self._client.data(letter.raw)
        except NoToken as error:
            raise RetryLater(str(error), _ACCOUNT_REFUSED, whole_account=True) from error
        except (SMTPException, OSError, ValueError) as error:
            raise self._meaning(error) from error
        else:
            await _leave(self._client)
        finally:
            self._client.close()

    def interrupted(self) -> SendError:
        """Return what it means when the attempt was ended from outside."""
        if self.begun:
            return UnknownOutcome("The mail server did not answer in time; nobody knows whether the mail was sent.")
        return RetryLater("The mail server did not answer in time.", _RECONNECT)

    def _meaning(self, error: Exception) -> SendError:
        host = self._account.smtp.host
        if isinstance(error, SMTPResponseException):
            words = " ".join(f"{error.code} {error.message}".split())
            if error.code in _TRANSIENT:
                return RetryLater(f"The mail server {host} does not want the mail now ({words}).", _NOT_NOW)
            if error.code >= _PERMANENT:
                return self._refusal(error, words)
            error = ConnectionError(f"an answer that makes no sense: {words}")
        reason = str(error) or type(error).__name__
        if self.begun:
            return UnknownOutcome(f"The connection to {host} failed while sending ({reason}).")
        return RetryLater(f"The mail server {host} cannot be reached ({reason}).", _RECONNECT)

    def _refusal(self, error: SMTPResponseException, words: str) -> SendError:
        if isinstance(error, SMTPAuthenticationError):
            problem = refused_login(self._account, self._account.smtp, words)
            return RetryLater(problem, _ACCOUNT_REFUSED, whole_account=True)
        if isinstance(error, SMTPSenderRefused) and error.code != _TOO_LARGE:
            return RetryLater(
                f"The mail server does not let this account send as {self._account.address} ({words}); check "
                "platforms.email.",
                _ACCOUNT_REFUSED,
                whole_account=True,
            )
        if isinstance(error, SMTPRecipientRefused):
            status = _STATUS.search(error.message)
            if status[1] == "1" if status else error.code in _NO_SUCH_MAILBOX:
                return Gone(f"There is no such mailbox ({words}).")
        return Refused(f"The mail server refused the mail ({words}).")


async def login_refusal(account: MailAccount, context: ssl.SSLContext) -> str | None:
    """Return why this account can never send, in a sentence; None when it can, or when that cannot be told now."""
    client = _client(account, context)
    try:
        await _log_in(client, account)
        await _leave(client)
    except NoToken as error:
        return str(error) if error.lasting else None
    except SMTPAuthenticationError as error:
        words = " ".join(f"{error.code} {error.message}".split())
        return refused_login(account, account.smtp, words) if error.code >= _PERMANENT else None
    except (SMTPException, OSError, ValueError):
        return None
    finally:
        client.close()
    return None


def _client(account: MailAccount, context: ssl.SSLContext) -> SMTP:
    return SMTP(
        hostname=account.smtp.host,
        port=account.smtp.port,
        use_tls=account.smtp.tls == "tls",
        start_tls=account.smtp.tls == "starttls",
        tls_context=context,
        timeout=STEP_SECONDS,
        local_hostname=account.domain,
    )


async def _log_in(client: SMTP, account: MailAccount) -> None:
    """Connect; a server that asks for no password (one of the house) gets none."""
    await client.connect()
    await client.ehlo()
    if not client.server_auth_methods:
        return
    who = await credentials(account)
    if who.token:
        await client.auth_xoauth2(who.username, who.secret)
    elif client.supported_auth_methods:
        await client.login(who.username, who.secret)


async def _leave(client: SMTP) -> None:
    """Say goodbye; what was sent is sent, whatever the server answers."""
    with contextlib.suppress(SMTPException, OSError):
        await client.quit(timeout=QUIT_SECONDS)
