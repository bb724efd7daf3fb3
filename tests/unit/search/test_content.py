"""Message content as text: back and forth without loss, and readable for people and for search."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_store.content import decode_content, encode_content, plain_text, readable, tool_calls_text
from session_store.errors import InvalidArgument

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=4),
    max_leaves=12,
)
PICTURE = "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 20).decode()


@given(JSON | st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: f"\x1e{text}"))
def test_content_comes_back_as_it_was(content: Any) -> None:
    """Whatever JSON can express, and texts that look like our own records."""
    if content is None or isinstance(content, str | list | dict):
        assert decode_content(encode_content(content)) == content


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40).filter(lambda text: not text.startswith("\x1e")))
def test_plain_text_is_stored_byte_for_byte(text: str) -> None:
    """Other tools read it as it was said."""
    assert encode_content(text) == text == decode_content(text) == plain_text(text)


def test_parts_are_stored_readably() -> None:
    """No ASCII escapes: other tools, and a scan, find the characters."""
    stored = encode_content([{"type": "text", "text": "部署脚本"}])
    assert stored is not None
    assert "部署脚本" in stored


def test_what_is_no_json_is_refused() -> None:
    """The error is about the argument."""
    with pytest.raises(InvalidArgument):
        encode_content([object()])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, ""),
        ("", ""),
        ([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PICTURE}}], "look\n[image]"),
        ([{"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}], "[image: https://x.example/a.png]"),
        ([{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}], "a\nb"),
        ([{"type": "image", "source": {"type": "base64", "data": PICTURE}}], "[image]"),
        ([{"type": "input_audio", "input_audio": {"data": PICTURE[22:], "format": "wav"}}], "[audio]"),
        ([{"type": "file", "file": {"filename": "plan.pdf", "file_data": PICTURE}}], "[file: plan.pdf]"),
        ([{"type": "tool_result", "content": [{"type": "text", "text": "inner"}]}], "inner"),
        (["plain", {"text": "dict"}], "plain\ndict"),
        ({"answer": "部署", "n": 3}, "answer: 部署\nn: 3"),
        ([{"type": "unknown", "payload": PICTURE[22:]}], "payload: [data]"),
    ],
)
def test_parts_read_as_text(content: Any, expected: str) -> None:
    """Texts are kept, binary data is named."""
    assert plain_text(encode_content(content)) == expected


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (None, ""),
        ([], ""),
        (
            [{"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls -la"}'}}],
            "terminal\ncommand: ls -la",
        ),
        (
            [{"id": "c1", "function": {"name": "write", "arguments": {"path": "a.py", "lines": [1, "two"]}}}],
            "write\npath: a.py\nlines: 1\nlines: two",
        ),
        ([{"name": "search", "input": {"query": "部署"}}], "search\nquery: 部署"),
        ([{"function": {"name": "broken", "arguments": '{"half": "tex'}}], 'broken\n{"half": "tex'),
        ([{"function": {"name": "none"}}], "none"),
        ([{"function": {"name": "blob", "arguments": {"image": PICTURE}}}], "blob\nimage: [data]"),
        (["odd", 1], "odd\n1"),
    ],
)
def test_calls_read_as_text(calls: Any, expected: str) -> None:
    """Names, and arguments with their keys."""
    assert tool_calls_text(None if calls is None else json.dumps(calls)) == expected


def test_escaped_arguments_are_decoded() -> None:
    """Providers escape what is not ASCII, twice even."""
    arguments = json.dumps({"query": "部署脚本"})
    assert "\\u" in arguments
    stored = json.dumps([{"function": {"name": "search", "arguments": arguments}}])
    assert tool_calls_text(stored) == "search\nquery: 部署脚本"


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "nonsense", "1" * 5000 + " ", '{"a": ' * 50_000])
def test_what_is_no_json_is_its_own_text(text: str) -> None:
    """Rows of other tools never make the index fail."""
    assert tool_calls_text(text) == text
    assert plain_text(f"\x1e{text}") == f"\x1e{text}"


def test_everything_that_search_covers_is_readable() -> None:
    """Content, calls, and the tool's name."""
    calls = json.dumps([{"function": {"name": "terminal", "arguments": "{}"}}])
    assert readable("done", "terminal", None) == "done\nterminal"
    assert readable(None, None, calls) == "terminal"
    assert readable("text", None, None) == "text"
