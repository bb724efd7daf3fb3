"""Reading `THREADLINE_*` variables, from the environment or from `.env`, into layers.

Contract: `THREADLINE_WEB__PORT` is `web.port`: upper case, `__` between the parts. Lists are written as JSON or with
commas, sections as JSON, `null` is null; an empty variable counts as not set. `THREADLINE_PLATFORMS__TELEGRAM__TOKEN`
means the only account of a platform, `THREADLINE_PLATFORMS__TELEGRAM__WORK__TOKEN` the one named `work`. A variable
that was surely meant as a setting and is none is a Problem; other names that begin with THREADLINE_ are let alone.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from dotenv.parser import parse_stream

from config.catalogue import ANY_NAME, Key, catalogue
from config.errors import Problem
from config.home import HOME_VARIABLE
from config.layers import KeyPath, Layers, dotted
from config.platforms import MAIN, spelled

__all__ = ["PREFIX", "read_env_file", "read_environment", "variable_name"]

PREFIX = "THREADLINE_"
# How like a known name another one must be (0 to 1) to be taken for a slip, and to be worth a hint.
_SURELY = 0.8
_PERHAPS = 0.6


class _Variable(NamedTuple):
    name: str
    value: str
    where: str

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.name.removeprefix(PREFIX).lower().split("__"))


class _Wrong(Exception):
    """A variable that cannot be used; the sentence about it."""


def variable_name(key: Key) -> str:
    """The variable that sets a key."""
    return PREFIX + "__".join(part.upper() for part in key.path)


def read_environment(environ: Mapping[str, str], layers: Layers) -> list[Problem]:
    """Merge the variables of the process."""
    return _merge(
        (
            _Variable(name, value, f"environment variable {name}")
            for name, value in environ.items()
            if name != HOME_VARIABLE
        ),
        layers,
    )


def read_env_file(file: Path, layers: Layers) -> list[Problem]:
    """Merge the variables of a `.env` file; a missing file is an empty one. Later lines win."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return []
    except OSError as error:
        return [Problem(str(file), f"cannot be read ({error.strerror}); check what it is and its permissions")]
    except UnicodeDecodeError:
        return [Problem(str(file), "is not UTF-8 text; save the file as UTF-8")]
    problems: list[Problem] = []
    variables: dict[str, _Variable] = {}
    for binding in parse_stream(io.StringIO(text)):
        where = f"{file}, line {binding.original.line}"
        if binding.key == HOME_VARIABLE:
            problems.append(
                Problem(where, f"{HOME_VARIABLE} has no effect in the home itself; set it in the environment")
            )
        elif binding.error or (binding.key and binding.value is None):
            problems.append(Problem(where, "this cannot be read; expected NAME=value"))
        elif binding.key and binding.value is not None:
            variables[binding.key] = _Variable(binding.key, binding.value, f"{where}, {binding.key}")
    return problems + _merge(variables.values(), layers)


def _merge(variables: Iterable[_Variable], layers: Layers) -> list[Problem]:
    ours = [variable for variable in variables if variable.name.startswith(PREFIX) and variable.value.strip()]
    problems = []
    for variable in sorted(ours, key=lambda one: (len(one.parts), one.name)):  # a section before the keys in it
        try:
            key, path = _resolve(variable, layers)
            if key is not None:
                layers.put(path, _value(key, variable.value.strip(), path), variable.where)
        except _Wrong as error:
            problems.append(Problem(variable.where, str(error)))
    return problems


def _resolve(variable: _Variable, layers: Layers) -> tuple[Key | None, KeyPath]:
    """The key that a variable sets and its path; no key when the variable is none of ours."""
    here = catalogue()
    path: KeyPath = ()
    for index, part in enumerate(variable.parts):
        rest = variable.parts[index + 1 :]
        if here.kind == "names":
            here, path = here.children[ANY_NAME], (*path, part)
        elif here.kind == "accounts" and (part not in here.children or rest):
            if not rest:
                raise _unknown(variable)
            path = _account(here, path, part, layers)
        elif part in here.children:
            if here.kind == "accounts":
                path = _account(here, path, None, layers)
            here, path = here.children[part], (*path, part)
        elif _meant_as_setting(variable):
            raise _unknown(variable)
        else:
            return None, ()
    return here, path


def _account(platform: Key, path: KeyPath, name: str | None, layers: Layers) -> KeyPath:
    """The path of the account that a variable means: the one with this name, or the only one."""
    written = layers.get(path)
    several = isinstance(written, list) and bool(written)
    names = [_spellings(account) for account in (written if several else [written])]
    names[0].add(MAIN)
    found = [index for index, known in enumerate(names) if name is None or spelled(name) in known]
    if len(found) == 1:
        return (*path, found[0]) if several else path
    listed = ", ".join(sorted(one for known in names for one in known))
    if name is None:
        example = f"{variable_name(platform)}__NAME__..."
        what = f"could mean any account of {platform.dotted}; write {example} with a name, known are: {listed}"
        raise _Wrong(what)
    raise _Wrong(f"names no account of {platform.dotted}; those known are {listed}")


def _spellings(account: object) -> set[str]:
    name = account.get("name") if isinstance(account, dict) else None
    return {spelled(str(name))} if name is not None else set()


def _value(key: Key, text: str, path: KeyPath) -> Any:
    if text == "null":
        return None
    if key.kind == "value":
        return text
    if key.kind == "list" and not text.startswith("["):
        return [item.strip() for item in text.split(",") if item.strip()]
    try:
        value = json.loads(text)
    except ValueError:
        what = f"{dotted(path)} is not valid JSON; expected {key.form}, written as JSON"
        raise _Wrong(what) from None
    return value


def _nearest(variable: _Variable, cutoff: float) -> str | None:
    """The known variable that comes nearest; the prefix, which all share, does not count."""
    known = [variable_name(key).removeprefix(PREFIX) for key in catalogue().below()]
    near = get_close_matches(variable.name.removeprefix(PREFIX), known, n=1, cutoff=cutoff)
    return PREFIX + near[0] if near else None


def _meant_as_setting(variable: _Variable) -> bool:
    return "__" in variable.name or _nearest(variable, _SURELY) is not None


def _unknown(variable: _Variable) -> _Wrong:
    near = _nearest(variable, _PERHAPS)
    hint = f"did you mean {near}?" if near else "`threadline config show` lists all settings"
    return _Wrong(f"sets nothing that is known; {hint}")
