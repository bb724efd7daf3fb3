"""Why a server could not be reached, in words for people."""

from __future__ import annotations

import errno
import socket
import ssl

import aiohttp
import httpx
import pytest
from aiohttp.client_reqrep import ConnectionKey
from telegram.error import NetworkError, TimedOut

from adapters.network import reason_of

KEY = ConnectionKey("example.org", 443, is_ssl=True, ssl=True, proxy=None, proxy_auth=None, proxy_headers_hash=None)


def behind(outer: Exception, *inner: Exception) -> Exception:
    """An error with others behind it."""
    error = outer
    for cause in inner:
        error.__cause__ = cause
        error = cause
    return outer


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "nothing answers at its address"),
        (
            behind(NetworkError("httpx.ConnectError: All connection attempts failed"), ConnectionRefusedError()),
            "nothing answers at its address",
        ),
        (
            aiohttp.ClientConnectorError(KEY, ConnectionRefusedError(111, "refused")),
            "nothing answers at its address",
        ),
        (
            behind(NetworkError("httpx.ConnectError"), httpx.ConnectError("x"), socket.gaierror(-2, "unknown")),
            "the name of its server cannot be found; is this machine online?",
        ),
        (
            behind(OSError("failed"), OSError(errno.ENETUNREACH, "unreachable")),
            "no network leads to it; is this machine online?",
        ),
        (behind(TimedOut(), httpx.ReadTimeout("")), "it does not answer in time"),
        (TimeoutError(), "it does not answer in time"),
        (aiohttp.ServerDisconnectedError(), "the connection was cut"),
        (behind(NetworkError("httpx.ReadError: "), httpx.ReadError("")), "the connection was cut"),
        (ConnectionResetError(104, "reset"), "the connection was cut"),
        (ssl.SSLError(1, "wrong version number"), "no encrypted connection can be made with it"),
        (httpx.ProxyError("403"), "the proxy on the way to it failed"),
        (ExceptionGroup("all", [OSError("one"), ConnectionRefusedError()]), "nothing answers at its address"),
        (NetworkError("httpx.LocalProtocolError: Odd header."), "Odd header"),
        (OSError(), "no reason was told"),
    ],
    ids=str,
)
def test_the_reason_is_told_however_deep_it_lies(error: Exception, reason: str) -> None:
    """And whichever library has wrapped it."""
    assert reason_of(error) == reason


def test_a_certificate_that_is_not_trusted_says_why() -> None:
    """That is what somebody must mend."""
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "certificate has expired"
    assert reason_of(error) == "its certificate is not to be trusted: certificate has expired"


def test_errors_that_point_at_each_other_come_to_an_end() -> None:
    """A ring has no deepest one."""
    one, other = OSError("one"), OSError("other")
    one.__cause__, other.__cause__ = other, one
    assert reason_of(one) == "one"
