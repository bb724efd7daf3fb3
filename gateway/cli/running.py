"""The bridge from a typer command to async code, and from errors to exit codes.

Contract: what a person sees of an error is a sentence on stderr, never a traceback. Exit codes: 0 done, 1 failed,
2 wrong usage, 130 interrupted. An error that nobody foresaw shows its traceback only in Python's development mode.
Errors of the output itself are raised: see streams.py.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
import traceback
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import typer

from config import ConfigError, Home, Settings, load_settings
from gateway.cli.streams import is_of_output
from gateway.errors import GatewayError
from session_store import InvalidArgument, QueryError, StoreError

__all__ = [
    "async_run",
    "fail",
    "our_home",
    "own_command",
    "settings_of_home",
]

T = TypeVar("T")

NAME = "threadline"

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

STRAGGLER_SECONDS = 0.5


def own_command() -> str:
    """How this very program is called in the shell: by its name where that finds it, else by its path."""
    own = Path(sys.argv[0])
    if own.name != NAME or not own.is_file():
        own = Path(sys.executable).with_name(NAME)
    found = shutil.which(NAME)
    if not own.is_file() or (found is not None and Path(found).resolve() == own.resolve()):
        return NAME
    return shlex.quote(str(own.absolute()))


def fail(sentence: str, code: int = EXIT_FAILED) -> typer.Exit:
    """Print one sentence to stderr; raise the result."""
    print(sentence, file=sys.stderr)  # noqa: T201 - the command line talks to a person
    return typer.Exit(code)


def async_run(work: Coroutine[Any, Any, T]) -> T:
    """Run async work of a command; errors become a sentence and exit code 1."""
    try:
        return asyncio.run(_alone(work))
    except BaseException as error:
        raise _ending(_cause(error)) from error


async def _alone(work: Coroutine[Any, Any, T]) -> T:
    """Run `work`; a task that it leaves behind and that does not end cannot hold up the end of the process."""
    code: object = 0
    try:
        return await work
    except BaseException as error:
        cause = _cause(error)
        code = cause.exit_code if isinstance(cause, typer.Exit) else EXIT_FAILED
        raise
    finally:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left and (await asyncio.wait(left, timeout=STRAGGLER_SECONDS))[1]:
            sys.stdout.flush()
            os._exit(code if isinstance(code, int) else EXIT_FAILED)


def _cause(error: BaseException) -> BaseException:
    """The error inside groups of one: what happened, without how tasks were nested."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _ending(error: BaseException) -> BaseException:
    """How a command ends after `error`."""
    if isinstance(error, (typer.Exit, SystemExit, GeneratorExit)):
        return error
    if isinstance(error, OSError) and is_of_output(error):
        return error
    if isinstance(error, KeyboardInterrupt):
        return typer.Exit(EXIT_INTERRUPTED)
    if isinstance(error, (QueryError, InvalidArgument)):
        return fail(str(error), EXIT_USAGE)
    if isinstance(error, (StoreError, GatewayError, ConfigError)):
        return fail(str(error))
    if sys.flags.dev_mode:
        traceback.print_exception(error)
    return fail(f"Something unforeseen went wrong ({type(error).__name__}: {error}). `python -X dev` shows where.")


def our_home() -> Home:
    """The home of this process, made if it is not there; one that cannot be is reported and ends the command."""
    try:
        return Home().ensure()
    except ConfigError as error:
        raise fail(str(error)) from error


def settings_of_home() -> tuple[Home, Settings]:
    """The home of this process and its settings; a wrong one is reported and ends the command."""
    home = our_home()
    try:
        return home, load_settings(home)
    except ConfigError as error:
        raise fail(str(error)) from error
