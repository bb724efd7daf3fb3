"""Who may speak to the page's server."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import pytest
from starlette.applications import Starlette

from gateway.web.app import create_app
from gateway.web.auth import SECURITY_HEADERS, Keyring
from tests.unit.web.conftest import PORT, TOKEN, browser
from tests.unit.web.desk import FakeDesk, session

BEARER = {"authorization": f"Bearer {TOKEN}"}
MESSAGE = {"session_id": None, "text": "hello", "client_id": "client-0001"}
OURS = f"http://127.0.0.1:{PORT}"


@pytest.mark.parametrize(
    ("bound", "host", "served"),
    [
        ("127.0.0.1", f"127.0.0.1:{PORT}", True),
        ("127.0.0.1", f"localhost:{PORT}", True),
        ("127.0.0.1", f"LOCALHOST:{PORT}", True),
        ("127.0.0.1", f"[::1]:{PORT}", True),
        ("127.0.0.1", "127.0.0.1", False),
        ("127.0.0.1", "127.0.0.1:80", False),
        ("127.0.0.1", f"evil.example:{PORT}", False),
        ("127.0.0.1", f"127.0.0.1.evil.example:{PORT}", False),
        ("127.0.0.1", f"localhost.evil.example:{PORT}", False),
        ("127.0.0.1", f"192.168.1.5:{PORT}", False),
        ("127.0.0.1", f"127.0.0.1:{PORT}x", False),
        ("127.0.0.1", "", False),
        ("192.168.1.5", f"192.168.1.5:{PORT}", True),
        ("192.168.1.5", f"127.0.0.1:{PORT}", True),
        ("192.168.1.5", f"192.168.1.6:{PORT}", False),
        ("0.0.0.0", f"127.0.0.1:{PORT}", True),  # noqa: S104 - recognised, not bound
        ("0.0.0.0", "172.17.0.2:9000", True),  # noqa: S104
        ("0.0.0.0", "[fe80::1]:9000", True),  # noqa: S104
        ("0.0.0.0", "localhost:9000", True),  # noqa: S104
        ("0.0.0.0", "evil.example:9000", False),  # noqa: S104
        ("::", "evil.example", False),
        ("::", "10.0.0.7", True),
    ],
)
async def test_only_our_own_hosts_are_served(shut: FakeDesk, bound: str, host: str, *, served: bool) -> None:
    """A name that somebody else's DNS points to this machine gets nothing, not even the page."""
    app = create_app(shut, token=TOKEN, host=bound, port=PORT)
    async with browser(app, host=host) as client:
        response = await client.get("/")

    assert response.status_code == (200 if served else 400)


@pytest.mark.parametrize("path", ["/api/sessions", "/api/search?q=x", "/api/commands", "/api/events", "/api/nothing"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer "},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer \xff\xfe"},
        {"cookie": f"threadline_{PORT}={TOKEN}"},
        {"cookie": f"threadline_{PORT}="},
        {"cookie": f"threadline_9999={Keyring(TOKEN, PORT).cookie_value}"},
        {"cookie": "threadline_8737"},
        {"cookie": 'x="; =\x01'},
    ],
)
async def test_the_api_never_answers_without_the_token(door: Starlette, path: str, headers: dict[str, str]) -> None:
    """No token, a wrong one, the right one in the wrong place: 401 with a sentence."""
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    async with browser(door) as client:
        response = await client.get(path, headers=raw)

    assert response.status_code == 401
    assert "threadline gateway run" in response.json()["error"]


async def test_the_token_opens_the_api_as_bearer_and_as_cookie(app: Starlette, cookie: str) -> None:
    """A script sends the token itself, a browser the cookie made from it, among whatever others of this machine set."""
    async with browser(app) as client:
        by_bearer = await client.get("/api/sessions", headers=BEARER)
        by_cookie = await client.get("/api/sessions", headers={"cookie": f'a={{"x": 1}}; b c=2; =; {cookie}; d=[@]'})

    assert (by_bearer.status_code, by_cookie.status_code) == (200, 200)


