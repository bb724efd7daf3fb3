"""The sections of the settings: typed, immutable, each key with its form and its meaning in words.

Contract: a section refuses keys it does not know and reads an empty one (`web:` with nothing under it) as all
defaults. The words given with `setting` are the one source of the error messages, of `threadline config init` and of
the reference.
"""

from __future__ import annotations

import zoneinfo
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from config.home import WEB_TOKEN_FORM, WEB_TOKEN_PATTERN
from config.mail import canonical_address

__all__ = [
    "Attachments",
    "Compression",
    "Delivery",
    "Display",
    "Identities",
    "MailAddress",
    "MailAddresses",
    "Number",
    "NumericUserIds",
    "Password",
    "Platform",
    "Secret",
    "Section",
    "SessionReset",
    "UserIds",
    "Web",
    "none_is_empty",
    "rule",
    "setting",
]

Platform: TypeAlias = Literal["telegram", "slack", "discord", "email"]


def setting(default: Any, form: str, meaning: str) -> Any:
    """A field of a section: its default, the form of its value and its meaning, both as people read them."""
    return Field(default=default, description=meaning, json_schema_extra={"form": form}, validate_default=True)


def rule(sentence: str) -> PydanticCustomError:
    """A broken rule; the sentence goes on after the dotted key."""
    return PydanticCustomError("rule", "{sentence}", {"sentence": sentence})


def _id_text(value: object) -> object:
    """An id may stand in YAML as a number; ids are text everywhere else."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _secret_text(value: object) -> object:
    """White space around a pasted secret is never part of it, and an empty one is none."""
    return value.strip() or None if isinstance(value, str) else value


def _no_bool(value: object) -> object:
    """Python counts True as 1; a person who writes `true` for a number has erred."""
    if isinstance(value, bool):
        raise ValueError  # noqa: TRY004 - the only kind that a validator may raise
    return value


def _one_word(secret: SecretStr | None) -> SecretStr | None:
    if secret and any(letter.isspace() or not letter.isprintable() for letter in secret.get_secret_value()):
        raise ValueError
    return secret


def _printable(secret: SecretStr | None) -> SecretStr | None:
    if secret and not secret.get_secret_value().isprintable():
        raise ValueError
    return secret


def _mail_address(address: str) -> str:
    try:
        return canonical_address(address)
    except ValueError:
        # The form of the key says more than the error.
        raise ValueError from None


def none_is_empty(value: object) -> object:
    """A key with nothing behind it is an empty list."""
    return () if value is None else value


Secret: TypeAlias = Annotated[SecretStr | None, BeforeValidator(_secret_text), AfterValidator(_one_word)]
Password: TypeAlias = Annotated[SecretStr | None, BeforeValidator(_secret_text), AfterValidator(_printable)]
Number: TypeAlias = Annotated[int, BeforeValidator(_no_bool)]
_Id: TypeAlias = Annotated[str, BeforeValidator(_id_text), Field(pattern=r"^[A-Za-z0-9]+$", max_length=64)]
_NumericId: TypeAlias = Annotated[str, BeforeValidator(_id_text), Field(pattern=r"^[1-9][0-9]{0,19}$")]
UserIds: TypeAlias = Annotated[tuple[_Id, ...], BeforeValidator(none_is_empty)]
NumericUserIds: TypeAlias = Annotated[tuple[_NumericId, ...], BeforeValidator(none_is_empty)]
MailAddress: TypeAlias = Annotated[str, AfterValidator(_mail_address)]
MailAddresses: TypeAlias = Annotated[tuple[MailAddress, ...], BeforeValidator(none_is_empty)]

TELEGRAM_IDS = 'a list of numeric user ids (no @names), for example ["42"]'
SLACK_IDS = 'a list of member ids, for example ["U012AB3CD"] (profile, "Copy member ID")'
DISCORD_IDS = 'a list of numeric user ids, for example ["80351110224678912"] (developer mode, "Copy User ID")'
MAIL_ADDRESSES = 'a list of mail addresses, for example ["ann@example.org"]'


class Section(BaseModel):
    """A mapping of the settings."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, value: Any) -> Any:
        return {} if value is None else value


class Compression(Section):
    """When the older part of a long conversation is replaced by a summary in what the agent sees."""

    threshold: Annotated[Number, Field(ge=0, le=95)] = setting(
        75,
        "a whole number of percent from 0 to 95",
        "A conversation is compressed by itself at this share of `agent.context_tokens`; 0: only by `/compress`.",
    )


