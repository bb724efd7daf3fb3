"""The token that opens the web chat: the one in the settings, else the one kept in the home.

Reads the disk, and makes the file where there is none; not for the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from config import Home, Settings

__all__ = ["web_token"]


def web_token(home: Home, settings: Settings) -> str:
    """Return the token of this home. Raises ConfigError when it cannot be kept."""
    configured = settings.web.token
    return configured.get_secret_value() if configured is not None else home.web_token()
