"""Reading `config.yaml` into layers, with the line of every key.

Contract: nothing is raised for what is wrong with the file; each thing becomes a Problem. A missing file is an empty
one. Keys are taken as written (`no:` is the key "no"); a key given twice is a problem. Only plain YAML is understood:
no tags that make objects. Dates stay text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from config.errors import Problem
from config.layers import KeyPath, Layers, dotted

__all__ = ["read_yaml"]

# YAML's own messages quote what they stumbled over, which may be a secret; single signs are harmless and help.
_QUOTED = re.compile(r"""'[^']{4,}'|"[^"]{4,}\"""")


class _Loader(yaml.SafeLoader):
    """Plain YAML without dates: no setting is one, and a wrong one would be an error without a line."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the library's own declaration, here without one entry
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_yaml(file: Path, layers: Layers) -> list[Problem]:
    """Merge the file into the layers; returns what is wrong with it."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return []
    except OSError as error:
        return [Problem(str(file), f"cannot be read ({error.strerror}); check what it is and its permissions")]
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        return [Problem(f"{file}, line {line}", "this is not UTF-8 text; save the file as UTF-8")]
    return _Reader(file).read(text, layers)


class _Reader:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._problems: list[Problem] = []
        self._lines: dict[KeyPath, int] = {}
        self._open: list[yaml.Node] = []
        self._loader: _Loader

    def read(self, text: str, layers: Layers) -> list[Problem]:
        try:
            self._loader = _Loader(text)
            root = self._loader.get_single_node()
            if root is not None and not isinstance(root, yaml.MappingNode):
                return [self._problem(root, "expected a mapping of settings, such as `busy: queue`")]
            values = self._mapping(root, ()) if root is not None else {}
        except yaml.MarkedYAMLError as error:
            return [*self._problems, self._syntax(error)]
        except yaml.reader.ReaderError as error:
            line = text[: error.position].count("\n") + 1
            return [Problem(f"{self._file}, line {line}", "this is not valid YAML: it holds a control character")]
        except RecursionError:
            return [Problem(str(self._file), "is nested too deeply to be read")]
        for key, value in values.items():
            layers.put((key,), value, str(self._file))
        for path, line in self._lines.items():
            layers.note(path, f"{self._file}, line {line}")
        return self._problems

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        self._refuse_twice(node, path)
        self._loader.flatten_mapping(node)
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._problems.append(self._problem(key_node, "a key must be a plain word"))
                continue
            here = (*path, key_node.value)
            self._lines[here] = key_node.start_mark.line + 1
            values[key_node.value] = self._value(value_node, here)
        return values

    def _value(self, node: yaml.Node, path: KeyPath) -> Any:
        if any(node is outer for outer in self._open):
            self._problems.append(self._problem(node, "this refers to itself"))
            return None
        self._open.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return [self._item(item, (*path, index)) for index, item in enumerate(node.value)]
            return self._scalar(node)
        finally:
            self._open.pop()

    def _item(self, node: yaml.Node, path: KeyPath) -> Any:
        self._lines[path] = node.start_mark.line + 1
        return self._value(node, path)

    def _scalar(self, node: yaml.Node) -> Any:
        try:
            return self._loader.construct_object(node)
        except ValueError:  # looks like a number to YAML and is none to Python, such as `._`
            return node.value

    def _refuse_twice(self, node: yaml.MappingNode, path: KeyPath) -> None:
        lines: dict[str, int] = {}
        for key_node, _ in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode) or key == "<<":
                continue
            if key in lines:
                what = f"{dotted((*path, key))} is given a second time; it already stands in line {lines[key]}"
                self._problems.append(self._problem(key_node, what))
            lines.setdefault(key, key_node.start_mark.line + 1)

    def _problem(self, node: yaml.Node, what: str) -> Problem:
        return Problem(f"{self._file}, line {node.start_mark.line + 1}", what)

    def _syntax(self, error: yaml.MarkedYAMLError) -> Problem:
        mark = error.problem_mark or error.context_mark
        where = f"{self._file}, line {mark.line + 1}, column {mark.column + 1}" if mark else str(self._file)
        said = ", ".join(_QUOTED.sub("...", part) for part in (error.context, error.problem) if part)
        return Problem(where, f"this is not valid YAML: {said}")
