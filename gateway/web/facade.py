"""What the web entrance needs from the gateway, and nothing more.

Contract: the page reads through `db` with `visibility()` and writes only through `submit` and `stop`. Nothing of the
web package reaches past this protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from gateway.live import LiveFeed
    from session_store import SessionDB, Visibility

__all__ = ["WebFacade"]


class WebFacade(Protocol):
    """The gateway as the web sees it; everything is done as the owner of the home."""

    @property
    def db(self) -> SessionDB:
        """The open store."""
        ...

    @property
    def live(self) -> LiveFeed:
        """Live text and notices of this process."""
        ...

    async def submit(self, session_id: str | None, text: str, client_id: str) -> str:
        """Accept a message or slash command durably; returns the session it belongs to, a new id for None.

        client_id names this sending for ever: a repeated call changes nothing and returns the same session id as the
        first. The stored user message carries it as `platform_message_id`; the answer to a command is published with
        `live.notice(session id, text, reply_to=client_id)`. The caller has checked that the session is visible.
        """
        ...

    async def stop(self, session_id: str) -> None:
        """Ask whoever works the running turn of this conversation to end it; nothing happens when none runs."""
        ...

    def health(self) -> Mapping[str, Any]:
        """`status` ('ok', or a short word for the trouble) and `accounts`: 'platform/account' -> state word."""
        ...

    async def visibility(self) -> Visibility:
        """What the owner sees in a private place."""
        ...

    def commands(self) -> Sequence[tuple[str, str, str]]:
        """Slash commands that the web offers: name without the slash, usage, one-line summary."""
        ...
