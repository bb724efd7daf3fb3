"""The tools that an agent may call in a turn, bound to what the asker may see."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from gateway.tools.session_search import SESSION_SEARCH_SCHEMA, SessionSearchTool

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from session_store import SessionDB, Visibility

__all__ = ["SCHEMAS", "TurnTools"]

SCHEMAS: Final = (SESSION_SEARCH_SCHEMA,)
"""What a model is told about the tools, as OpenAI-shaped functions."""


class TurnTools:
    """The tools of one turn (see `gateway.agents.base.ToolBox`). Parameters as in `SessionSearchTool`."""

    def __init__(
        self,
        db: SessionDB,
        visible_to: Visibility,
        current_root: str | None,
        *,
        question_id: int | None = None,
        zone: ZoneInfo | None = None,
    ) -> None:
        self._search = SessionSearchTool(db, visible_to, current_root, question_id=question_id, zone=zone)

    @property
    def definitions(self) -> Sequence[Mapping[str, Any]]:
        """What a model is told about the tools."""
        return SCHEMAS

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Run a tool; an unknown one is an error that the result tells."""
        if name == "session_search":
            return await self._search.call(arguments)
        known = ", ".join(schema["function"]["name"] for schema in SCHEMAS)
        return json.dumps(
            {"success": False, "error": f"There is no tool “{name}”. Use one of: {known}."}, ensure_ascii=False
        )
