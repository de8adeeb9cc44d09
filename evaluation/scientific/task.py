"""A task of a trace: reads its input, waits, computes and returns as much as task.json asks for."""

import json
import time
import zlib
from pathlib import Path

TASK = json.loads((Path(__file__).parent / "task.json").read_text())


def handle(req: str) -> str:
    """Return the task's number of bytes, which depend on all of its input."""
    mark = f"#{zlib.crc32(req.encode()):08x}"  # no JSON, so that joins need not parse it
    time.sleep(TASK["wait_ms"] / 1000)
    compute(TASK["rounds"])
    size: int = TASK["bytes"]
    return (mark * (size // len(mark) + 1))[:size]


def compute(rounds: int) -> int:
    """Do a fixed amount of work, whatever the speed of the core, with the GIL."""
    value = 1
    for _ in range(rounds):
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF
    return value
