"""All settings, as one immutable value.

Contract: `Settings()` is all defaults and reads nothing; `load_settings` reads the home and the environment. Secrets
are `SecretStr`: neither `repr` nor a dump nor an error shows them; `secrets` names them for those who must not either.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from config.agent import Agent
from config.platforms import Platforms
from config.sections import (
    Attachments,
    Compression,
    Delivery,
    Display,
    Identities,
    Number,
    SessionReset,
    Web,
    rule,
    setting,
)

__all__ = ["Settings"]

_RESERVED_PEOPLE = frozenset({"owner", "nobody"})
_PERSON_FORM = "a name of up to 64 letters, digits, `-`, `_` or `.`, beginning with a letter or digit"
_PERSON_LENGTH = 64


def _none_is_empty(value: Any) -> Any:
    return {} if value is None else value


class Settings(BaseSettings):
    """The settings of one home."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    agent: Agent = setting({}, "a mapping", "Which agent answers.")
    compression: Compression = setting({}, "a mapping", "When long conversations are compressed by themselves.")
    owner: Identities = setting(
        {},
        "a mapping of platforms to lists of user ids",
        "Your own accounts on the platforms: always served, and all of them see your sessions.",
    )
    people: Annotated[dict[str, Identities], BeforeValidator(_none_is_empty)] = setting(
        {},
        f"a mapping of names to their accounts, each {_PERSON_FORM}",
        "Other people, each with their accounts on the platforms: always served, each sees their own sessions.",
    )
    group_sessions_per_user: bool = setting(
        True,
        "true or false",
        "In groups and channels: a session for each person (true), or one for the room (false).",
    )
    thread_sessions_per_user: bool = setting(
        False,
        "true or false",
        "In threads and topics: a session for each person (true), or one for the thread (false).",
    )
    session_reset: SessionReset = setting({}, "a mapping", "When a conversation starts afresh by itself.")
    display: Display = setting({}, "a mapping", "What the terminal shows.")
    busy: Literal["queue", "interrupt", "steer"] = setting(
        "queue",
        "`queue`, `interrupt` or `steer`",
        "What becomes of a message that comes while the agent works: it waits for its own turn; it ends the running "
        "turn of the same person and is worked next; or the agent takes it into the running turn, if it can (it waits "
        "otherwise).",
    )
    merge_window: Annotated[Number, Field(ge=0, le=60)] = setting(
        0,
        "a whole number of seconds from 0 to 60",
        "Texts that somebody sends within so many seconds of each other are answered together; 0 keeps them apart.",
    )
    honor_deletes: bool = setting(
        False,
        "true or false",
        "When somebody deletes a message on a platform: forget its text here, too (true), or only note it (false).",
    )
    redact: Literal["off", "export", "store"] = setting(
        "off",
        "`off`, `export` or `store`",
        "Where secrets in messages (keys, tokens, passwords) are replaced by their kind: nowhere; in what is exported; "
        "or before anything is stored, so that neither the history nor the agent sees them.",
    )
    delivery: Delivery = setting({}, "a mapping", "How answers are brought out.")
    attachments: Attachments = setting({}, "a mapping", "Files that come with messages.")
    web: Web = setting({}, "a mapping", "The local web chat and the health endpoint.")
    platforms: Platforms = setting({}, "a mapping of platforms to their accounts", "The accounts on chat platforms.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is the library's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is passed in: `load_settings` merges the sources itself, to know where each value came from."""
        return (init_settings,)

    @field_validator("people")
    @classmethod
    def _distinct_people(cls, people: dict[str, Identities], info: ValidationInfo) -> dict[str, Identities]:
        spelled: dict[str, str] = {}
        for name in people:
            if not _is_person_name(name) or name.casefold() in _RESERVED_PEOPLE:
                raise rule(
                    f"has the name {name[:_PERSON_LENGTH]!r}; expected {_PERSON_FORM}, other than `owner` and `nobody`"
                )
            folded = unicodedata.normalize("NFC", name).casefold()
            if folded in spelled:
                raise rule(
                    f"has {spelled[folded]!r} and {name!r}, which differ only in their spelling; give them two names"
                )
            spelled[folded] = name
        _refuse_shared_identities(info.data.get("owner"), people)
        return people

    def people_as_mapping(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Name -> platform -> user ids, of everybody but the owner."""
        return {name: identities.as_mapping() for name, identities in self.people.items()}

    def secrets(self) -> list[str]:
        """Every secret that is set, whatever it opens."""
        return list(_secrets(self))


def _secrets(value: object) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for _, inside in value:
            yield from _secrets(inside)
    elif isinstance(value, tuple):
        for inside in value:
            yield from _secrets(inside)


def _is_person_name(name: str) -> bool:
    return (
        0 < len(name) <= _PERSON_LENGTH
        and name[0].isalnum()
        and all(unicodedata.category(letter)[0] in "LMN" or letter in "-_." for letter in name)
    )


def _identities(owner: Identities | None, people: dict[str, Identities]) -> Iterator[tuple[str, str, str]]:
    for name, identities in (({"owner": owner} if owner else {}) | people).items():
        for platform, ids in identities.as_mapping().items():
            for user_id in ids:
                yield name, platform, user_id


def _refuse_shared_identities(owner: Identities | None, people: dict[str, Identities]) -> None:
    """An identity belongs to one person."""
    holders: dict[tuple[str, str], str] = {}
    for name, platform, user_id in _identities(owner, people):
        holder = holders.setdefault((platform, user_id), name)
        if holder != name:
            raise rule(f"gives {platform} {user_id} to both {holder!r} and {name!r}; an account belongs to one person")
