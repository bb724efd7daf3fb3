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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_of_the_code_that_documents_name_exist(document: Path) -> None:
    """Who follows a name into the code arrives there."""
    named = re.findall(
        r"`((?:adapters|config|gateway|session_store|scripts|tests|docs|benchmarks)/[\w./-]*)`",
        document.read_text(encoding="utf-8"),
    )

    missing = [name for name in named if not (ROOT / name).exists()]

    assert missing == []


def test_modules_on_the_map_of_the_house_exist() -> None:
    """The drawing at the top of docs/architecture.md is the house as it stands."""
    drawing = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("```")[1]
    inside = drawing[drawing.index("gateway/") :]
    named = [name for name in re.findall(r"\b\w+(?:\.py|/)", inside) if name != "gateway/"]

    missing = [name for name in named if not (ROOT / "gateway" / name).exists()]

    assert named
    assert missing == []


def test_decisions_are_listed_in_order_by_their_own_numbers_and_titles() -> None:
    """Each number once; number and title stand in the list as they do in the file."""
    folder = ROOT / "docs" / "adr"
    listed = re.findall(
        r"^\| \[(\d{4})\]\((\d{4})-[\w-]+\.md\) \| (.+) \|$",
        (folder / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    files = sorted(path for path in folder.glob("*.md") if path.name != "README.md")
    titles = [path.read_text(encoding="utf-8").partition("\n")[0] for path in files]

    numbers = [path.name[:4] for path in files]

    assert len(set(numbers)) == len(numbers)
    assert [(number, number) for number in numbers] == [(number, named) for number, named, _ in listed]
    assert titles == [f"# {number} {title}" for number, _, title in listed]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_private_names_of_the_code_that_documents_name_are_there(document: Path) -> None:
    """A name that went from the code must go from the documents."""
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for package in ("adapters", "config", "gateway", "session_store")
        for path in (ROOT / package).rglob("*.py")
    )
    named = re.findall(r"`(_[A-Za-z]\w+)`", document.read_text(encoding="utf-8"))

    missing = [name for name in named if not re.search(rf"\b{name}\b", code)]

    assert missing == []
