"""`threadline gateway status|stop` and `threadline pair`, as far as no gateway is needed for it."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest

from session_store import SessionDB
from tests.unit.cli.conftest import Fill, Threadline


def test_status_without_a_gateway(threadline: Threadline) -> None:
    """It says how to start one; exit code 1."""
    done = threadline("gateway", "status")

    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "No gateway is running for this home. Start one with `threadline gateway run`.",
        "inbox: empty",
        "outbox: empty",
    ]


def test_status_as_json(threadline: Threadline) -> None:
    """The same facts for programs."""
    done = threadline("gateway", "status", "--json")

    report = json.loads(done.stdout)
    assert done.exit_code == 1
    assert set(report) == {"gateways", "inbox", "outbox"}
    assert report["gateways"] == []


def test_stop_without_a_gateway(threadline: Threadline) -> None:
    """There is nothing to stop."""
    done = threadline("gateway", "stop")

    assert (done.exit_code, done.stdout, done.stderr) == (1, "", "No gateway is running for this home.\n")


def test_a_gateway_elsewhere_is_told_and_left_alone(threadline: Threadline, fill: Fill, home: Path) -> None:
    """Its process id means another process here, or none."""

    async def register(db: SessionDB) -> None:
        await db.processes.register("gateway", ["web/main"], {"address": None})

    fill(register)
    with sqlite3.connect(home / "state.db") as store:
        store.execute("UPDATE processes SET host = 'other-host', pid = 1")
    store.close()

    done = threadline("gateway", "stop")

    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.endswith("stop it there: other-host (process 1).\n")
    shown = threadline("gateway", "status")
    assert shown.exit_code == 0
    assert "web: starting (does not answer)" in shown.stdout


def test_pair_says_where_the_code_goes(threadline: Threadline) -> None:
    """In the words of the platform."""
    assert "to your Telegram bot in a direct chat" in threadline("pair", "telegram").stderr
    mail = threadline("pair", "email").stderr
    assert "in a mail to the gateway" in mail
    assert "no e-mail account is enabled" in mail


def test_pair_prints_the_code_alone_on_stdout(threadline: Threadline) -> None:
    """Unambiguous characters; what to do with it is for the person, on stderr."""
    done = threadline("pair", "telegram")

    assert done.exit_code == 0
    assert re.fullmatch(r"[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}\n", done.stdout)
    assert "becomes yours. It works once." in done.stderr
    assert "Note: no Telegram account is enabled" in done.stderr
    assert "becomes Grace's" in threadline("pair", "telegram", "--as", "Grace").stderr


@pytest.mark.parametrize("arguments", [("telegraph",), ("telegram", "--as", " "), ()])
def test_pair_with_wrong_usage(threadline: Threadline, home: Path, arguments: tuple[str, ...]) -> None:
    """Exit code 2, and no code is made."""
    done = threadline("pair", *arguments)

    assert (done.exit_code, done.stdout) == (2, "")
    assert not (home / "state.db").exists()
