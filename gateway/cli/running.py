"""The bridge from a typer command to async code, and from errors to exit codes.

Contract: what a person sees of an error is a sentence on stderr, never a traceback. Exit codes: 0 done, 1 failed,
2 wrong usage, 130 interrupted. An error that nobody foresaw shows its traceback only in Python's development mode.
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Coroutine
from typing import Any, TypeVar

import typer

from config import ConfigError, Home, Settings, load_settings
from gateway.errors import GatewayError
from session_store import StoreError

__all__ = ["async_run", "fail", "settings_of_home"]

T = TypeVar("T")

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


def fail(sentence: str, code: int = EXIT_FAILED) -> typer.Exit:
    """Print one sentence to stderr; raise the result."""
    print(sentence, file=sys.stderr)  # noqa: T201 - the command line talks to a person
    return typer.Exit(code)


def async_run(work: Coroutine[Any, Any, T]) -> T:
    """Run async work of a command; errors become a sentence and exit code 1."""
    try:
        return asyncio.run(work)
    except BaseException as error:
        raise _ending(_cause(error)) from error


def _cause(error: BaseException) -> BaseException:
    """The error inside groups of one: what happened, without how tasks were nested."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _ending(error: BaseException) -> BaseException:
    """How a command ends after `error`."""
    if isinstance(error, (typer.Exit, SystemExit, GeneratorExit)):
        return error
    if isinstance(error, KeyboardInterrupt):
        return typer.Exit(EXIT_INTERRUPTED)
    if isinstance(error, BrokenPipeError):
        # The reader of our output went away (`| head`): nothing to say, and nothing more may be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return typer.Exit(EXIT_FAILED)
    if isinstance(error, (StoreError, GatewayError, ConfigError)):
        return fail(str(error))
    if sys.flags.dev_mode:
        traceback.print_exception(error)
    return fail(f"Something unforeseen went wrong ({type(error).__name__}: {error}). `python -X dev` shows where.")


def settings_of_home() -> tuple[Home, Settings]:
    """The home of this process and its settings; a wrong one is reported and ends the command."""
    home = Home()
    try:
        return home.ensure(), load_settings(home)
    except ConfigError as error:
        raise fail(str(error)) from error
