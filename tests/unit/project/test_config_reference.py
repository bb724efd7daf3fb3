"""`docs/reference/config.md` says what the settings are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from config import Settings
from config.catalogue import Key, catalogue

pytestmark = pytest.mark.documents

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "config.md"


def row(key: Key) -> str:
    """The row of a key in the tables of the reference."""
    default = json.dumps(list(key.default) if isinstance(key.default, tuple) else key.default)
    return f"| `{key.dotted}` | {key.form} | `{default}` | {key.meaning} |"


def test_every_setting_is_documented_as_it_is_and_no_other() -> None:
    """Key, form, default and meaning, in the order of the models."""
    rows = re.findall(r"^\| `[a-zA-Z_.]+` \|.*\|$", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert rows == [row(key) for key in catalogue().below() if key.leaf]


def test_the_examples_are_valid_settings() -> None:
    """What people copy works, but for the tokens that they must have themselves."""
    examples = re.findall(r"```yaml\n(.*?)```", REFERENCE.read_text(encoding="utf-8"), flags=re.DOTALL)

    assert examples
    for example in examples:
        data = yaml.safe_load(example)
        for number, account in enumerate(data.get("platforms", {}).get("telegram", [])):
            account["token"] = f"{number}:token"
        Settings.model_validate(data)


def test_the_variables_are_those_that_are_read() -> None:
    """Each variable of the table names a key of the settings."""
    variables = re.findall(r"^\| `THREADLINE_([A-Z_]+)=", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert len(variables) >= 5
    for variable in variables:
        path = [part.lower() for part in variable.split("__")]
        path = [part for part in path if part != "work"]
        assert catalogue().find(path) is not None, variable
