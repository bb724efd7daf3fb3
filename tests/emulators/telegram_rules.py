"""What the emulated Bot API knows of Telegram: how messages look, which entities a server finds, what it refuses.

The refusals use the sentences of the real server, since clients have to read them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

__all__ = [
    "MAX_TOPIC_NAME",
    "MAX_UNITS",
    "Refusal",
    "entities_of",
    "read_entities",
    "structure",
    "units",
    "whole_number",
]

MAX_UNITS = 4096
MAX_TOPIC_NAME = 128
_FOUND = re.compile(
    r"(?P<mention>@[A-Za-z0-9_]{3,})|(?<!\S)(?P<bot_command>/[A-Za-z0-9_]+(?:@[A-Za-z0-9_]+)?)(?=\s|\Z)"
)


class Refusal(Exception):
    """The server's answer to a request that it does not carry out."""

    def __init__(self, description: str, status: int = 400, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__(description)
        self.description = description
        self.status = status
        self.parameters = dict(parameters or {})


def units(text: str) -> int:
    """Return the length in UTF-16 units, as Telegram counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def entities_of(text: str) -> list[dict[str, Any]]:
    """Return the mentions and commands that the server finds in a text by itself."""
    return [
        {"type": match.lastgroup, "offset": units(text[: match.start()]), "length": units(match.group())}
        for match in _FOUND.finditer(text)
    ]


def whole_number(fields: Mapping[str, Any], name: str) -> int | None:
    """Read a parameter that a client may send as a number or as text."""
    value = fields.get(name)
    if value is None or value == "":
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise Refusal(f"Bad Request: field {name!r} must be a number") from None


def structure(fields: Mapping[str, Any], name: str) -> Any:
    """Read a parameter that is an object or list: as such in a JSON body, as JSON text in a form."""
    value = fields.get(name)
    return json.loads(value) if isinstance(value, str) else value


def read_entities(fields: Mapping[str, Any], text: str) -> list[dict[str, Any]]:
    """Read and check the entities of a message to be sent."""
    entities: list[dict[str, Any]] = structure(fields, "entities") or []
    length = units(text)
    edges = {0, *accumulate(units(character) for character in text)}
    for entity in entities:
        start, end = entity["offset"], entity["offset"] + entity["length"]
        if entity["length"] <= 0 or start < 0 or end > length:
            raise Refusal("Bad Request: ENTITY_BOUNDS_INVALID")
        if start not in edges or end not in edges:
            raise Refusal("Bad Request: entity begins or ends in the middle of a UTF-16 symbol")
        if entity["type"] == "text_link" and not entity.get("url"):
            raise Refusal("Bad Request: ENTITY_TEXTURL_INVALID")
    return entities
