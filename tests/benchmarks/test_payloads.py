"""The payload generator makes every benchmark's request in three sizes, always the same one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

#: Their requests say how many megabytes of what their first functions make, in how many parts.
CUT = ["wordcount", "svd", "recognition", "video", "mapreduce-sort", "mapreduce-count"]
#: Their requests say how much their first functions make.
MAKING = ["slapp", "slapp-v", "slapp-java", *CUT]
NAMES = [
    "finra",
    "finra-java",
    "social-network",
    "movie-review",
    "illegal-recognizer",
    "orders",
    "advertising",
    "query",
    "redundant",
    *MAKING,
]
SIZES = ["test", "small", "large"]


def made(benchmarks: Path, *arguments: str, seed: str = "0") -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        [sys.executable, str(benchmarks / "payload.py"), *arguments],
        env={"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", NAMES)
def test_small_is_the_payload_that_is_shipped(name: str, benchmarks: Path) -> None:
    shipped = (benchmarks / name / "payload.json").read_text()
    assert json.loads(made(benchmarks, name, "small").stdout) == json.loads(shipped)


@pytest.mark.parametrize("name", NAMES)
def test_a_size_is_the_same_bytes_under_any_hash_seed(name: str, benchmarks: Path) -> None:
    assert (
        made(benchmarks, name, "large", seed="1").stdout
        == made(benchmarks, name, "large", seed="2").stdout
    )


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MAKING])
def test_sizes_grow(name: str, benchmarks: Path) -> None:
    lengths = [len(made(benchmarks, name, size).stdout) for size in SIZES]
    assert 0 < 2 * lengths[0] < lengths[1] < lengths[2] / 2


@pytest.mark.parametrize("name", CUT)
def test_a_larger_size_is_more_megabytes_in_more_parts(name: str, benchmarks: Path) -> None:
    sizes = [json.loads(made(benchmarks, name, size).stdout) for size in SIZES]
    for field in ("megabytes", "parts"):
        assert sizes[0][field] < sizes[1][field] < sizes[2][field]


def test_every_function_of_slapp_does_more_in_a_larger_size(benchmarks: Path) -> None:
    sizes = [json.loads(made(benchmarks, "slapp", size).stdout)["sizes"] for size in SIZES]
    for function in sizes[0]:
        least, middle, most = (tuple(size[function].values()) for size in sizes)
        assert least < middle < most


def test_payload_goes_to_the_file_that_is_named(benchmarks: Path, tmp_path: Path) -> None:
    done = made(benchmarks, "movie-review", "test", "-o", str(tmp_path / "out.json"))
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads((tmp_path / "out.json").read_text())["title"]


@pytest.mark.parametrize("arguments", [("finra", "huge"), ("nobody", "small")])
def test_unknown_names_are_refused(arguments: tuple[str, str], benchmarks: Path) -> None:
    refused = made(benchmarks, *arguments)
    assert refused.returncode == 2
    assert "invalid choice" in refused.stderr
