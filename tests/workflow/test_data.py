"""Texts flow unchanged; a list is put together from them without touching a byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.workflow.data import is_json, resolve
from chiron.workflow.errors import ChironError
from tests.rows import each_row


def test_no_source_is_the_request_and_one_source_is_that_output():
    for text in ("", " 1.0 ", "no JSON", '{"b":1,  "a":2}', "\ufeff"):
        assert resolve(None, text, {}) == text
        assert resolve("a", "request", {"a": text}) == text


def test_several_sources_are_a_list_in_their_order():
    outputs = {"a": "1", "b": '"x"', "c": "null"}
    assert resolve(("c", "a", "b"), "", outputs) == '[null,1,"x"]'
    assert resolve(("a", "a"), "", outputs) == "[1,1]"


def test_a_list_of_one_is_still_a_list():
    assert resolve(("a",), "", {"a": "{}"}) == "[{}]"


@each_row(
    "text",
    ["1.0", "1E5", "-0", "1e999", '{"b": 1, "a": 1, "b": 2}', '"\\u00e4/\\/"', "[ 1 ,2 ]", "true"],
)
def test_json_keeps_every_byte_in_a_list(text):
    assert resolve(("a", "b"), "", {"a": text, "b": text}) == f"[{text},{text}]"


def test_json_is_stripped_of_the_space_around_it_only():
    assert resolve(("a",), "", {"a": '\n {"a": 1} \t\r'}) == '[{"a": 1}]'


@each_row(
    "text",
    [
        "",
        " ",
        "NaN",
        "Infinity",
        "-Infinity",
        "[NaN]",
        "nan",
        "'a'",
        "{a:1}",
        "01",
        "1.",
        "\u00a01",
        '"a\nb"',
        "1 2",
        "größe",
        "\ufeff1",
        "[1,]",
        '"',
    ],
)
def test_what_is_no_strict_json_becomes_a_string(text):
    assert not is_json(text)
    assert json.loads(resolve(("a",), "", {"a": text})) == [text]


def test_json_that_is_nested_too_deep_to_be_read_is_an_error_and_no_string():
    with pytest.raises(ChironError) as caught:
        resolve(("a", "b"), "", {"a": "1", "b": "[" * 5000 + "]" * 5000})
    assert caught.value.code == "too-deep"


def test_letters_are_not_escaped_in_a_string():
    assert resolve(("a",), "", {"a": "größe"}) == '["größe"]'


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)  # fmt: skip


@given(st.lists(values, min_size=1))
def test_the_list_of_json_outputs_is_the_list_of_their_values(outputs: list[object]):
    texts = {str(i): json.dumps(value) for i, value in enumerate(outputs)}
    assert json.loads(resolve(tuple(texts), "", texts)) == outputs


@given(st.lists(st.text(), min_size=1))
def test_whatever_the_outputs_their_list_is_json_of_that_length(outputs: list[str]):
    texts = {str(i): text for i, text in enumerate(outputs)}
    joined = resolve(tuple(texts), "", texts)
    assert is_json(joined)
    assert len(json.loads(joined)) == len(outputs)
