"""Where large inputs and outputs lie: what they cost is the pages that they touch first."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

WRAP = Path(__file__).resolve().parents[2] / "templates" / "python3-wrap"
PREPARED = """
from wrap import memory
memory.keep_apart()
hole = [bytes(12 << 20), bytes(1 << 20)]  # as imports do: much of it is not needed any more
del hole[0]
memory.keep_freed(1 << 40, 1)
"""


def run(code: str) -> str:
    """What a program prints that prepares its memory as a wrap does."""
    command = [sys.executable, "-c", PREPARED + code]
    return subprocess.run(command, cwd=WRAP, capture_output=True, text=True, check=True).stdout


def _kib(field: str, area: str) -> int:
    return int(re.findall(rf"^{field}: +(\d+) kB", area, flags=re.MULTILINE)[0])


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").is_dir(), reason="the kernel has no large pages"
)
def test_the_end_of_the_heap_is_in_large_pages_that_nothing_has_touched_yet() -> None:
    maps = run("print(open('/proc/self/smaps').read())")
    areas = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", maps, flags=re.MULTILINE)
    large = [area for area in areas if "[heap]" in area and re.search(r"VmFlags:.* hg", area)]
    assert sum(_kib("Size", area) for area in large) >= 24 << 10
    assert sum(_kib("Rss", area) for area in large) == 0  # a small page there makes all small


def test_it_takes_no_memory_before_it_is_used() -> None:
    code = "print(next(line for line in open('/proc/self/status') if line[:5] == 'VmRSS'))"
    bare = [sys.executable, "-c", code]
    before = subprocess.run(bare, capture_output=True, text=True, check=True).stdout
    kib = [int(said.split()[1]) for said in (before, run(code))]
    assert kib[1] - kib[0] < 12 << 10  # of which ctypes takes some


def test_a_block_that_was_freed_is_taken_again() -> None:
    faults = run(
        """
import resource
def touch():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(b"x") * (10 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
touch()
print(touch())
"""
    )
    assert int(faults) < 500  # every page would be 2560
