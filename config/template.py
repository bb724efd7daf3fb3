"""Settings written out as YAML: the commented file of `threadline config init`, and what is in force.

Contract: both texts are read back to what they were made from, except for secrets, which are never written.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

import yaml

from config.catalogue import Key, catalogue
from config.settings import Settings
from config.variables import variable_name

__all__ = ["as_data", "as_yaml", "template"]

_WIDTH = 100
_HEAD = """\
The settings of Threadline. Every setting stands here at its default; change what you need and
delete the rest, so that the defaults of later versions hold.
Secrets are better kept out of this file: put them into `.env` beside it, as variables.
`threadline config check` tells what is wrong, `threadline config show` what is in force.
"""
_PEOPLE_EXAMPLE = """\
For example:
  colleague:
    telegram: ["43"]
"""
_ACCOUNTS_HINT = "One mapping, or a list of mappings, each with its `name`, for several accounts."


def template() -> str:
    """A `config.yaml` with every setting at its default, each explained."""
    lines = [*_comment(_HEAD, "")]
    for key in catalogue().children.values():
        lines += ["", *_entry(key, "")]
    return "\n".join(lines) + "\n"


def as_data(settings: Settings) -> dict[str, Any]:
    """The settings in force as plain values: secrets masked, a single account without a list around it."""
    data = settings.model_dump(mode="json")
    platforms = data["platforms"]
    for platform, accounts in platforms.items():
        if len(accounts) == 1:
            platforms[platform] = accounts[0]
    return data


def as_yaml(settings: Settings) -> str:
    """The settings in force as YAML, secrets masked."""
    return yaml.safe_dump(as_data(settings), sort_keys=False, allow_unicode=True, width=_WIDTH)


def _entry(key: Key, indent: str) -> Iterator[str]:
    yield from _comment(key.meaning, indent)
    name = key.path[-1]
    if key.kind == "names":
        yield from _comment(_PEOPLE_EXAMPLE, indent)
        yield f"{indent}{name}: {{}}"
    elif key.leaf:
        yield from _comment(f"Form: {key.form}", indent)
        if key.secret:
            yield from _comment(f"Better set as {variable_name(key)}", indent)
        yield f"{indent}{name}: {_scalar(key.default)}"
    else:
        if key.kind == "accounts":
            yield from _comment(_ACCOUNTS_HINT, indent)
        yield f"{indent}{name}:"
        for child in key.children.values():
            yield from _entry(child, indent + "  ")


def _scalar(default: Any) -> str:
    text = yaml.safe_dump(list(default) if isinstance(default, tuple) else default, default_flow_style=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _comment(text: str, indent: str) -> Iterator[str]:
    for line in text.splitlines():
        hanging = " " * (len(line) - len(line.lstrip()))
        for wrapped in textwrap.wrap(
            line.strip(), _WIDTH - len(indent) - 2, break_long_words=False, break_on_hyphens=False
        ):
            yield f"{indent}# {hanging}{wrapped}"
