"""`docs/adding-a-platform.md` is true to the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from adapters import base, contract
from adapters.email import EmailAdapter, receiving
from config import sections, settings
from config.platforms import EmailAccount, Platforms
from config.sections import Identities
from gateway import platforms

pytestmark = pytest.mark.documents

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "adding-a-platform.md"


def names() -> set[str]:
    """Everything that the document sets as code."""
    return set(re.findall(r"`([^`\n]+)`", DOCUMENT.read_text(encoding="utf-8")))


def test_every_file_that_is_named_exists() -> None:
    """Also those that are linked."""
    paths = {name for name in names() if re.fullmatch(r"[a-z_/]+(?:\.[a-z]+|/)", name) and "/" in name}
    links = re.findall(r"\]\(([^)#]+)\)", DOCUMENT.read_text(encoding="utf-8"))

    assert len(paths) > 15
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert [link for link in links if not (DOCUMENT.parent / link).exists()] == []


def test_every_module_of_the_example_is_named() -> None:
    """A file more is a sentence more; only helpers of a named file go without."""
    helpers = {"__init__", "account", "hypertext"}
    modules = {path.stem for path in (ROOT / "adapters" / "email").glob("*.py")}

    assert {f"adapters/email/{module}.py" for module in modules - helpers} <= names()


def test_every_name_of_the_code_is_one() -> None:
    """Types, errors, functions and settings."""
    code = (base, base.Adapter, base.AdapterState, base.Reports, base.Edits, contract, platforms, settings)
    errors = (base.RetryLater("", 0.0).__dict__, base.Gone("").__dict__)
    fields = (*errors, base.InboundMessage.__slots__, base.Sender.__slots__, base.Receipt.__slots__)
    known = {name for thing in code for name in dir(thing)}.union(EmailAccount.model_fields, *fields)
    wanted = {name for name in names() if re.fullmatch(r"[A-Z][a-z]+[A-Za-z]*|[a-z]+_[a-z_]+|_[A-Z]+", name)}
    elsewhere = {"Cc", "EmailAccount", "Platform", "Platforms", "Identities", "Account", "split_ranges"}
    elsewhere |= {"old_chat", "new_chat", "base_url", "edit_part"}

    assert wanted - known - elsewhere == set()
    assert {Platforms.__name__, Identities.__name__} <= elsewhere
    assert "Platform" in dir(sections)


def test_its_numbers_are_those_of_the_code() -> None:
    """As they stand in the last section."""
    text = " ".join(DOCUMENT.read_text(encoding="utf-8").split())

    assert f"looked for every {receiving.POLL_SECONDS:.0f} seconds" in text
    assert f"mails of the last {receiving.DAYS} days are new" in text
    assert f"the keyword `{receiving.KEYWORD}`" in text
    assert (receiving.MOST_BYTES, EmailAdapter.__name__) == (2_000_000, "EmailAdapter")
