"""The container files, read as their tools read them: they cannot be run everywhere, so what they say is checked."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).parents[3]
HOME = "/data"


class Instruction(NamedTuple):
    """One instruction of a Dockerfile."""

    name: str
    arguments: str


def instructions(text: str) -> list[Instruction]:
    """Comments dropped, continued lines joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [Instruction(name.upper(), rest.strip()) for name, _, rest in map(split, joined.splitlines())]


def split(line: str) -> tuple[str, str, str]:
    """The instruction and its arguments."""
    return line.strip().partition(" ")


@pytest.fixture(scope="module")
def dockerfile() -> list[Instruction]:
    """All instructions."""
    return instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def final(dockerfile: list[Instruction]) -> list[Instruction]:
    """The instructions of the last stage."""
    last = max(index for index, instruction in enumerate(dockerfile) if instruction.name == "FROM")
    return dockerfile[last:]


@pytest.fixture(scope="module")
def service() -> dict[str, Any]:
    """The one service of the compose file."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    assert compose["volumes"] == {"home": None}
    ((name, found),) = compose["services"].items()
    assert name == "gateway"
    assert isinstance(found, dict)
    return found


def one(found: list[Instruction], name: str) -> str:
    """The arguments of the only instruction with this name."""
    (arguments,) = [instruction.arguments for instruction in found if instruction.name == name]
    return arguments


def environment(found: list[Instruction]) -> dict[str, str]:
    """What ENV sets."""
    pairs = shlex.split(one(found, "ENV"))
    return dict(pair.split("=", 1) for pair in pairs)


def test_every_instruction_is_known(dockerfile: list[Instruction]) -> None:
    """A slip in the name of an instruction would only be seen by whoever builds it."""
    known = {
        "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT",
        "CMD",
    }  # fmt: skip

    assert {instruction.name for instruction in dockerfile} == known


def test_the_image_has_a_python_that_threadline_runs_on(dockerfile: list[Instruction]) -> None:
    """Both stages the same one: the environment made in the first runs in the last."""
    images = {instruction.arguments.split()[0] for instruction in dockerfile if instruction.name == "FROM"}

    (image,) = images
    name, _, tag = image.partition(":")
    assert name == "python"
    assert (3, 11) <= tuple(int(part) for part in tag.removesuffix("-slim").split(".")) <= (3, 14)


def test_what_is_copied_exists_and_every_package_is_copied(dockerfile: list[Instruction]) -> None:
    """And the ignore file lets it through."""
    copied = set()
    for instruction in dockerfile:
        if instruction.name == "COPY" and not instruction.arguments.startswith("--from"):
            copied |= set(instruction.arguments.split()[:-1])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    let_through = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    }

    assert packages | {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]} == copied
    assert copied == let_through
    assert all((ROOT / name).exists() for name in copied)


def test_nothing_but_what_is_copied_goes_to_the_builder() -> None:
    """No `.env`, no home, no history."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()

    assert next(line for line in lines if not line.startswith("#")) == "*"


def test_the_process_is_not_root(final: list[Instruction]) -> None:
    """The user is set before anything runs, and owns the home."""
    names = [instruction.name for instruction in final]

    assert one(final, "USER") == "threadline"
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert "--owner=threadline" in one(final, "RUN")
    assert "--mode=0700 /data" in one(final, "RUN")


def test_the_home_is_a_volume(final: list[Instruction], service: dict[str, Any]) -> None:
    """The store outlives the container."""
    assert one(final, "VOLUME") == HOME
    assert environment(final)["THREADLINE_HOME"] == HOME
    assert service["volumes"] == [f"home:{HOME}"]


def test_it_starts_the_gateway_and_stops_it_in_order(final: list[Instruction], service: dict[str, Any]) -> None:
    """The exec form: the signal reaches the gateway, and it is given the time to drain."""
    assert json.loads(one(final, "ENTRYPOINT")) + json.loads(one(final, "CMD")) == ["threadline", "gateway", "run"]
    assert one(final, "STOPSIGNAL") == "SIGTERM"
    assert int(service["stop_grace_period"].removesuffix("s")) > 10
    assert service["restart"] == "unless-stopped"


def test_the_health_check_asks_the_gateway(final: list[Instruction], service: dict[str, Any]) -> None:
    """The same question in both files: valid Python, at the port that is served."""
    options, _, command = one(final, "HEALTHCHECK").partition(" CMD ")
    asked = json.loads(command)
    port = environment(final)["THREADLINE_WEB__PORT"]

    assert asked == service["healthcheck"]["test"][1:]
    assert service["healthcheck"]["test"][0] == "CMD"
    compile(asked[-1], "HEALTHCHECK", "exec")
    assert f"http://127.0.0.1:{port}/health" in asked[-1]
    assert options.split() == [
        f"--{key.replace('_', '-')}={service['healthcheck'][key]}"
        for key in ("interval", "timeout", "start_period", "retries")
    ]


def test_the_web_chat_is_published_on_this_machine_only(final: list[Instruction], service: dict[str, Any]) -> None:
    """Inside it listens on all addresses, outside on loopback alone."""
    port = environment(final)["THREADLINE_WEB__PORT"]

    assert environment(final)["THREADLINE_WEB__HOST"] == service["environment"]["THREADLINE_WEB__HOST"] == "0.0.0.0"  # noqa: S104 - inside the container
    assert one(final, "EXPOSE") == port
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_no_secret_is_part_of_the_files(service: dict[str, Any]) -> None:
    """Tokens come from a file that is not there by default, and the build never sees it."""
    assert "TOKEN" not in (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert not [name for name in service["environment"] if "TOKEN" in name]
    assert service["env_file"] == [{"path": ".env", "required": False}]


def test_the_container_can_do_no_more_than_it_needs(service: dict[str, Any]) -> None:
    """Read-only but for the home and the temporary folder, no capabilities, no new privileges."""
    assert service["read_only"] is True
    assert service["tmpfs"] == ["/tmp"]  # noqa: S108 - inside the container
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_the_image_is_named_after_the_version(service: dict[str, Any]) -> None:
    """A new version is a new image."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert service["image"] == f"{project['name']}:{project['version']}"