async def test_the_right_address_sets_the_cookie_and_leaves_the_token_out(app: Starlette) -> None:
    """After the redirect the address bar holds no token, and scripts cannot read the cookie."""
    async with browser(app) as client:
        response = await client.get("/", params={"token": TOKEN})
        opened = await client.get("/api/sessions")

    assert (response.status_code, response.headers["location"]) == (303, "/")
    given = response.headers["set-cookie"].lower()
    assert "httponly" in given
    assert "samesite=strict" in given
    assert TOKEN not in given
    assert opened.status_code == 200


@pytest.mark.parametrize("given", ["", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "\ud83d", "ключ"])
async def test_a_wrong_token_gets_the_page_without_a_cookie(door: Starlette, given: str) -> None:
    """The page itself then asks for the right address."""
    async with browser(door) as client:
        response = await client.get("/?token=" + quote(given.encode("utf-8", "surrogatepass")))

    assert response.status_code == 403
    assert "set-cookie" not in response.headers
    assert "Threadline" in response.text


async def test_the_page_and_its_files_hold_nothing_private(app: Starlette, desk: FakeDesk) -> None:
    """They are served to everybody who knows the address."""
    await session(desk.db, "s1", title="A secret plan")
    async with browser(app) as client:
        page = await client.get("/")
        script = await client.get("/static/app.js")
        outside = await client.get("/static/../app.py")

    assert (page.status_code, script.status_code, outside.status_code) == (200, 200, 404)
    assert "secret" not in page.text
    assert TOKEN not in page.text


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"origin": OURS}, True),
        ({"origin": OURS.replace("http:", "https:")}, True),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"x-threadline": "page"}, True),
        ({}, False),
        ({"origin": "null"}, False),
        ({"origin": "https://evil.example"}, False),
        ({"origin": f"http://localhost:{PORT}"}, False),
        ({"origin": "http://127.0.0.1:3000"}, False),
        ({"origin": OURS + ".evil.example"}, False),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"origin": "https://evil.example", "sec-fetch-site": "same-origin"}, False),
        ({"origin": "https://evil.example", "x-threadline": "page"}, False),
    ],
)
async def test_only_our_own_page_may_change_something_with_the_cookie(
    app: Starlette, desk: FakeDesk, cookie: str, headers: dict[str, str], *, allowed: bool
) -> None:
    """The browser sends the cookie for every page of this machine; where the request comes from decides."""
    async with browser(app, cookie=cookie) as client:
        response = await client.post("/api/messages", json=MESSAGE, headers=headers)

    assert response.status_code == (202 if allowed else 403)
    assert len(desk.submitted) == int(allowed)


@pytest.mark.parametrize("headers", [{}, {"origin": "http://127.0.0.1:3000"}, {"sec-fetch-site": "same-site"}])
async def test_the_event_stream_is_for_our_own_page_too(door: Starlette, cookie: str, headers: dict[str, str]) -> None:
    """Reading along is as private as writing."""
    async with browser(door, cookie=cookie) as client:
        response = await client.get("/api/events", headers=headers)

    assert response.status_code == 403


async def test_the_bearer_needs_no_origin_but_suffers_no_foreign_one(app: Starlette) -> None:
    """A script has no Origin; a foreign page that somehow holds the token is still refused."""
    async with browser(app, **BEARER) as client:
        script = await client.post("/api/messages", json=MESSAGE)
        page = await client.post("/api/messages", json=MESSAGE, headers={"origin": "https://evil.example"})

    assert (script.status_code, page.status_code) == (202, 403)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/", 200), ("/?token=wrong", 403), ("/health", 200), ("/api/sessions", 401), ("/nothing", 404)],
)
async def test_every_answer_carries_the_security_headers(door: Starlette, path: str, status: int) -> None:
    """No inline script, no framing, no sniffing, no referrer; nothing private stays in a cache."""
    async with browser(door) as client:
        response = await client.get(path)

    assert response.status_code == status
    assert {name: response.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
    assert "unsafe-inline" not in response.headers["content-security-policy"]
    assert response.headers["cache-control"] == "no-store"


async def test_an_unexpected_failure_is_a_sentence_with_the_same_headers(
    desk: FakeDesk, owner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the inside shows."""

    def broken() -> list[tuple[str, str, str]]:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr(desk, "commands", broken)
    response = await owner.get("/api/commands")

    assert response.status_code == 500
    assert "log" in response.json()["error"]
    assert "secret" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"
