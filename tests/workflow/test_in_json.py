"""Bytes in JSON come out of it as they were, and any reader of JSON takes it."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json as strict_json

from chiron.wrap.values.in_json import from_json, to_json
from tests.rows import each_row


@given(st.one_of(st.binary(), st.text().map(str.encode)))
def test_bytes_come_out_as_they_were_by_every_reader_of_json(content: bytes) -> None:
    document = json.dumps([to_json(content)])
    for read in (json.loads, msgspec.json.decode, strict_json):
        assert from_json(read(document)[0]) == content


def test_text_stays_text() -> None:
    assert to_json("grüße".encode()) == "grüße"
    assert to_json(b"\xff") == {"base64": "/w=="}


@each_row(
    "value", [None, 1, [], {}, "\udcff", {"base64": 1}, {"base64": "?"}, {"base64": "", "x": 1}]
)
def test_what_stands_for_no_bytes_is_refused(value: object) -> None:
    with pytest.raises(ValueError):
        from_json(value)
