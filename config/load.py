"""Loading the settings of a home: `config.yaml`, then `.env`, then the environment; the last one wins.

Contract: returns valid settings or raises one ConfigError with all problems, each naming where the value came from, its
dotted key, what was found and the expected form. Values that are or may be secrets are never part of a message, nor is
the validator's own error, which holds them, kept as a cause.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from config.catalogue import Key, catalogue
from config.errors import ConfigError, Problem
from config.home import Home
from config.layers import KeyPath, Layers, dotted
from config.settings import Settings
from config.variables import read_env_file, read_environment
from config.yaml_file import read_yaml

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["load_settings"]

_SHOWN = 60
_LINE = re.compile(r"(.*), line (\d+)")
# Tokens of the platforms, and long random text of any kind: people put them behind the wrong key.
_LOOKS_SECRET = re.compile(r"\d{5,}:[\w-]{6,}|xox[a-z]-|xapp-|://[^/\s]*@|(?=\S*\d)(?=\S*[A-Za-z])[\w.+/=-]{24,}")


def load_settings(home: Home | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read and check the settings of a home (default: the usual one) and an environment (default: of this process).

    Raises ConfigError when anything is wrong.
    """
    home = home or Home()
    layers = Layers()
    problems = read_yaml(home.config_file, layers)
    problems += read_env_file(home.env_file, layers)
    problems += read_environment(os.environ if environ is None else environ, layers)
    try:
        settings = Settings.model_validate(layers.values)
    except ValidationError as error:
        problems += _problems(error, layers, str(home.config_file))
    else:
        if not problems:
            return settings
    raise ConfigError(sorted(problems, key=_position))


def _problems(error: ValidationError, layers: Layers, file: str) -> list[Problem]:
    """One problem for each place; of several about one value the first says enough."""
    found: dict[KeyPath, Problem] = {}
    for detail in error.errors(include_url=False):
        path = _as_written(detail["loc"], layers)
        where = layers.origin(path) or file
        found.setdefault(path, Problem(where, _sentence(detail, path)))
    return list(found.values())


def _position(problem: Problem) -> tuple[str, int]:
    """Orders problems as a person mends them: file by file, from top to bottom."""
    line = _LINE.match(problem.where)
    return (line[1], int(line[2])) if line else (problem.where, 0)


def _as_written(location: KeyPath, layers: Layers) -> KeyPath:
    """The place of an error as the person wrote it: a single account stands there without its number in the list."""
    path: KeyPath = ()
    for part in location:
        if isinstance(part, int) and not isinstance(layers.get(path), list):
            continue
        path = (*path, part)
    return path


def _sentence(detail: ErrorDetails, path: KeyPath) -> str:
    name = dotted(path)
    if detail["type"] == "extra_forbidden":
        return _unknown(path)
    if detail["type"] == "rule":
        return f"{name} {detail['msg']}"
    key = catalogue().find(path)
    form = key.form if key else "another value"
    hint = str(detail.get("ctx", {}).get("error", "")) if detail["type"] == "value_error" else ""
    return f"{name} {_judged(detail['input'], key)}; expected {form}" + (f". {hint}" if hint else "")


def _unknown(path: KeyPath) -> str:
    *parents, unknown = path
    if _LOOKS_SECRET.search(str(unknown)):
        return f"{dotted(parents)} has an unknown key that is not shown, since it looks like a secret".lstrip()
    parent = catalogue().find(parents) or catalogue()
    near = parent.nearest(str(unknown))
    # What another platform has is no help: this one is served differently.
    platform = tuple(parents[:2]) if len(parents) > 1 and parents[0] == "platforms" else ()
    if near is not None and near.path[: len(platform)] == platform:
        # The way to a sibling may lead through names and list places; show it as it is written here.
        meant = dotted((*parents, near.path[-1])) if near in parent.children.values() else near.dotted
        return f"{dotted(path)} is not a known key; did you mean {meant}?"
    return f"{dotted(path)} is not a known key; known here are {', '.join(parent.children)}"


def _judged(value: Any, key: Key | None) -> str:
    """What was found, in words that give no secret away."""
    if isinstance(value, Mapping):
        return "is a mapping"
    if isinstance(value, list | tuple):
        return "is a list"
    text = json.dumps(value, ensure_ascii=False, default=str)
    if key is None or key.secret or not key.leaf or _LOOKS_SECRET.search(text):
        return "has a value that cannot be used (it is not shown, since it may be a secret)"
    text = text.encode("utf-8", "backslashreplace").decode()
    return f"is {text}" if len(text) <= _SHOWN else f"is {text[:_SHOWN]}..."
