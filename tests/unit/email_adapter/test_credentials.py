"""What an account proves itself with: its password, or a token from a command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from adapters.email import MailAccount, Server
from adapters.email import credentials as module
from adapters.email.credentials import Credentials, NoToken, credentials


def account(*command: str) -> MailAccount:
    """A mailbox with a command for its tokens."""
    nowhere = Server("127.0.0.1", 1, "none")
    return MailAccount("agent@example.org", "agent", "", nowhere, nowhere, token_command=command)


def program(code: str) -> MailAccount:
    """A mailbox whose tokens a small program prints."""
    return account(sys.executable, "-c", code)


async def test_a_password_is_what_it_is() -> None:
    """No command, no token; and it is in no record of what happened."""
    nowhere = Server("127.0.0.1", 1, "none")
    known = await credentials(MailAccount("a@x", "ann", "horse", nowhere, nowhere))
    assert known == Credentials("ann", "horse")
    assert "horse" not in repr(known)


async def test_the_first_line_of_what_the_command_prints_is_the_token() -> None:
    """What it says on the other stream is its own affair."""
    told = "import sys; sys.stderr.write('refreshed'); print('ya29.a-b_c'); print('expires: soon')"
    assert await credentials(program(told)) == Credentials("agent", "ya29.a-b_c", token=True)


async def test_a_command_is_run_without_a_shell() -> None:
    """Its arguments are what they are."""
    echo = "import sys; print(sys.argv[1])"
    found = await credentials(account(sys.executable, "-c", echo, "$HOME;*"))
    assert found.secret == "$HOME;*"  # noqa: S105  (no secret)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("raise SystemExit('the login has run out')", r"failed \(the login has run out\)"),
        ("raise SystemExit(3)", r"failed \(3\)"),
        ("pass", "printed no access token"),
        ("print('two words')", "printed no access token"),
        ("print('x' * 20000)", "printed no access token"),
        ("print('\\xfc')", "printed no access token"),
    ],
)
async def test_a_command_that_gives_no_token_is_told_in_a_sentence(code: str, sentence: str) -> None:
    """It may work later: the network may be away."""
    with pytest.raises(NoToken, match=sentence) as caught:
        await credentials(program(code))

    assert "platforms.email.token_command" in str(caught.value)
    assert not caught.value.lasting


async def test_a_command_that_is_not_there_will_not_come_by_itself(tmp_path: Path) -> None:
    """Only a person can mend that."""
    with pytest.raises(NoToken, match=r"cannot be run \(No such file or directory\); check it") as caught:
        await credentials(account(str(tmp_path / "missing")))

    assert caught.value.lasting


async def test_a_command_that_asks_is_ended_with_what_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nobody can answer it, and nothing of it is left behind."""
    monkeypatch.setattr(module, "COMMAND_SECONDS", 1.0)
    alive = tmp_path / "alive"
    child = f"import time; time.sleep(3); open({str(alive)!r}, 'w')"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with pytest.raises(NoToken, match="did not end within 1 s"):
        await credentials(program(code))

    assert not alive.exists()
