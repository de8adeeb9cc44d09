"""What large inputs and outputs cost is the pages that they touch first: freed ones are kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

WRAP = Path(__file__).resolve().parents[2] / "templates" / "python3-wrap"
PREPARED = """
from wrap.values import malloc
malloc.keep_freed(32 << 20)
"""


def run(code: str) -> str:
    """What a program prints that prepares its memory as a wrap does."""
    command = [sys.executable, "-c", PREPARED + code]
    return subprocess.run(command, cwd=WRAP, capture_output=True, text=True, check=True).stdout


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


#: Answers how many pages it touched first: of three matrices of 500 x 500 there are 1536.
MATRICES = """
import resource

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def handle(req):
    before = faults()
    matrices = [bytearray(b"x") * (2 << 20) for _ in range(3)]
    return str(faults() - before)
"""


def test_a_worker_finds_its_memory_again_however_many_workers_there_may_be(
    start: Callable[..., Any], wrap_image: Callable[..., Path]
) -> None:
    entry = {"output": 1}
    handlers = {"one": MATRICES, "other": MATRICES}
    image = wrap_image(handlers, [[], [0], [1]], mechanism="pool", entry=entry)
    server = start(image, WRAP_MEMORY_MIB="128", pool_concurrency="16")
    server.request(body="")
    assert int(server.request(body="").text) < 300
