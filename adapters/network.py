"""Why a server could not be reached, in a few words for people: whatever library it was, and however deep it lies.

Contract: pure. A reason has no full stop at its end, names no class and no address; what nothing is known of is
told in the words of the error, without the name of its class in front.
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
from collections.abc import Iterator

__all__ = ["reason_of"]

_DEEPEST = 12
_NO_WAY = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL})
_OFFLINE = "no network leads to it; is this machine online?"
#: The first that fits counts.
_SYSTEM: tuple[tuple[type[Exception], str], ...] = (
    (ssl.SSLError, "no encrypted connection can be made with it"),
    (socket.gaierror, "the name of its server cannot be found; is this machine online?"),
    (ConnectionRefusedError, "nothing answers at its address"),
    (TimeoutError, "it does not answer in time"),
    (ConnectionError, "the connection was cut"),
)
#: What the libraries call the same, by the name of the class: nothing of them is imported here.
_CALLED = {
    "ProxyError": "the proxy on the way to it failed",
    "ClientHttpProxyError": "the proxy on the way to it failed",
    "TimeoutException": "it does not answer in time",
    "TimedOut": "it does not answer in time",
    "ServerDisconnectedError": "the connection was cut",
    "RemoteProtocolError": "the connection was cut",
    "ReadError": "the connection was cut",
    "WriteError": "the connection was cut",
    "ConnectionClosed": "the connection was cut",
    "BrokenResourceError": "the connection was cut",
}
#: A class in front of the words: `httpx.ConnectError: `.
_CLASS = re.compile(r"\A(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Timeout|TimedOut|Disconnected): ?")


def reason_of(error: BaseException) -> str:
    """Return the reason."""
    known = list(_chain(error))
    for cause in known:
        if (told := _of_system(cause)) is not None:
            return told
    for cause in known:
        for kind in type(cause).__mro__:
            if kind.__name__ in _CALLED:
                return _CALLED[kind.__name__]
    words = [_CLASS.sub("", str(cause)).strip().rstrip(".") for cause in known]
    return next((word for word in words if word), "no reason was told")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what lies behind it, the outermost first."""
    waiting, seen = [error], 0
    while waiting and seen < _DEEPEST:
        cause = waiting.pop(0)
        seen += 1
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            waiting.extend(cause.exceptions)
        # Some libraries keep the system's error in a field of theirs.
        behind = (getattr(cause, "os_error", None), cause.__cause__ or cause.__context__)
        waiting.extend(one for one in behind if isinstance(one, BaseException))


def _of_system(error: BaseException) -> str | None:
    """Return what an error of the system means."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not to be trusted: {error.verify_message or 'it cannot be verified'}"
    if isinstance(error, OSError) and error.errno in _NO_WAY:
        return _OFFLINE
    return next((words for kind, words in _SYSTEM if isinstance(error, kind)), None)
