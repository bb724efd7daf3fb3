"""The command that people are told to type exists for them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gateway.cli.running import own_command


def program(folder: Path, name: str = "threadline") -> Path:
    """An executable of that name."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def elsewhere_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This program lies in a virtual environment, and the shell finds nothing."""
    own = program(tmp_path / "venv bin")
    monkeypatch.setattr(sys, "argv", [str(own), "gateway", "run"])
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    return own


def test_where_the_shell_does_not_find_it_the_path_is_told(elsewhere_installed: Path) -> None:
    """Quoted, so that it can be typed."""
    assert own_command() == f"'{elsewhere_installed}'"


def test_where_the_shell_finds_it_the_name_is_told(
    elsewhere_installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also through a link."""
    monkeypatch.setenv("PATH", str(elsewhere_installed.parent))
    assert own_command() == "threadline"
    links = tmp_path / "links"
    links.mkdir()
    (links / "threadline").symlink_to(elsewhere_installed)
    monkeypatch.setenv("PATH", str(links))
    assert own_command() == "threadline"


def test_another_installation_of_the_name_is_not_this_program(
    elsewhere_installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path is told: the other one may be another version with another home."""
    monkeypatch.setenv("PATH", str(program(tmp_path / "other").parent))
    assert own_command() == f"'{elsewhere_installed}'"


def test_started_in_another_way_the_program_beside_the_interpreter_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m` and the like; without one the name must do."""
    monkeypatch.setattr(sys, "argv", ["-c"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python" / "python3"))
    assert own_command() == "threadline"
    beside = program(tmp_path / "python")
    assert own_command() == str(beside)
