"""`threadline sessions`: list, read, search, name, export and clear what was said.

The terminal is the owner's: everything here sees the owner's own sessions and those of rooms they have spoken in.
Every id may be a unique beginning of it. Nothing here needs the settings or a gateway.
"""

from __future__ import annotations

from gateway.cli.sessions import browsing, changing, exporting, finding, listing, repairing
from gateway.cli.sessions.common import app

#: The order of the help: reading, then finding, then changing.
_ORDER = ("list", "browse", "show", "search", "rename", "export", "prune", "delete", "stats", "repair")
app.registered_commands.sort(key=lambda command: _ORDER.index(command.name or ""))

__all__ = ["app", "browsing", "changing", "exporting", "finding", "listing", "repairing"]
