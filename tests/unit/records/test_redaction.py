"""Secrets are replaced by their kind: in text, and in what is stored if asked; the guide names every kind."""

# ruff: noqa: RUF001 - punctuation of other scripts is what is tested

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_store import NewInbox, PlaceRef, SessionDB
from session_store.redaction import KINDS, redact, redact_value

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "privacy.md"

#: Made up, and put together here so that no scanner takes this file for a leak.
BODY = "Ab3" * 20
SECRETS = {
    "private key": f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n{BODY}\n-----END RSA PRIVATE KEY-----",
    "password in an address": "postgres://ann:{}@db.example/app",
    "AWS key id": "AKIA" + "ABCDEFGH12345678",
    "GitHub token": "ghp_" + BODY[:36],
    "GitLab token": "glpat-" + BODY[:20],
    "Slack token": "xoxb-" + "123456789012-" + BODY[:24],
    "Discord token": "M" + BODY[:25] + "." + BODY[:6] + "." + BODY[:38],
    "Telegram token": "1234567890:" + BODY[:35],
    "API key": "sk-proj-" + BODY[:40],
    "JSON web token": "eyJ" + BODY[:20] + ".eyJ" + BODY[:30] + "." + BODY[:30],
    "authorization": "Authorization: Bearer {}",
    "password": "password: {}",
}
HIDDEN = "hunter2-and-more"


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_each_kind_is_replaced_and_nothing_around_it(kind: str) -> None:
    """Beginning and end of the text stay; what is secret in it is gone."""
    secret = SECRETS[kind].format(HIDDEN)
    told = redact(f"before {secret} after")
    assert told.startswith("before ")
    assert told.endswith(" after")
    assert f"[redacted: {kind}]" in told
    assert HIDDEN not in told
    assert BODY[:20] not in told
    assert redact(told) == told


@pytest.mark.parametrize(
    "text",
    [
        "the password is on the fridge",
        "token ring, secret santa, a key to the door",
        "see https://example.com/a:b@c and user@example.com",
        "at 12:30:45, sk-8 and AKIA",
        "密码 在冰箱上",
        "eyJ is how they begin",
    ],
)
def test_plain_talk_is_left_alone(text: str) -> None:
    """Words about secrets are no secrets."""
    assert redact(text) == text


@pytest.mark.parametrize("text", ["密码：abc12345", "пароль: abc12345", "API_KEY=abc12345", "contraseña = 'abc12345'"])
def test_passwords_are_known_by_what_they_are_called(text: str) -> None:
    """In several languages and notations."""
    assert "abc12345" not in redact(text)


def test_json_in_a_string_stays_json() -> None:
    """Arguments of a tool call are read again later."""
    arguments = json.dumps(
        {"command": f'login --password="{HIDDEN}"', "env": {"TOKEN": BODY, "key": SECRETS["private key"]}}
    )
    told = json.loads(redact(arguments))
    assert HIDDEN not in told["command"]
    assert BODY not in told["env"]["TOKEN"]
    assert BODY not in told["env"]["key"]


@given(st.text(alphabet='-:@/.=abKEY PRIVATEBGIN"\\密码sk_xo ghp', max_size=200))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    """Whatever the text."""
    once = redact(text)
    assert redact(once) == once


def test_a_long_text_takes_no_long_time() -> None:
    """Nothing in it can make the patterns try everything over and over: twice the text, about twice the time."""

    def seconds(text: str) -> float:
        started = time.process_time()
        redact(text)
        return time.process_time() - started

    for piece in ("password", "://a:", "-----BEGIN A PRIVATE KEY-----", "eyJ.", "x" * 50, "authorization: "):
        assert seconds(piece * (200_000 // len(piece))) < 5


def test_values_of_json_are_redacted_and_names_are_not() -> None:
    """Deeply, whatever the shape."""
    value = {"token": [SECRETS["API key"], 5, None, {"a": (SECRETS["GitHub token"],)}]}
    assert redact_value(value) == {"token": ["[redacted: API key]", 5, None, {"a": ["[redacted: GitHub token]"]}]}


async def test_secrets_are_not_stored_when_asked(tmp_path: Path) -> None:
    """Content, calls and reasoning of messages, and what waits in the inbox; the file has no byte of them."""
    path, secret = tmp_path / "state.db", SECRETS["API key"]
    call = {"id": "c", "type": "function", "function": {"name": "sh", "arguments": json.dumps({"key": secret})}}
    async with SessionDB(path, redact=True) as db:
        await db.create_session("s", "cli", owner="owner")
        await db.append_message("s", "user", f"my key is {secret}")
        await db.append_message("s", "user", [{"type": "text", "text": f"again {secret}"}])
        await db.append_message("s", "assistant", None, tool_calls=[call], reasoning=f"use {secret}")
        place = PlaceRef("telegram", "main", "dm", "1")
        payload = {"text": secret, "quoted": {"text": secret, "name": "Ann"}, "message_id": "7"}
        await db.inbox.accept(NewInbox(place, "m:1:7", "message", "lane", 1.0, payload, {"id": "1"}))
        first, second, third = await db.get_messages("s")
        assert first["content"] == "my key is [redacted: API key]"
        assert second["content"] == [{"type": "text", "text": "again [redacted: API key]"}]
        assert third["tool_calls"] is not None
        assert json.loads(third["tool_calls"][0]["function"]["arguments"]) == {"key": "[redacted: API key]"}
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert secret.encode() not in stored
    assert b"[redacted: API key]" in stored


async def test_secrets_are_stored_as_they_are_by_default(db: SessionDB) -> None:
    """History is complete unless its owner wants otherwise."""
    await db.create_session("s", "cli")
    await db.append_message("s", "user", SECRETS["API key"])
    assert (await db.get_messages("s"))[0]["content"] == SECRETS["API key"]


@pytest.mark.documents
def test_the_guide_names_every_kind() -> None:
    """One row each, in the words of the table."""
    rows = [line for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("| `[redacted: ")]
    assert rows == [f"| `[redacted: {kind.name}]` | {kind.what} |" for kind in KINDS]