class Identities(Section):
    """Who a person is on each platform."""

    telegram: NumericUserIds = setting((), TELEGRAM_IDS, "Their accounts on Telegram.")
    slack: UserIds = setting((), SLACK_IDS, "Their accounts on Slack.")
    discord: NumericUserIds = setting((), DISCORD_IDS, "Their accounts on Discord.")
    email: MailAddresses = setting((), MAIL_ADDRESSES, "Their mail addresses.")

    def as_mapping(self) -> dict[str, tuple[str, ...]]:
        """Platform -> user ids; platforms without any are left out."""
        by_platform = {
            "telegram": self.telegram,
            "slack": self.slack,
            "discord": self.discord,
            "email": self.email,
        }
        return {platform: ids for platform, ids in by_platform.items() if ids}


def _known_zone(name: str | None) -> str | None:
    if name is None:
        return None
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        near = get_close_matches(name, sorted(zoneinfo.available_timezones()), n=1)
        raise ValueError(f"Did you mean {near[0]}?" if near else "") from None
    return name


class SessionReset(Section):
    """When a conversation on a platform starts afresh by itself."""

    mode: Literal["none", "idle", "daily", "both"] = setting(
        "none",
        "`none`, `idle`, `daily` or `both`",
        "When a fresh session begins by itself: never, after idle time, once a day, or whichever of these comes first.",
    )
    idle_minutes: Annotated[Number, Field(ge=1, le=5_256_000)] = setting(
        1440,
        "a whole number of minutes, at least 1 (and at most ten years)",
        "For `idle` and `both`: minutes without a message after which the next one begins a fresh session.",
    )
    at_hour: Annotated[Number, Field(ge=0, le=23)] = setting(
        4,
        "a whole number from 0 to 23",
        "For `daily` and `both`: the hour at which the day turns.",
    )
    timezone: Annotated[str | None, AfterValidator(_known_zone)] = setting(
        None,
        "the name of a time zone, for example `Europe/Berlin`, or null",
        "The zone of `at_hour`; null is the zone of the machine.",
    )


class Display(Section):
    """What the terminal shows."""

    resume_display: Literal["full", "minimal"] = setting(
        "full",
        "`full` or `minimal`",
        "What is shown when a session is taken up again: its last exchanges, or one line.",
    )


class Delivery(Section):
    """How answers are brought out."""

    unknown: Literal["resend", "hold"] = setting(
        "resend",
        "`resend` or `hold`",
        "What to do with an answer of which nobody knows whether the platform took it (the connection broke): send it "
        "once more, which may show it twice, or leave it marked as unknown.",
    )


class Attachments(Section):
    """Files that come with messages."""

    max_mb: Annotated[Number, Field(ge=0, le=2000)] = setting(
        20,
        "a whole number of megabytes from 0 to 2000",
        "The largest file that is fetched; a larger one is only named. 0 fetches none.",
    )
    message_mb: Annotated[Number, Field(ge=0, le=10_000)] = setting(
        50,
        "a whole number of megabytes from 0 to 10000",
        "How much is fetched of all files of one message together; what is beyond is only named.",
    )
    text_characters: Annotated[Number, Field(ge=0, le=48_000)] = setting(
        16_000,
        "a whole number of characters from 0 to 48000",
        "How much of the text files of a message the agent reads and the search finds; the files are kept whole.",
    )


def _usable_token(token: SecretStr | None) -> SecretStr | None:
    if token is not None and not WEB_TOKEN_PATTERN.fullmatch(token.get_secret_value()):
        raise ValueError
    return token


class Web(Section):
    """The local web chat and the health endpoint."""

    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9.:_-]+$")] = setting(
        "127.0.0.1",
        "a host name or an IP address to listen on",
        "Where the web chat listens. Anything but a loopback address opens it to the network, behind its token only.",
    )
    port: Annotated[Number, Field(ge=0, le=65535)] = setting(
        8737,
        "a whole number from 0 to 65535",
        "Port of the web chat; 0 takes any free one.",
    )
    token: Annotated[Secret, AfterValidator(_usable_token)] = setting(
        None,
        f"{WEB_TOKEN_FORM}, or null",
        "The token that opens the web chat; null: one is made and kept in the home.",
    )
