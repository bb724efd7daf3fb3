"""What is installed: the packages and their data, the versions, and what is imported when."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]
PACKAGES = ["config", "session_store", "adapters", "gateway"]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """The project file."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, with the packages of this tree."""
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, env=environ
    )


def test_the_wheel_holds_the_packages_with_their_data_and_nothing_else(tmp_path: Path) -> None:
    """SQL and the files of the web page are read at run time; tests are not shipped."""
    subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}

    expected = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == expected
    assert {"session_store/schema.sql", *(f"{package}/py.typed" for package in PACKAGES)} <= held
    assert any(name.startswith("gateway/web/static/") for name in held)


def test_installed_versions_are_within_the_declared_bounds(project: dict[str, Any]) -> None:
    """The tests run with what users get; every bound has a lower and, for what may break, an upper end."""
    for text in [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate():
            assert requirement.specifier.contains(version(requirement.name)), text
        operators = {bound.operator for bound in requirement.specifier}
        assert ">=" in operators, text
        assert "<" in operators or requirement.name in {"tzdata", "types-pyyaml"}, text


def test_the_console_script_is_there(project: dict[str, Any]) -> None:
    """`threadline` starts what the project file names."""
    module, _, function = project["project"]["scripts"]["threadline"].partition(":")

    done = python(f"import {module}; assert callable({module}.{function})")

    assert done.returncode == 0, done.stderr


def test_the_changelog_begins_with_this_version(project: dict[str, Any]) -> None:
    """Nobody releases a version that its users are told nothing about."""
    first = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert first is not None
    assert first[1] == project["project"]["version"]


@pytest.mark.parametrize(
    ("package", "strangers"),
    [
        ("config", {"session_store", "adapters", "gateway"}),
        ("session_store", {"config", "adapters", "gateway", "telegram", "starlette", "typer", "pydantic"}),
        ("adapters.base", {"session_store", "gateway", "telegram"}),
        ("gateway.cli.main", {"telegram", "telegramify_markdown", "uvicorn", "starlette"}),
    ],
)
def test_importing_loads_no_strangers(package: str, strangers: set[str]) -> None:
    """The store is usable alone, and what is heavy is imported only when its part is used."""
    done = python(f"import {package}, sys; print(*{{name.split('.')[0] for name in sys.modules}})")

    assert done.returncode == 0, done.stderr
    assert strangers & set(done.stdout.split()) == set()
