"""The scripts: valid, callable from anywhere, clear when Python is missing, idle when there is nothing to do."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPTS = [*sorted((ROOT / "scripts").iterdir()), ROOT / ".ci" / "run"]

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the scripts need bash, which is not here")

FAKE_PYTHON = """#!/bin/sh
# Stands for the Python of a ready .venv: has pip, computes the stamp, records everything else.
case "$*" in
    "-m pip --version") exit 0 ;;
    "- pyproject.toml") echo the-hash ;;
    *) echo "$*" >>"$(dirname "$0")/../calls" ;;
esac
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project with nothing but the setup script."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup", tmp_path / "scripts" / "setup")
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def executable(file: Path, text: str) -> None:
    """Write a script."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


def setup(tree: Path, kind: str, *, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the setup of a tree from another folder."""
    bash = shutil.which("bash")
    assert bash is not None
    return subprocess.run(  # noqa: S603 - our own script
        [bash, str(tree / "scripts" / "setup"), kind],
        cwd="/", capture_output=True, text=True, timeout=30, check=False, env={"PATH": path or os.defpath},
    )  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_is_valid_and_strict(script: Path) -> None:
    """Executable bash that stops at the first failure."""
    lines = script.read_text(encoding="utf-8").splitlines()

    assert lines[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in lines
    assert script.stat().st_mode & stat.S_IXUSR
    subprocess.run(["bash", "-n", str(script)], check=True, timeout=30)  # noqa: S603, S607 - our own script


@pytest.mark.parametrize("old_python", [False, True])
def test_without_a_python_that_is_new_enough_it_says_so(tree: Path, old_python: bool) -> None:  # noqa: FBT001 - a case
    """One sentence that says what to do, and nothing made."""
    tools = tree / "tools"
    tools.mkdir()
    for tool in ("dirname", "cat"):
        found = shutil.which(tool)
        assert found is not None
        (tools / tool).symlink_to(found)
    if old_python:
        executable(tools / "python3", "#!/bin/sh\nexit 1\n")

    done = setup(tree, "run", path=str(tools))

    assert done.returncode == 1
    assert done.stderr.startswith("Threadline needs Python 3.11 or newer, and there is none here.")
    assert not (tree / ".venv").exists()


@pytest.mark.parametrize(
    ("wanted", "stamp"),
    [("run", "run"), ("run", "dev"), ("dev", "dev")],
)
def test_what_is_set_up_is_let_alone(tree: Path, wanted: str, stamp: str) -> None:
    """The second time is quick: nothing is installed. What tests need includes what running needs."""
    executable(tree / ".venv" / "bin" / "python", FAKE_PYTHON)
    (tree / ".venv" / f"threadline-{stamp}.stamp").write_text("the-hash\n")

    done = setup(tree, wanted)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tree / ".venv" / "calls").exists()


@pytest.mark.parametrize("stamp", [None, "of another pyproject.toml"])
def test_what_has_changed_is_installed_once(tree: Path, stamp: str | None) -> None:
    """A new dependency is there after the next call, and the one after that does nothing."""
    executable(tree / ".venv" / "bin" / "python", FAKE_PYTHON)
    if stamp is not None:
        (tree / ".venv" / "threadline-dev.stamp").write_text(stamp)

    first, second = setup(tree, "dev"), setup(tree, "dev")

    assert (first.returncode, second.returncode, second.stderr) == (0, 0, "")
    calls = (tree / ".venv" / "calls").read_text().splitlines()
    assert [call.split()[-1] for call in calls] == ["pip>=25.1", "dev"]
    assert "--editable . --group dev" in calls[1]


def test_a_failed_installation_is_tried_again(tree: Path) -> None:
    """No stamp is left that says otherwise."""
    executable(tree / ".venv" / "bin" / "python", FAKE_PYTHON.replace('>>"$(dirname "$0")/../calls"', ">&2; exit 3"))

    done = setup(tree, "run")

    assert done.returncode == 3
    assert list((tree / ".venv").glob("*.stamp")) == []


def test_an_unknown_kind_is_wrong_usage(tree: Path) -> None:
    """Exit code 2."""
    done = setup(tree, "everything")

    assert (done.returncode, done.stderr) == (2, "usage: scripts/setup [run|dev]\n")
