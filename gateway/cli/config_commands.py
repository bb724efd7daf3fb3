"""`threadline config show|check|init|path`: the settings of the home.

Exit codes: 0 done, 1 failed (wrong settings, a file in the way), 2 wrong usage. Secrets are never printed. None of
these needs a store or a gateway, and only `init` changes anything.
"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from config import ConfigError, Home, load_settings
from config.template import as_data, as_yaml, template
from gateway.cli.options import sub_command
from gateway.cli.running import fail

__all__ = ["app"]

app = sub_command("Show, check and make the settings.")


@app.command()
def show(*, as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of YAML.")] = False) -> None:
    """Print the settings in force, from the file, `.env` and the environment; secrets are masked."""
    try:
        settings = load_settings(Home())
    except ConfigError as error:
        raise fail(str(error)) from error
    typer.echo(json.dumps(as_data(settings), ensure_ascii=False, indent=2) if as_json else as_yaml(settings).rstrip())


@app.command()
def check() -> None:
    """Tell everything that is wrong with the settings, or `ok`."""
    try:
        load_settings(Home())
    except ConfigError as error:
        raise fail("\n".join(map(str, error.problems))) from error
    typer.echo("ok")


@app.command()
def init(*, force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False) -> None:
    """Write a `config.yaml` with every setting at its default, each explained."""
    home = Home()
    try:
        home.ensure()
        home.write_private(home.config_file, template(), replace=force)
    except ConfigError as error:
        raise fail(str(error)) from error
    except FileExistsError as error:
        raise fail(f"{home.config_file} is already there and was left as it is. Use --force to replace it.") from error
    except OSError as error:
        raise fail(f"{home.config_file} cannot be written ({error.strerror}). Nothing was changed.") from error
    typer.echo(f"Wrote {home.config_file}. Change what you need, then run `threadline config check`.")


@app.command()
def path() -> None:
    """Print where the settings file is, or would be."""
    typer.echo(Home().config_file)
