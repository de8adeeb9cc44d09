"""Whatever a file has in it, its parser takes it or refuses it on one line, and soon."""

from __future__ import annotations

import json
import os
import random

import pytest
from fuzz_parsers import PARSERS, check, mutated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rows import each_row

#: Inputs of a soak: of all parsers together more than a million.
INPUTS = 160_000
SHORT = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TEXTS = st.text(max_size=20) | st.sampled_from(
    ["States", "StartAt", "Type", "Task", "Parallel", "Branches", "tasks", "edges", "Next", "a"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXTS, below, max_size=4),
)


@pytest.fixture(params=PARSERS)
def parser(request):
    """A parser and an input that it takes."""
    return PARSERS[request.param]


#: Of inputs that are not made from a right one each parser gets the same.
each_parser = pytest.mark.parametrize("parse", dict.fromkeys(p for p, _ in PARSERS.values()))


def test_the_input_that_is_changed_is_a_right_one(parser, tmp_path):
    parse, seed = parser

    assert parse(seed, tmp_path) is not None


@each_parser
@SHORT
@given(data=st.binary())
def test_any_bytes(parse, tmp_path, data):
    check(parse, data, tmp_path)


@each_parser
@SHORT
@given(value=VALUES)
def test_any_json(parse, tmp_path, value):
    check(parse, json.dumps(value).encode(), tmp_path)


def test_inputs_that_are_almost_right(parser, tmp_path):
    number = random.Random(8)
    for _ in range(500):
        check(parser[0], mutated(parser[1], number), tmp_path)


@pytest.mark.parametrize("parse", ["profile", "requirements", "stack", "strace"])
@each_row("size", [1_000, 100_000])
@each_row("piece", ["[", '{"a":', "a", "${A:-", "- ", "(", "9", "\n", "&a ", "? "])
def test_inputs_that_go_on_and_on(parse, tmp_path, piece, size):
    """All that is JSON is read as a profile is, and all that is YAML as a stack."""
    check(PARSERS[parse][0], (piece * size).encode()[:500_000], tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(460)
def test_very_many_inputs_that_are_almost_right(parser, tmp_path):
    number = random.Random(os.environ.get("CHIRON_SOAK_SEED", "soak"))
    for _ in range(INPUTS):
        check(parser[0], mutated(parser[1], number), tmp_path)
