"""The page's files: whole, self-contained, readable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gateway.web

STATIC = Path(gateway.web.__file__).parent / "static"
PAGE = (STATIC / "index.html").read_text(encoding="utf-8")
STYLE = (STATIC / "style.css").read_text(encoding="utf-8")
SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in STATIC.glob("*.js")}

VARIABLE = re.compile(r"--([a-z-]+): (#[0-9a-f]{6});")
LIGHT, DARK = (dict(VARIABLE.findall(block)) for block in STYLE.split("@media (prefers-color-scheme: dark)")[:2])


def test_nothing_is_fetched_from_elsewhere() -> None:
    """No remote script, style, font or picture, in any file of the page."""
    for text in (PAGE, STYLE, *SCRIPTS.values()):
        found = re.findall(r"""(?:src|href|url\(|import|from)\s*=?\s*["'(]?(https?:)?//""", text)
        assert found == []


def test_the_page_needs_no_exception_from_its_policy() -> None:
    """No inline script, handler or style; HTML is parsed in one place only."""
    assert re.findall(r"<script(?![^>]*\bsrc=)", PAGE) == []
    assert re.findall(r"\son[a-z]+=|\sstyle=|<style", PAGE) == []
    assert [name for name, text in SCRIPTS.items() if re.search(r"innerHTML|insertAdjacentHTML|outerHTML", text)] == [
        "dom.js"
    ]
    assert not any(re.search(r"\beval\(|new Function|document\.write", text) for text in SCRIPTS.values())


def test_what_the_scripts_look_for_is_there() -> None:
    """Every element, icon and module that is named exists."""
    ids = set(re.findall(r'\bid="([^"]+)"', PAGE))
    for text in SCRIPTS.values():
        assert set(re.findall(r'byId\("([^"]+)"\)', text)) <= ids
        assert {f"i-{name}" for name in re.findall(r'\bicon\("([^"]+)"\)', text)} <= ids
        assert set(re.findall(r'from "\./([^"]+)"', text)) <= set(SCRIPTS)
    assert set(re.findall(r'href="#(i-[^"]+)"', PAGE)) <= ids
    assert set(re.findall(r'(?:for|aria-controls|aria-describedby|aria-labelledby)="([^"]+)"', PAGE)) <= ids


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`, as WCAG defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, LIGHT | DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("ink", "paper"),
    [
        *((ink, paper) for ink in ("text", "muted") for paper in ("page", "side", "card", "sunken", "found")),
        *((ink, paper) for ink in ("thread", "problem") for paper in ("page", "card")),
        ("text", "mark"),
        ("on-thread", "thread"),
        ("problem", "problem-soft"),
        ("page", "text"),
    ],
)
def test_text_can_be_read_by_everybody(scheme: dict[str, str], ink: str, paper: str) -> None:
    """Contrast of at least 4.5 to 1 for every pair of colours that text uses, by day and by night."""
    assert contrast(scheme[ink], scheme[paper]) >= 4.5
