"""The tree of all known settings, read from the models.

Contract: everything that names settings (variables, messages, the commented file, the reference) asks this tree, so
that a key exists everywhere or nowhere. Built once, never changed.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from config.settings import Settings

__all__ = ["ANY_NAME", "Key", "catalogue"]

ANY_NAME = "NAME"


@dataclass(frozen=True, slots=True)
class Key:
    """One known key. kind `names`: its children stand under names of one's own choice; `accounts`: in each account."""

    path: tuple[str, ...]
    kind: Literal["section", "names", "accounts", "list", "value"]
    form: str
    meaning: str
    default: Any = None
    secret: bool = False
    children: dict[str, Key] = field(default_factory=dict)

    @property
    def dotted(self) -> str:
        """The key as people write it."""
        return ".".join(self.path)

    @property
    def leaf(self) -> bool:
        """Whether a value stands here, not a mapping."""
        return self.kind in {"list", "value"}

    def below(self) -> Iterator[Key]:
        """All keys under this one, in the order of the models."""
        for child in self.children.values():
            yield child
            yield from child.below()

    def find(self, path: Sequence[str | int]) -> Key | None:
        """The key at a path of the settings, which may hold names and places in lists; None if there is none."""
        here = self
        for part in path:
            if isinstance(part, int):
                continue
            if here.kind == "names":
                here = here.children[ANY_NAME]
            elif part in here.children:
                here = here.children[part]
            else:
                return None
        return here

    def nearest(self, unknown: str) -> Key | None:
        """The key under this one, or anywhere, that somebody who wrote `unknown` most likely meant."""
        everywhere = {key.path[-1]: key for key in catalogue().below()}
        for known in (self.children, everywhere):
            near = get_close_matches(unknown, known, n=1)
            if near:
                return known[near[0]]
        return None


@cache
def catalogue() -> Key:
    """The root of the tree."""
    return Key((), "section", "a mapping of settings", "All settings.", children=_children(Settings, ()))


def _children(model: type[BaseModel], path: tuple[str, ...]) -> dict[str, Key]:
    return {name: _key(info, (*path, name)) for name, info in model.model_fields.items()}


def _key(info: FieldInfo, path: tuple[str, ...]) -> Key:
    extra = typing.cast("dict[str, Any]", info.json_schema_extra)
    form, meaning = extra["form"], info.description or ""
    kind, model, secret = _shape(info.annotation)
    if model is None:
        return Key(path, kind, form, meaning, info.default, secret)
    if kind == "names":
        person = (*path, ANY_NAME)
        children = {
            ANY_NAME: Key(
                person,
                "section",
                "a mapping",
                "One person." if path[-1] == "people" else "One of them.",
                children=_children(model, person),
            )
        }
        return Key(path, kind, form, meaning, {}, children=children)
    return Key(path, kind, form, meaning, {}, children=_children(model, path))


def _shape(
    annotation: Any,
) -> tuple[Literal["section", "names", "accounts", "list", "value"], type[BaseModel] | None, bool]:
    """Kind of a field, the model of what stands under it, whether it is secret."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section", annotation, False
    if origin is dict:
        return "names", arguments[1], False
    if origin is tuple:
        inner = arguments[0]
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            return "accounts", inner, False
        return "list", None, False
    if origin is typing.Annotated:
        return _shape(arguments[0])
    secret = origin in {typing.Union, types.UnionType} and SecretStr in arguments
    return "value", None, secret
