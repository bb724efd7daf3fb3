"""Mail addresses as identities."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.mail import canonical_address


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("ann@example.org", "ann@example.org"),
        ("Ann.Lee+x@Example.ORG", "ann.lee+x@example.org"),
        ("ann@localhost", "ann@localhost"),
        ("ann@xn--bcher-kva.example", "ann@xn--bcher-kva.example"),
    ],
)
def test_one_mailbox_has_one_spelling(text: str, canonical: str) -> None:
    """Letters do not tell mailboxes apart; everything else does."""
    assert canonical_address(text) == canonical


@pytest.mark.parametrize(
    "text",
    [
        *("", "ann", "@x", "ann@", "ann@@x", "a b@x", "ann@x y", "ann@x.", "ann@.x", ".ann@x", "ann.@x", "a..b@x"),
        *(
            '"a b"@x',
            "ann@[127.0.0.1]",
            "ann@x\n",
            "änn@x",
            "ann@bücher.example",
            "ann@\u212a.example",
            "ann@-x",
            "\u0430nn@x",
            f"{'a' * 65}@x",
            f"a@{'x.' * 130}y",
        ),
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    """Look-alikes and addresses in quotes too."""
    with pytest.raises(ValueError, match="not a mail address"):
        canonical_address(text)


@given(st.text() | st.from_regex(r"[A-Za-z0-9.+\u00e4-]{1,10}@[A-Za-z0-9.\u00e4-]{1,10}", fullmatch=True))
def test_the_spelling_is_settled_at_once(text: str) -> None:
    """A second look changes nothing."""
    try:
        canonical = canonical_address(text)
    except ValueError:
        return

    assert canonical_address(canonical) == canonical
    assert canonical.isascii()
