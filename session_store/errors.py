"""Everything that can go wrong in the store, in sentences a person can act on.

Every class says in its docstring what happened and what to do next; the docstring is the default message. Driver
errors are wrapped with their cause kept. Errors about a wrong argument are also `ValueError`.
"""

from __future__ import annotations

import inspect

__all__ = [
    "FenceLost",
    "FileTooLarge",
    "HandoffRefused",
    "IndexDamaged",
    "InvalidArgument",
    "NotFound",
    "QueryError",
    "StoreBusy",
    "StoreClosed",
    "StoreDamaged",
    "StoreError",
    "StoreForeign",
    "StoreFull",
    "StoreLost",
    "StoreNewer",
    "StoreReadOnly",
    "StoreUnreadable",
    "StoreUnsafePlace",
    "TitleTaken",
]


class StoreError(Exception):
    """The session store could not do what was asked."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.cleandoc(type(self).__doc__ or "The session store failed."))


class StoreBusy(StoreError):
    """The store was busy for too long: another process holds it. Try again; nothing was written."""


class StoreClosed(StoreError):
    """The store is closed. Open it with `async with SessionDB(path) as db:` before using it."""


class StoreFull(StoreError):
    """The disk is full. Free some space; nothing was lost and work goes on by itself afterwards."""


class StoreReadOnly(StoreError):
    """The store or its folder cannot be written. Check the permissions of the home folder."""


class StoreLost(StoreError):
    """The database file was moved, replaced or deleted while in use. Put it back or restart to open the new one."""


class StoreDamaged(StoreError):
    """The database is damaged; writing has stopped so that it gets no worse. Restore a backup."""


class IndexDamaged(StoreError):
    """The search index is damaged. Messages are safe; the index is rebuilt by itself."""


class StoreForeign(StoreError):
    """The file is not a Threadline database. Choose another home or move the file away; it was not changed."""


class StoreNewer(StoreError):
    """The database was written by a newer Threadline. Upgrade this one; the file was not changed."""


class StoreUnreadable(StoreError):
    """The database file cannot be read. Check its permissions and that it is a database; it was not changed."""


class StoreUnsafePlace(StoreError):
    """The home lies on a network or shared file system where SQLite's locks do not work. Move it to a local disk."""


class FenceLost(StoreError):
    """This process no longer holds the conversation; another one took it over. Nothing was written."""


class InvalidArgument(StoreError, ValueError):
    """An argument is not acceptable."""


class NotFound(StoreError, ValueError):
    """There is no such session."""


class FileTooLarge(StoreError, ValueError):
    """The file is larger than is allowed. Send a smaller one."""


class HandoffRefused(StoreError, ValueError):
    """The conversation cannot be brought there now."""


class TitleTaken(StoreError, ValueError):
    """Another session already has this title. Choose another one."""


class QueryError(StoreError, ValueError):
    """The search query cannot be understood. Use words, "a phrase", AND, OR, NOT or a prefix*."""
