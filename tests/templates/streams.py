"""A workflow of a writer and readers of its stream, and a large one of known content."""

from __future__ import annotations

import zlib
from typing import Any

WRITER, READER, SLOW = range(3)
#: All of a workflow's tasks but the slow reader, or with it.
TASKS = {WRITER: "writer", READER: "reader", SLOW: "slow"}
MEGABYTE = 1 << 20

LARGE_WRITER = """
    from chiron_io import open_output

    def handle(req):
        with open_output() as out:
            for number in range(int(req)):
                out.write(bytes([number % 251]) * (1 << 20))
"""
LARGE_READER = """
    import zlib
    from chiron_io import open_input

    def handle(req):
        found = 0
        with open_input() as stream:
            while data := stream.read(1 << 16):
                found = zlib.crc32(data, found)
        return str(found)
"""


def declared(readers: list[int] = [READER], **fields: Any) -> dict[str, Any]:  # noqa: B006
    return {
        "tasks": {task: TASKS[task] for task in (WRITER, *readers)},
        "inputs": {WRITER: None} | {reader: [] for reader in readers},
        "buckets": [([], [WRITER]), ([WRITER], readers)],
        "streams": {reader: {"writer": WRITER} for reader in readers},
        "live": {WRITER: readers},
        "passing": [WRITER],
        "live_buckets": [([], [WRITER, *readers])],
        "entry": {"output": readers if len(readers) > 1 else readers[0]},
    } | fields


def of(megabytes: int) -> str:
    """What the large reader answers."""
    found = 0
    for number in range(megabytes):
        found = zlib.crc32(bytes([number % 251]) * MEGABYTE, found)
    return str(found)
