"""The home: the one folder in which everything of a Threadline installation lies.

Contract: `Home()` is `$THREADLINE_HOME`, else `~/.threadline`, as an absolute path; making one touches nothing. What is
created is for its owner alone (folder 0700, files 0600). Any number of processes may call any method at once.
Limits: the file system must know hard links (all local ones on Linux, macOS and Windows that SQLite is safe on do).
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from config.errors import ConfigError, Problem

__all__ = ["HOME_VARIABLE", "WEB_TOKEN_FORM", "WEB_TOKEN_PATTERN", "Home"]

HOME_VARIABLE = "THREADLINE_HOME"
WEB_TOKEN_PATTERN = re.compile(r"[A-Za-z0-9._~-]{16,}")
WEB_TOKEN_FORM = "at least 16 letters, digits, `-`, `.`, `_` or `~`"  # noqa: S105 - the form of a token, not a token

_GROUP_AND_OTHERS = 0o077
_WEB_TOKEN_BYTES = 32


def _located() -> Path:
    chosen = os.environ.get(HOME_VARIABLE)
    return Path(chosen) if chosen else Path("~/.threadline")


@dataclass(frozen=True, slots=True)
class Home:
    """The home folder and the names of what lies in it."""

    path: Path = field(default_factory=_located)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path).expanduser().absolute())

    @property
    def config_file(self) -> Path:
        """The settings, written by people."""
        return self.path / "config.yaml"

    @property
    def env_file(self) -> Path:
        """`THREADLINE_*` variables for this home, the usual place of its secrets."""
        return self.path / ".env"

    @property
    def state_db(self) -> Path:
        """The session store. Only SQLite ever opens it."""
        return self.path / "state.db"

    @property
    def web_token_file(self) -> Path:
        """The token of the web chat, if the settings give none."""
        return self.path / "web-token"

    def ensure(self) -> Home:
        """Make the folder (0700) if it is not there; returns self.

        An existing folder that is empty, named `.threadline` or holds a store is closed to group and others; any other
        is left as it is, since it may be shared on purpose. Raises ConfigError when the folder cannot be made.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileExistsError as error:
            raise self._unusable("is a file; the home must be a folder") from error
        except OSError as error:
            raise self._unusable(f"cannot be made ({error.strerror})") from error
        if self._is_ours():
            with contextlib.suppress(OSError):  # not the owner: whoever is keeps the right to decide
                self.path.chmod(0o700)
        return self

    def web_token(self) -> str:
        """The token of the web chat kept in this home, made at the first call.

        All callers, in whatever process, get the same one: the file appears whole or not at all, and the first one
        stays. Raises ConfigError when the file cannot be made or read, or holds no token.
        """
        self.ensure()
        try:
            if not self.web_token_file.exists():
                self._make_web_token()
            return self._read_web_token()
        except OSError as error:
            raise ConfigError(
                [Problem(str(self.web_token_file), f"cannot be read or made ({error.strerror})")],
            ) from error

    def write_private(self, target: Path, text: str, *, replace: bool = False) -> None:
        """Write a file of this home (0600) in one step: it is there whole or not at all.

        Raises FileExistsError when it exists and `replace` is not set, other OSErrors as they come.
        """
        draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if replace:
                draft.replace(target)
            else:
                target.hardlink_to(draft)  # unlike a rename, it never replaces what another process has just made
        finally:
            draft.unlink(missing_ok=True)

    def _is_ours(self) -> bool:
        mode = self.path.stat().st_mode
        if os.name != "posix" or not mode & _GROUP_AND_OTHERS or mode & stat.S_ISVTX:
            return False
        return self.path.name == ".threadline" or self.state_db.exists() or next(self.path.iterdir(), None) is None

    def _make_web_token(self) -> None:
        with contextlib.suppress(FileExistsError):  # somebody was faster: theirs is the token
            self.write_private(self.web_token_file, secrets.token_urlsafe(_WEB_TOKEN_BYTES) + "\n")

    def _read_web_token(self) -> str:
        if os.name == "posix" and self.web_token_file.stat().st_mode & _GROUP_AND_OTHERS:
            self.web_token_file.chmod(0o600)
        token = self.web_token_file.read_text(encoding="utf-8", errors="replace").strip()
        if not WEB_TOKEN_PATTERN.fullmatch(token):
            what = f"holds no usable token; expected {WEB_TOKEN_FORM}. Delete the file: a new one is made"
            raise ConfigError([Problem(str(self.web_token_file), what)])
        return token

    def _unusable(self, what: str) -> ConfigError:
        return ConfigError([Problem(str(self.path), f"{what}. Choose another home with {HOME_VARIABLE}")])
