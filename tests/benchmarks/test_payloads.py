"""The payload generator makes every benchmark's request in three sizes, always the same one."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.rows import each_row

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


#: Prints a digest of each benchmark's large request.
DIGESTS = """
import hashlib, sys
from payload import payload_text
for name in sys.argv[1:]:
    print(name, hashlib.sha256(payload_text(name, "large").encode()).hexdigest())
"""
Text = Callable[[str, str], str]


@pytest.fixture
def text(benchmarks: Path, functions: SimpleNamespace) -> Text:
    """The text of a benchmark's request in a size."""
    found: Text = functions.load(benchmarks, "payload").payload_text
    return found


@each_row("name", NAMES)
def test_small_is_the_payload_that_is_shipped(name: str, text: Text, benchmarks: Path) -> None:
    shipped = (benchmarks / name / "payload.json").read_text()
    assert json.loads(text(name, "small")) == json.loads(shipped)


def test_a_size_is_the_same_bytes_under_any_hash_seed(benchmarks: Path) -> None:
    command = [sys.executable, "-c", DIGESTS, *NAMES]
    one, other = (
        subprocess.check_output(
            command, env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(benchmarks)}, text=True
        )
        for seed in "12"
    )
    assert one == other and len(one.splitlines()) == len(NAMES)


@each_row("name", [name for name in NAMES if name not in MAKING])
def test_sizes_grow(name: str, text: Text) -> None:
    lengths = [len(text(name, size)) for size in SIZES]
    assert 0 < 2 * lengths[0] < lengths[1] < lengths[2] / 2
