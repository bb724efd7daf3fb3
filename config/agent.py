"""The section `agent`: which agent answers, and what its kind needs to know."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from config.sections import Number, Secret, Section, none_is_empty, rule, setting

__all__ = ["OPENAI_URL", "Agent"]

OPENAI_URL = "https://api.openai.com/v1"
_ADDRESS = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")


def _address(address: str) -> str:
    if not _ADDRESS.fullmatch(address):
        raise ValueError
    return address.rstrip("/")


class Agent(Section):
    """Which agent answers."""

    kind: Literal["recall", "openai", "command"] = setting(
        "recall",
        "`recall`, `openai` or `command`",
        "The agent. `recall` is built in: it files what it is told and finds it again, without a key or a network. "
        "`openai` asks a model behind an address that speaks OpenAI's protocol, local ones included. `command` runs a "
        "program of your own for each message.",
    )
    base_url: Annotated[str, AfterValidator(_address)] = setting(
        OPENAI_URL,
        "an http or https address without user name and password, for example `http://127.0.0.1:11434/v1`",
        "For `openai`: where the model is served. It usually ends with `/v1`.",
    )
    api_key: Secret = setting(
        None,
        "a key, one word, or null",
        "For `openai`: the key for that address; null where none is needed. Best kept in `.env`.",
    )
    model: Annotated[str, Field(pattern=r"^\S+$", max_length=200)] | None = setting(
        None,
        "the name of a model, for example `gpt-5-mini` or `qwen3:8b`, or null",
        "For `openai`: which model answers.",
    )
    instructions: Annotated[str, Field(max_length=20_000)] | None = setting(
        None,
        "a text of up to 20,000 characters, or null",
        "For `openai`: what the model is told beside who and where it is. It is fixed for a session when that begins.",
    )
    images: bool = setting(
        False,
        "true or false",
        "For `openai`: show pictures that come with a message to the model, in that turn. It must be able to see.",
    )
    command: Annotated[tuple[str, ...], BeforeValidator(none_is_empty)] = setting(
        (),
        'a list: the program and its arguments, for example ["python3", "/home/ann/agent.py"]',
        "For `command`: the program that is run for each message. No shell is involved.",
    )
    command_seconds: Annotated[Number, Field(ge=1, le=1800)] = setting(
        600,
        "a whole number of seconds from 1 to 1800",
        "For `command`: how long the program may run.",
    )

    context_tokens: Annotated[Number, Field(ge=2000, le=10_000_000)] = setting(
        32_000,
        "a whole number of tokens from 2000 to 10000000",
        "How much of a conversation the agent is shown in a turn, with its system prompt and its tools, as Threadline "
        "counts tokens (a third of the UTF-8 bytes, which is on the high side). Leave room for the answer in what the "
        "model can take.",
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind == "openai" and self.model is None:
            raise rule("is of the kind `openai` and names no model; set agent.model")
        if self.kind == "openai" and self.api_key is None and self.base_url == OPENAI_URL:
            raise rule("is of the kind `openai` and has no key for its address; set agent.api_key (or agent.base_url)")
        if self.kind == "command" and not (self.command and self.command[0]):
            raise rule("is of the kind `command` and names no program; set agent.command")
        return self
