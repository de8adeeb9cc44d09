"""The functions of slapp do the work they are named for, in the size that the request sets."""

import json
import math
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

FIRST = ["network-io", "factorial", "disk-io", "fibonacci"]
SMALL = {
    "network-io": {"requests": 2, "bytes": 1000},
    "factorial": {"n": 10},
    "disk-io": {"mib": 1},
    "fibonacci": {"n": 10},
    "pi": {"digits": 60},
    "pbkdf2": {"iterations": 2},
}


@pytest.fixture
def slapp(benchmarks: Path) -> Path:
    """The folder of slapp's functions."""
    return benchmarks / "slapp" / "functions"


def first(functions: SimpleNamespace, folder: Path, seed: str = "a") -> dict[str, Any]:
    """Return the small answer of a function of the first stage."""
    request = {"seed": seed, "sizes": SMALL}
    answer: dict[str, Any] = json.loads(functions.call(folder, json.dumps(request)))
    return answer


@pytest.mark.usefixtures("services")
@pytest.mark.parametrize("name", FIRST)
def test_first_stage_hands_the_sizes_on(name: str, slapp: Path, functions: SimpleNamespace) -> None:
    assert first(functions, slapp / name)["sizes"] == SMALL


def test_factorial(slapp: Path, functions: SimpleNamespace) -> None:
    answer = first(functions, slapp / "factorial")
    assert (answer["n"], answer["residue"]) == (10, 3_628_800)
    assert functions.load(slapp / "factorial").factorial(200) == math.factorial(200)


def test_fibonacci(slapp: Path, functions: SimpleNamespace) -> None:
    assert first(functions, slapp / "fibonacci")["value"] == 55


def test_pi_digits(slapp: Path, functions: SimpleNamespace) -> None:
    pi = functions.load(slapp / "pi").pi_digits
    assert pi(50) == 314159265358979323846264338327950288419716939937510
    assert pi(2000) // 10**1950 == pi(50)


def test_pbkdf2_derives_from_the_whole_input(slapp: Path, functions: SimpleNamespace) -> None:
    inputs = [json.dumps([{"sizes": SMALL}, {"value": value}]) for value in (1, 2)]
    keys = {json.loads(functions.call(slapp / "pbkdf2", text))["key"] for text in inputs}
    assert {len(key) for key in keys} == {64}
    assert len(keys) == 2


def test_disk_io_reads_back_what_it_wrote_and_leaves_nothing(
    slapp: Path, functions: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    answers = [first(functions, slapp / "disk-io", seed) for seed in ("a", "b")]
    assert [answer["bytes"] for answer in answers] == [1024 * 1024] * 2
    assert answers[0]["checksum"] != answers[1]["checksum"]
    assert list(tmp_path.iterdir()) == []
