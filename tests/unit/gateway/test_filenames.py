"""Names from outside are made harmless."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.filenames import MAX_LENGTH, harmless_name

#: What names from outside are made of when somebody means harm.
NASTY = st.text(
    st.one_of(st.characters(), st.sampled_from("./\\:[]<>\"'|?*\n\r\t\0\u202e\u200b\u2066 \ud800\uff0f%~$`&;")),
    max_size=300,
)
FORBIDDEN = set("/\\[]<>{}:\"'|?*`$%&;\u2044\u2215\uff0f\uff3c")


@given(NASTY)
@example("con.txt")
@example("0 \ud7fc 0")
@example("." * 300)
@example("a" * 99 + "\u0344.txt")
@example(("\u0958" * 99) + ".png")
@example("x" * 300 + ". .txt")
def test_whatever_comes_is_one_harmless_name(claimed: str) -> None:
    """No path, nothing hidden, nothing that acts, short enough for every system; and it stays as it is."""
    name = harmless_name(claimed, "file")

    assert 0 < len(name) <= MAX_LENGTH + 1
    assert not FORBIDDEN & set(name)
    assert all(unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Co", "Cn"} for letter in name)
    assert not name.startswith((".", " "))
    assert not name.endswith((".", " "))
    assert harmless_name(name, "file") == name
    name.encode()


@pytest.mark.parametrize(
    ("claimed", "expected"),
    [
        ("notes.txt", "notes.txt"),
        ("Résumé 2026.pdf", "Résumé 2026.pdf"),
        ("部署.md", "部署.md"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Windows\\system.ini", "system.ini"),
        ("/", "file"),
        ("..", "file"),
        ("...", "file"),
        ("", "file"),
        (None, "file"),
        (".bashrc", "bashrc"),
        ("NUL.tar.gz", "_NUL.tar.gz"),
        ("com1", "_com1"),
        ("console.log", "console.log"),
        ("photo\u202egpj.exe", "photogpj.exe"),
        ("a]\n[b", "a_ _b"),
        ("trailing. . .", "trailing"),
        ("x" * 200 + ".txt", "x" * 96 + ".txt"),
        ("x" * 200 + "." + "y" * 50, "x" * 100),
    ],
)
def test_names_as_people_know_them(claimed: str | None, expected: str) -> None:
    """What can stay stays, the ending above all."""
    assert harmless_name(claimed, "file") == expected
