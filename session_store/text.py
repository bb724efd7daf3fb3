"""Text that can always be stored: the single choke point for every string that reaches SQLite.

Surrogate pairs that came as two code units become the character they mean; a lone surrogate becomes U+FFFD. Everything
else, NUL included, is kept as it is: history is never rewritten. What must not reach the search index is dealt with
where the index is fed (see segment.py).
"""

from __future__ import annotations

import re

__all__ = ["clean_text"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Return `text` with surrogates resolved, so that it encodes to UTF-8."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
