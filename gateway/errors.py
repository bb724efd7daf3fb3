"""Everything that can go wrong in the gateway itself, in sentences a person can act on.

Every class says in its docstring what happened and what to do next; the docstring is the default message. Errors of
the store and of adapters keep their own classes. Errors about a wrong argument are also `ValueError`.
"""

from __future__ import annotations

import inspect
from pathlib import Path

__all__ = ["AccountTaken", "GatewayError", "RuntimeFolderUnsafe", "UnknownTimezone", "WebUnavailable"]


class GatewayError(Exception):
    """The gateway could not do what was asked."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.cleandoc(type(self).__doc__ or "The gateway failed."))


class UnknownTimezone(GatewayError, ValueError):
    """The time zone is not known. Use a name like "Europe/Berlin", or leave it out for the machine's own zone."""


class AccountTaken(GatewayError):
    """Another gateway on this machine already serves this account. Stop that one first, or use another token."""

    def __init__(self, platform: str, account: str) -> None:
        super().__init__(
            f"Another gateway on this machine already serves the {platform} account “{account}”. "
            "Stop that one first (`threadline gateway stop`), or use another token."
        )


class RuntimeFolderUnsafe(GatewayError):
    """The folder for lock files belongs to another user. Remove it, or set XDG_RUNTIME_DIR to a folder of your own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"The folder for lock files, {folder}, belongs to another user. "
            "Remove it, or set XDG_RUNTIME_DIR to a folder of your own."
        )


class WebUnavailable(GatewayError):
    """The web page cannot be served at its address. Set web.host and web.port to an address that is free."""
