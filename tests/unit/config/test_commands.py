"""`threadline config show|check|init|path`, as a person calls them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from config import Home, Settings, load_settings
from gateway.cli.config_commands import app


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of whoever runs the tests do not count."""
    for name in [name for name in os.environ if name.startswith("THREADLINE_") and name != "THREADLINE_HOME"]:
        monkeypatch.delenv(name)


def config(*arguments: str) -> Result:
    """Call `threadline config` with these arguments."""
    return CliRunner().invoke(app, list(arguments))


def test_path_names_the_file_and_makes_nothing(home: Path) -> None:
    """Also when there is none yet."""
    result = config("path")

    assert (result.exit_code, result.stdout) == (0, f"{home / 'config.yaml'}\n")
    assert list(home.iterdir()) == []


def test_init_writes_a_private_file_at_the_defaults(home: Path) -> None:
    """The file means the defaults and is for its owner alone."""
    result = config("init")

    assert result.exit_code == 0
    assert result.stdout.startswith(f"Wrote {home / 'config.yaml'}.")
    assert load_settings(Home(), {}) == Settings()
    if os.name == "posix":
        assert stat.S_IMODE((home / "config.yaml").stat().st_mode) == 0o600


def test_init_makes_the_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a fresh machine it is the first command."""
    monkeypatch.setenv("THREADLINE_HOME", str(home / "new" / "one"))

    assert config("init").exit_code == 0
    assert (home / "new" / "one" / "config.yaml").exists()


def test_init_leaves_a_file_that_is_there(home: Path) -> None:
    """Nobody's settings are overwritten by a second call."""
    (home / "config.yaml").write_text("busy: queue\n")

    result = config("init")

    assert result.exit_code == 1
    assert result.stderr == (
        f"{home / 'config.yaml'} is already there and was left as it is. Use --force to replace it.\n"
    )
    assert (home / "config.yaml").read_text() == "busy: queue\n"


def test_init_replaces_it_when_told_to(home: Path) -> None:
    """`--force` starts afresh."""
    (home / "config.yaml").write_text("busy: wrong\n")

    assert config("init", "--force").exit_code == 0
    assert load_settings(Home(), {}) == Settings()


def test_init_says_why_it_cannot_write(home: Path) -> None:
    """A folder in the place of the file."""
    (home / "config.yaml").mkdir()

    result = config("init", "--force")

    assert result.exit_code == 1
    assert result.stderr.startswith(f"{home / 'config.yaml'} cannot be written (")
    assert [path.name for path in home.iterdir()] == ["config.yaml"]


def test_check_says_ok(home: Path) -> None:
    """Nothing wrong, nothing else printed."""
    (home / "config.yaml").write_text("web: {port: 9000}\n")

    result = config("check")

    assert (result.exit_code, result.stdout, result.stderr) == (0, "ok\n", "")


def test_check_tells_every_problem_on_a_line(home: Path) -> None:
    """And fails."""
    (home / "config.yaml").write_text("web: {prot: 1}\nbusy: x\n")

    result = config("check")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        f"{home / 'config.yaml'}, line 1: web.prot is not a known key; did you mean web.port?",
        f'{home / "config.yaml"}, line 2: busy is "x"; expected `queue`, `interrupt` or `steer`',
    ]


def test_show_prints_what_is_in_force(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All layers together, as YAML or JSON, without secrets."""
    (home / "config.yaml").write_text("web: {port: 9000, token: s3cret-s3cret-s3cret}\n")
    (home / ".env").write_text("THREADLINE_WEB__HOST=::1\n")
    monkeypatch.setenv("THREADLINE_WEB__PORT", "9001")

    as_yaml, as_json = config("show"), config("show", "--json")

    assert (as_yaml.exit_code, as_json.exit_code) == (0, 0)
    assert "s3cret" not in as_yaml.stdout + as_json.stdout
    assert yaml.safe_load(as_yaml.stdout) == json.loads(as_json.stdout)
    assert json.loads(as_json.stdout)["web"] == {"host": "::1", "port": 9001, "token": "**********"}


def test_show_tells_what_is_wrong_instead_of_guessing(home: Path) -> None:
    """Wrong settings are not in force."""
    (home / "config.yaml").write_text("busy: x\n")

    result = config("show")

    assert (result.exit_code, result.stdout) == (1, "")
    assert 'busy is "x"; expected `queue`, `interrupt` or `steer`' in result.stderr


def test_a_wrong_option_is_wrong_usage(home: Path) -> None:
    """Exit code 2, and nothing happened."""
    assert config("init", "--farce").exit_code == 2
    assert list(home.iterdir()) == []
