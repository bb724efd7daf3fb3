"""The two forms of JSON answers: a value, or `{"error": sentence}`. Any string can be sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SafeJSONResponse", "encode", "failure"]


def encode(value: Any) -> bytes:
    """Compact UTF-8 JSON on one line; what UTF-8 cannot hold (lone surrogates) becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


class SafeJSONResponse(JSONResponse):
    """A JSON response that no text can break."""

    def render(self, content: Any) -> bytes:
        """Body bytes of `content`."""
        return encode(content)


def failure(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> SafeJSONResponse:
    """An error answer: a sentence that says what happened and what to do next."""
    return SafeJSONResponse({"error": sentence}, status, headers)
