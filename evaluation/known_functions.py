"""Functions of which is known what they do and for how long, to hold profiles against.

Computing is measured out in CPU time of the thread, so that it is the same amount on any machine,
however busy. What they wait for answers from outside of the function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workflow.documents import write_atomically
from workflow.folder import WorkflowFolder

_PARTS = '''\
"""What known functions are made of."""

import hashlib
import os
import socket
import threading
import time


def compute(milliseconds):
    """Compute in Python for so long."""
    end = time.thread_time() + milliseconds / 1000
    while time.thread_time() < end:
        for _ in range(200):
            pass


def native(milliseconds):
    """Compute for so long with the GIL released, but for a moment every other millisecond."""
    end = time.thread_time() + milliseconds / 1000
    while time.thread_time() < end:
        derive(2000)


def derive(rounds):
    """Compute with the GIL released, for as long as so many rounds take."""
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", rounds)


def together(*work):
    """Do all that at once, in threads."""
    threads = [threading.Thread(target=what, args=[amount]) for what, amount in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def answer_late(connection):
    """Answer every question after 20 ms."""
    while connection.recv(1):
        time.sleep(0.02)
        connection.send(b"!")


near, far = socket.socketpair()
threading.Thread(target=answer_late, args=[far], daemon=True).start()
'''


@dataclass(frozen=True)
class Known:
    """A function and what it does.

    Attributes
    ----------
    body
        The handler's lines, with the names of `_PARTS`.
    truth_ms
        How long it does each kind of thing; ``free`` is ``native`` or ``block``. Where only one
        is named, that is all it does, and how long it takes is the machine's.
    """

    body: str
    truth_ms: Mapping[str, float]

    @property
    def truth(self) -> dict[str, float]:
        """The shares of its kinds in all it does."""
        whole = sum(self.truth_ms.values())
        return {kind: duration / whole for kind, duration in self.truth_ms.items()}


KNOWN: dict[str, Known] = {
    "sleep": Known("time.sleep(0.05)", {"block": 50}),
    "python": Known("compute(30)", {"cpu": 30}),
    "pbkdf2": Known("derive(100_000)", {"native": 30}),
    "socket": Known(
        'compute(10)\nnear.send(b"?")\nnear.recv(1)\ncompute(10)',
        {"cpu": 20, "block": 20},
    ),
    "mixture": Known(
        "compute(10)\ntime.sleep(0.02)\ncompute(10)\nnative(10)",
        {"cpu": 20, "block": 20, "native": 10},
    ),
    "write": Known(
        'with open("/tmp/chiron-known-write", "wb", buffering=0) as file:\n'
        "    file.write(BLOCK)\n    os.fsync(file.fileno())\n"
        'os.unlink("/tmp/chiron-known-write")',
        {"free": 10},
    ),
    "tiny-reads": Known(
        'with open("/etc/passwd", "rb", buffering=0) as file:\n'
        "    for _ in range(200):\n        file.read(8)",
        {"cpu": 1},
    ),
    "python-threads": Known("together((compute, 15), (compute, 15))", {"cpu": 30}),
    "native-threads": Known("together((derive, 60_000), (derive, 60_000))", {"native": 30}),
    "waiting-threads": Known("together((time.sleep, 0.02), (time.sleep, 0.03))", {"block": 30}),
}


def write_known(path: Path, names: tuple[str, ...] = tuple(KNOWN)) -> WorkflowFolder:
    """A workflow folder at `path` with those known functions, side by side."""
    stack = "version: 1.0\nprovider:\n  name: openfaas\nfunctions:\n"
    for name in names:
        lines = "\n".join(f"    {line}" for line in KNOWN[name].body.splitlines())
        handler = (
            f"import os, time\n\nfrom .parts import *\n\nBLOCK = bytes(5_000_000)\n\n\n"
            f"def handle(req):\n{lines}\n    return req\n"
        )
        folder = path / "functions" / name
        write_atomically(folder / "handler.py", handler)
        write_atomically(folder / "parts.py", _PARTS)
        stack += (
            f"  {name}:\n    lang: python3-flask\n    handler: ./functions/{name}\n"
            f"    image: chiron-known-{name}:latest\n"
        )
    write_atomically(path / "stack.yaml", stack)
    tasks = ", ".join(f'"{name}": "{name}"' for name in names)
    write_atomically(path / "workflow.json", f'{{"tasks": {{{tasks}}}, "edges": []}}\n')
    return WorkflowFolder.open(path)
