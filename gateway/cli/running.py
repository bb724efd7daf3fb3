"""The bridge from a typer command to async code, and from errors to exit codes.

Contract: what a person sees of an error is a sentence on stderr, never a traceback. Exit codes: 0 done, 1 failed,
2 wrong usage. An error that nobody foresaw keeps its traceback in the log of `--verbose` and is a failure.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import typer

from config import ConfigError, Home, Settings, load_settings
from gateway.errors import GatewayError
from session_store import StoreError

__all__ = ["async_run", "fail", "settings_of_home"]

T = TypeVar("T")

EXIT_FAILED = 1


def fail(sentence: str, code: int = EXIT_FAILED) -> typer.Exit:
    """Print one sentence to stderr; raise the result."""
    print(sentence, file=sys.stderr)  # noqa: T201 - the command line talks to a person
    return typer.Exit(code)


def async_run(work: Coroutine[Any, Any, T]) -> T:
    """Run async work of a command; errors of ours become their sentence and exit code 1."""
    try:
        return asyncio.run(work)
    except (StoreError, GatewayError, ConfigError) as error:
        raise fail(str(error)) from error
    except BrokenPipeError as error:
        # The reader of our output went away (`| head`): nothing to say, and nothing more may be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(EXIT_FAILED) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(130) from error


def settings_of_home() -> tuple[Home, Settings]:
    """The home of this process and its settings; a wrong one is reported and ends the command."""
    home = Home()
    try:
        return home.ensure(), load_settings(home)
    except ConfigError as error:
        raise fail(str(error)) from error
