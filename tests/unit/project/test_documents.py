"""The documents say what is there: links lead somewhere, every promise stands in the list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_files_of_the_project_lead_to_files(document: Path) -> None:
    """A relative link names a file that exists."""
    links = [link for link in LINK.findall(document.read_text(encoding="utf-8")) if "://" not in link]

    missing = [link for link in links if not (document.parent / link).exists()]

    assert missing == []


def test_the_list_of_promises_has_the_promises_that_are_tested() -> None:
    """docs/promises.md and the named tests have the same numbers."""
    listed = set(re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "promises.md").read_text(encoding="utf-8"), re.MULTILINE))
    named = (ROOT / "tests" / "promises" / "test_promises.py").read_text(encoding="utf-8")

    tested = set(re.findall(r"def test_promise_(\d+)_", named))

    assert listed == tested


def test_files_that_the_list_of_promises_names_exist() -> None:
    """Each place of deeper tests is there."""
    text = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")

    missing = [name for name in re.findall(r"`((?:tests|benchmarks)/[^`]+)`", text) if not (ROOT / name).exists()]

    assert missing == []


def test_every_document_is_listed_or_linked() -> None:
    """A person who begins at the README or docs/README.md finds every document."""
    start = [ROOT / "README.md", ROOT / "docs" / "README.md", ROOT / "docs" / "adr" / "README.md"]
    linked = {
        (page.parent / link).resolve() for page in start for link in LINK.findall(page.read_text(encoding="utf-8"))
    }

    unlinked = [path for path in DOCUMENTS if path.resolve() not in linked and path not in start]

    assert [str(path.relative_to(ROOT)) for path in unlinked if path.name != "CHANGELOG.md"] == []
