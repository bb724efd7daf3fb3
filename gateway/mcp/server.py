"""The MCP server over the owner's history, whatever carries it.

Contract: four read-only tools and a transcript resource for each session (`threadline://session/<id>`). What a tool
refuses is an error result with a sentence, so that the calling model can mend it; what the store refuses likewise.
Limits: the newest `RESOURCES` sessions are listed as resources, any other can be read by its id.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server import Server
from mcp.shared.exceptions import MCPError

from gateway.mcp.history import History, Refused
from session_store import StoreError

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from session_store import SessionListRow

__all__ = ["make_server"]

RESOURCES: Final = 100
_SCHEME: Final = "threadline://session/"
_MARKDOWN: Final = "text/markdown"
_INSTRUCTIONS: Final = (
    "The history of one person's conversations with their agents, over every place where they took place. Use "
    "session_search to find what was said before, session_show to read around it. Nothing here can be changed."
)


def make_server(history: History) -> Server[Any]:
    """Return a server that answers from `history`."""

    async def list_tools(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=tool.parameters,
                    annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
                )
                for tool in history.definitions
            ]
        )

    async def call_tool(
        _context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        try:
            found = await history.call(params.name, params.arguments or {})
        except (Refused, StoreError) as error:
            return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)
        text = json.dumps(found, ensure_ascii=False)
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=found)

    async def list_resources(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[_resource(row) for row in await history.recent(RESOURCES)])

    async def list_templates(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="session",
            uri_template=_SCHEME + "{id}",
            description="Transcript of one session.",
            mime_type=_MARKDOWN,
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        _context: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        if not params.uri.startswith(_SCHEME):
            raise MCPError(types.INVALID_PARAMS, f"There is nothing at {params.uri}. Transcripts are at {_SCHEME}ID.")
        try:
            text = await history.transcript(unquote(params.uri.removeprefix(_SCHEME)))
        except (Refused, StoreError) as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, mime_type=_MARKDOWN, text=text)]
        )

    return Server(
        "threadline",
        version=version("threadline"),
        title="Threadline",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def _resource(row: SessionListRow) -> types.Resource:
    return types.Resource(
        name=row["id"],
        title=row["title"] or row["preview"] or row["id"],
        uri=_SCHEME + quote(row["id"], safe=""),
        mime_type=_MARKDOWN,
    )
