"""Results of commands on stdout.

Contract: nothing that was stored can act on a terminal, as text and as JSON alike; no colours and no cutting to a width
where the output is not a terminal.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from gateway.phrases import harmless

__all__ = ["as_json", "on_a_terminal", "write", "write_json"]

#: What JSON leaves as it is and a terminal or a reader of lines would act on; inside strings, where alone it can stand.
_ACTING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def write(text: str) -> None:
    """One or more lines."""
    sys.stdout.write(harmless(text) + "\n")


def as_json(value: Any, indent: int | None = None) -> str:
    """`value` as JSON that is readable, valid and harmless: characters that act are written as escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def write_json(value: Any) -> None:
    """A value as JSON for reading."""
    sys.stdout.write(as_json(value, indent=2) + "\n")


def on_a_terminal() -> bool:
    """Whether a person looks at stdout."""
    return sys.stdout.isatty()
