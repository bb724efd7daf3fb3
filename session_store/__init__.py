"""The durable session store: one SQLite file, any number of processes, one writer in each.

Usable alone: `from session_store import SessionDB`. Everything public is named here.
"""

from __future__ import annotations

from session_store import errors, models, rows
from session_store.changes import Changes, Subscription
from session_store.db import SessionDB
from session_store.errors import *  # noqa: F403 - every error is public; errors.__all__ names them
from session_store.models import *  # noqa: F403 - the same for the values that callers hand over
from session_store.rows import *  # noqa: F403 - the same for the shapes of rows

__all__ = ["Changes", "SessionDB", "Subscription"]
__all__ += errors.__all__
__all__ += models.__all__
__all__ += rows.__all__
