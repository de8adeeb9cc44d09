"""The items of a file are those that its format has, and take no more memory than their places."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chiron.wrap.core.statemachine.errors import StatesError
from chiron.wrap.core.statemachine.readers import items_in

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # A half of a surrogate pair is no text.
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
#: Backslashes escape here, and csv writes none.
fields = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\\\0"), max_size=6)


@given(st.lists(values, max_size=6), st.sampled_from([None, 0, 1, "\t"]))
def test_of_an_array(items: list[Any], indent: Any) -> None:
    text = json.dumps(items, indent=indent)
    assert [*items_in(f"\n{text} ", {}, None)] == items
    assert [*items_in(text, {}, 2)] == items[:2]


@given(st.dictionaries(st.text(max_size=3), values), st.sampled_from([None, 0, 1, "\t"]))
def test_of_an_object(items: dict[str, Any], indent: Any) -> None:
    text = json.dumps(items, indent=indent)
    assert [*items_in(f"\n{text} ", {}, None)] == [*items.items()]
    for name, value in items.items():
        pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        if isinstance(value, list):
            assert [*items_in(text, {"ItemsPointer": pointer}, None)] == value


@given(st.lists(values, max_size=6), st.sampled_from(["\n", "\r\n", "\n \n"]), st.booleans())
def test_of_lines(items: list[Any], newline: str, ends: bool) -> None:
    text = newline.join(map(json.dumps, items)) + newline * ends
    assert [*items_in(text, {"InputType": "JSONL"}, None)] == items


@given(
    st.lists(st.lists(fields, min_size=2, max_size=2), max_size=6),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([("COMMA", ","), ("TAB", "\t"), ("PIPE", "|")]),
)
def test_of_rows(rows: list[list[str]], quoting: Any, newline: str, by: tuple[str, str]) -> None:
    # csv.writer quotes a CR for itself as of Python 3.13 alone, and without quotes it ends a line.
    assume(quoting == csv.QUOTE_ALL or not any("\r" in field for row in rows for field in row))
    written = io.StringIO(newline="")
    delimiter = by[1]
    writer = csv.writer(written, delimiter=delimiter, quoting=quoting, lineterminator=newline)
    writer.writerows([["a", "b"], *rows])
    config = {"InputType": "CSV", "CSVDelimiter": by[0]}
    found = [*items_in(written.getvalue(), config, None)]
    assert found == [{"a": first, "b": second} for first, second in rows]


@pytest.mark.parametrize(
    ("config", "begin", "line", "end"),
    [
        ({"InputType": "JSONL"}, "", '{"a": 1}\n', ""),
        ({"InputType": "CSV"}, "a\n", "1\n", ""),
        ({}, "[0", ',{"a": 1}\n', "]"),
        ({}, '{"n": 0', ',"a": {"a": 1}\n', "}"),
        ({"ItemsPointer": "/a/1"}, '{"a": [0, [0', ',{"a": 1}\n', "]]}"),
    ],
)
def test_items_are_not_kept(config: dict[str, str], begin: str, line: str, end: str) -> None:
    count = 8_000
    text = begin + line * count + end
    tracemalloc.start()
    try:
        items = items_in(text, config, None)
        assert sum(1 for _ in items) >= count
        made = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    # Other threads make things meanwhile.
    makers = Path(items_in.__code__.co_filename).with_name("*"), csv.__file__, json.decoder.__file__
    its = made.filter_traces([tracemalloc.Filter(True, str(each)) for each in makers])
    held = sum(each.size for each in its.traces)
    assert 0 < held < 24 * count  # two places, and what an array has in reserve


@pytest.mark.parametrize("config", [{}, {"ItemsPointer": "/0"}, {"InputType": "JSONL"}])
def test_a_file_that_is_nested_too_deep_is_an_error_that_a_catch_takes(
    config: dict[str, str],
) -> None:
    with pytest.raises(StatesError, match="nested more than") as error:
        items_in("[" * 300 + "]" * 300, config, None)
    assert error.value.name == "States.ItemReaderFailed"
