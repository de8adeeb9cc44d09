"""Whatever a file has in it, its parser takes it or refuses it on one line, and soon."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rows import each_row

PARSERS = [
    *("asl", "machine", "dag", "flat", "nested", "dataflows", "buckets", "yaml"),
    *("profile", "plan", "stack", "requirements", "strace"),
]
#: Inputs of a soak: of all parsers together more than a million.
INPUTS, GUIDED = 160_000, 20_000
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
def parser(request, fuzzer):
    """A parser and an input that it takes."""
    return fuzzer.PARSERS[request.param]


def test_every_parser_is_here(fuzzer):
    assert list(fuzzer.PARSERS) == PARSERS


def test_the_input_that_is_changed_is_a_right_one(parser, tmp_path):
    parse, seed = parser

    assert parse(seed, tmp_path) is not None


@SHORT
@given(data=st.binary())
def test_any_bytes(parser, fuzzer, tmp_path, data):
    fuzzer.check(parser[0], data, tmp_path)


@SHORT
@given(value=VALUES)
def test_any_json(parser, fuzzer, tmp_path, value):
    fuzzer.check(parser[0], json.dumps(value).encode(), tmp_path)


def test_inputs_that_are_almost_right(parser, fuzzer, tmp_path):
    number = random.Random(8)
    for _ in range(500):
        fuzzer.check(parser[0], fuzzer.mutated(parser[1], number), tmp_path)


@each_row("size", [1_000, 100_000])
@each_row("piece", ["[", '{"a":', "a", "${A:-", "- ", "(", "9", "\n", "&a ", "? "])
def test_inputs_that_go_on_and_on(parser, fuzzer, tmp_path, piece, size):
    fuzzer.check(parser[0], (piece * size).encode()[:500_000], tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(460)
def test_very_many_inputs_that_are_almost_right(parser, fuzzer, tmp_path):
    number = random.Random(os.environ.get("CHIRON_SOAK_SEED", "soak"))
    for _ in range(INPUTS):
        fuzzer.check(parser[0], fuzzer.mutated(parser[1], number), tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(460)
@pytest.mark.skipif(not importlib.util.find_spec("atheris"), reason="needs atheris")
@pytest.mark.parametrize("name", PARSERS)
def test_inputs_that_reach_new_code(name, tmp_path):
    program = Path(__file__).with_name("fuzz_parsers.py")
    options = [f"-runs={GUIDED}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=4096", "-seed=8"]
    command = [sys.executable, str(program), name, str(tmp_path), *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
