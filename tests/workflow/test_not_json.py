"""NaN and the infinities, which Python writes as if they were JSON, are refused at their field."""

from __future__ import annotations

import pytest

from chiron.workflow.documents import parse_json, validate
from chiron.workflow.errors import ChironError
from chiron.workflow.profile import Profile
from tests.rows import each_row


@each_row("constant", ["NaN", "Infinity", "-Infinity"])
@each_row(
    ("text", "path"),
    [
        ('{"functions": {"f": {"periods": [{"start_ms": 0}, {"start_ms": %s}]}}}',
         "functions.f.periods[1].start_ms"),
        ('{"cpus": 2, "rpc_ms": %s}', "rpc_ms"),
        ("[1.5, [%s]]", "[1][0]"),
        ("%s", None),
    ],
)  # fmt: skip
def test_what_is_no_number_is_refused_with_the_path_to_the_field(constant, text, path):
    with pytest.raises(ChironError) as error:
        parse_json(text % constant, "profile")
    assert (error.value.code, error.value.path) == ("bad-json", path)
    assert constant in error.value.message


def test_a_number_too_large_for_a_float_is_refused_by_its_field():
    text = (
        '{"format": 1, "workflow": "w", "functions": {"f": {"latency_ms": 1e999, "periods": []}}}'
    )
    with pytest.raises(ChironError) as error:
        validate(Profile, parse_json(text, "profile"), "profile")
    assert (error.value.code, error.value.path) == ("bad-document", "functions.f.latency_ms")
