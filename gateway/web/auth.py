"""Who may speak to the page's server: token, Host and Origin, checked for every request, also on loopback.

Contract: `Guard` wraps the whole application. A request passes only if
1. its Host is one of ours. Bound to one address: that address or a loopback name, with our port. Bound to all
   addresses (a container, where the outer port may differ): any IP literal or a loopback name. A name from DNS is never
   accepted, so that a page which rebinds its own name to this machine gets nothing;
2. below `/api/`, it carries the token: as `Authorization: Bearer`, or as the cookie that `/?token=` sets;
3. if it changes something or opens the event stream, it shows that it comes from our own page: an Origin, if there is
   one, must be that of the Host; without one it needs the Bearer token, `Sec-Fetch-Site: same-origin`, or the header
   `X-Threadline`, which a foreign page cannot send without a CORS preflight that nobody answers. ("same-site" is not
   enough: every port of this machine is the same site.)
Failure: one JSON sentence with 400 (Host), 401 (token) or 403 (Origin). Every response carries the security headers,
or stricter ones of its own.
Limits: a cookie does not tell ports apart, so that another server on this machine which the person visits sees it.
Therefore it holds a value derived from the token, never the token.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser

from gateway.web.replies import failure

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["COOKIE_MAX_AGE", "SECURITY_HEADERS", "Guard", "Keyring"]

#: Seconds that a browser keeps the cookie: 90 days.
COOKIE_MAX_AGE = 90 * 86_400

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types threadline"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_EVERYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - recognised, not bound
_EVENTS = "/api/events"


@dataclass(frozen=True, slots=True)
class Keyring:
    """The token and what is derived from it."""

    token: str
    port: int

    @property
    def cookie_name(self) -> str:
        """Named by port, so that two gateways of one machine do not overwrite each other's."""
        return f"threadline_{self.port}"

    @property
    def cookie_value(self) -> str:
        """What the cookie holds: proof that its bearer knew the token."""
        return hmac.new(self.token.encode(), b"threadline web cookie", hashlib.sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        """Whether `given` is the token; takes the same time for every wrong one."""
        return _same(given, self.token)

    def bearer(self, headers: Headers) -> bool:
        """Whether the request carries the token as a bearer."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.is_token(given.strip())

    def cookie(self, headers: Headers) -> bool:
        """Whether the request carries our cookie."""
        given = cookie_parser(headers.get("cookie", "")).get(self.cookie_name)
        return given is not None and _same(given, self.cookie_value)

    def set_cookie(self, response: Response) -> None:
        """Give the browser the cookie."""
        response.set_cookie(
            self.cookie_name, self.cookie_value, max_age=COOKIE_MAX_AGE, path="/", httponly=True, samesite="strict"
        )


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, *, keyring: Keyring, host: str) -> None:
        self._app = app
        self._keyring = keyring
        self._host = host.strip("[]").lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check and pass on, or answer with the reason why not."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)

        async def harden(message: Message) -> None:
            if message["type"] == "http.response.start":
                out = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    out.setdefault(name, value)
                out.setdefault("Cache-Control", "no-cache" if scope["path"].startswith("/static/") else "no-store")
            await send(message)

        app = self._refusal(scope, headers) or self._app
        await app(scope, receive, harden)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if not self._host_is_ours(headers.get("host", "")):
            return failure(400, "This address is not served here. Open the one that `threadline gateway run` printed.")
        api = scope["path"].startswith("/api/")
        bearer = api and self._keyring.bearer(headers)
        if api and not bearer and not self._keyring.cookie(headers):
            return failure(401, "The token is missing. Open the address that `threadline gateway run` printed.")
        sensitive = scope["method"] not in {"GET", "HEAD"} or scope["path"] == _EVENTS
        if sensitive and not _from_our_page(headers, bearer=bearer):
            return failure(403, "Only Threadline's own page may do this. Use the page, or send the token as a bearer.")
        return None

    def _host_is_ours(self, given: str) -> bool:
        name, port = _split_host(given)
        if name in _LOOPBACK and (port == self._keyring.port or self._host in _EVERYWHERE):
            return True
        if self._host in _EVERYWHERE:
            return _is_ip(name)
        return name == self._host and port == self._keyring.port


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def _from_our_page(headers: Headers, *, bearer: bool) -> bool:
    origin = headers.get("origin")
    if origin is not None:
        host = headers["host"].lower()
        return origin.lower() in {f"http://{host}", f"https://{host}"}
    return bearer or headers.get("sec-fetch-site") == "same-origin" or "x-threadline" in headers


def _split_host(given: str) -> tuple[str, int | None]:
    """`name:port` or `[v6]:port` -> lower-case name and port (80 when absent; None when it is not a number)."""
    name, colon, port = given.lower().rpartition(":")
    if not colon or port.endswith("]"):
        name, port = given.lower(), "80"
    return name.removeprefix("[").removesuffix("]"), int(port) if port.isascii() and port.isdigit() else None


def _is_ip(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
