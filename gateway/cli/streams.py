"""The standard streams of a command.

Contract: whatever they are, nothing here raises. Closed ones swallow what is written, odd encodings replace what they
do not have. A reader of our output that went away (`| head`) ends the command without a word; output that cannot be
written otherwise is a sentence. Imports nothing heavy: it is needed before anything else.
"""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper
from typing import Final

__all__ = ["finish_output", "is_of_output", "output_failed", "prepare_output"]

_FAILED: Final = 1
_OF_OUTPUT: Final = frozenset({errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG})


def prepare_output() -> None:
    """Make the standard streams usable whatever they are: closed ones swallow, odd encodings replace, never raise."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def finish_output(code: int | str | None) -> int | str | None:
    """Write out what is buffered before the interpreter ends; returns the exit code, 1 if that was not possible."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return code or output_failed(error)
    return code


def is_of_output(error: OSError) -> bool:
    """Whether an error came from writing to stdout: it names no file, and is of a kind that writing has."""
    return error.filename is None and error.errno in _OF_OUTPUT


def output_failed(error: OSError) -> int:
    """Say that the output could not be written, unless its reader went away; returns the exit code."""
    # The interpreter would try again at its end, and complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not isinstance(error, BrokenPipeError):
        print(f"The output could not be written: {error.strerror or error}.", file=sys.stderr)  # noqa: T201 - for the person
    return _FAILED
