"""Compares profiles of functions whose behaviour is known with the truth, and with each other.

The functions compute for a fixed CPU time of their thread: it does not depend on the machine or
its load. When they block, they wait for something outside the function.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median, quantiles

from chiron.deployment.deploy import Progress
from chiron.deployment.launcher import Launcher
from chiron.deployment.local_launcher import LocalLauncher
from chiron.evaluation.bench.machine import Machine, Measured
from chiron.evaluation.runtime.deployed import write_stack
from chiron.predictor.speed import latency_at
from chiron.profiler.invocation import Invocation, Solo
from chiron.profiler.profile import profile
from chiron.workflow.documents import Document, write_atomically
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.profile import FunctionProfile, Source

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
    """A function whose behaviour is known.

    ``body`` has the lines of its handler, which may use the names of `_PARTS`. ``truth_ms`` has the
    duration of each kind of period; ``free`` is ``native`` and ``block`` together. If there is only
    one kind, the function does nothing else, and its real duration depends on the machine.
    """

    body: str
    truth_ms: Mapping[str, float]

    @property
    def truth(self) -> dict[str, float]:
        """The share of each kind in the function's time."""
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
#: The function that is profiled several times in a row; all its time scales with the speed of the
#: machine.
REPEATED = "pbkdf2"


class Checked(Document):
    """The profile of a known function, compared with the truth.

    ``truth`` and ``found`` are the shares of its kinds; ``free`` is ``native`` and ``block``
    together. ``untraced_ms`` is the median latency of other untraced runs, right after the runs of
    the profile; ``untraced_spread_ms`` has the quartiles. ``latency_error`` is the relative excess
    of a profile's run over the run after it: the median of the pairs, with its quartiles.
    """

    function: str
    truth: dict[str, float]
    found: dict[str, float]
    profiled_ms: float
    untraced_ms: float
    untraced_spread_ms: tuple[float, float]
    latency_error: float
    latency_error_spread: tuple[float, float]
    sources: tuple[Source, ...]

    @property
    def worst_points(self) -> float:
        """The largest error of a share, in percentage points."""
        return max(abs(self.found[kind] - share) for kind, share in self.truth.items()) * 100


class ProfilerReport(Measured):
    """The accuracy and the stability of profiles.

    ``seconds`` is the duration of profiling all known functions, deployment included.
    ``repeated_ms`` has the latencies of the function `repeated` in successive profiles, converted
    to the same speed of the machine.
    """

    seconds: float
    functions: tuple[Checked, ...]
    repeated: str
    repeated_ms: tuple[float, ...]

    @property
    def repeated_range(self) -> float:
        """The relative excess of the largest repeated latency over the smallest."""
        return max(self.repeated_ms) / min(self.repeated_ms) - 1


@dataclass
class _Beside:
    """Runs the function again after each untraced run of its profile; stores pairs of latencies."""

    pairs: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    seconds: float = 0.0

    def __call__(self, solo: Solo, run: Invocation) -> None:
        start = time.monotonic()
        pair = (run.latency_ms, solo.invoke().latency_ms)
        self.pairs.setdefault(solo.function, []).append(pair)
        self.seconds += time.monotonic() - start


def check_profiler(
    launcher: Launcher | LocalLauncher,
    *,
    machine: Machine,
    command: str,
    repeats: int,
    samples: int,
    progress: Progress,
    probe_alone: bool = False,
) -> ProfilerReport:
    """Profile every known function and compare; then profile `REPEATED` `repeats` times.

    Each function has about `samples` untraced runs, and as many runs beside them. With
    `probe_alone`, strace may be missing. The report names `machine` and `command`.
    """
    with tempfile.TemporaryDirectory(prefix="chiron-known-") as scratch:
        folder = write_known(Path(scratch) / "known")
        beside = _Beside()
        start = time.monotonic()
        traced = partial(profile, launcher=launcher, probe_alone=probe_alone)
        measured = traced(folder, samples=samples, progress=progress, beside=beside)
        seconds = time.monotonic() - start - beside.seconds
        one = write_known(Path(scratch) / "one", (REPEATED,))
        repeated = []
        for number in range(repeats):
            progress(f"profiling {REPEATED} again: {number + 1} of {repeats}")
            repeated.append(traced(one).functions[REPEATED])
    speed = median(each.cpu_probe_ms or 1.0 for each in repeated)
    return ProfilerReport(
        machine=machine,
        command=command,
        seconds=round(seconds, 1),
        functions=tuple(
            checked(name, function, beside.pairs[name])
            for name, function in measured.functions.items()
        ),
        repeated=REPEATED,
        repeated_ms=tuple(round(latency_at(each, speed), 3) for each in repeated),
    )


def checked(name: str, function: FunctionProfile, pairs: Sequence[tuple[float, float]]) -> Checked:
    """Compare the profile `function` of the known function `name` with the truth.

    `pairs` has the latencies of each untraced run of the profile and of the run right after it.
    """
    low, middle, high = _quartiles([beside for _, beside in pairs], 3)
    low_error, error, high_error = _quartiles([run / beside - 1 for run, beside in pairs], 4)
    shares = {
        kind: function.time_ms(kind) / function.latency_ms for kind in ("cpu", "native", "block")
    }
    found = shares | {"free": shares["native"] + shares["block"]}
    return Checked(
        function=name,
        truth={kind: round(share, 4) for kind, share in KNOWN[name].truth.items()},
        found={kind: round(share, 4) for kind, share in found.items()},
        profiled_ms=function.latency_ms,
        untraced_ms=middle,
        untraced_spread_ms=(low, high),
        latency_error=error,
        latency_error_spread=(low_error, high_error),
        sources=function.sources,
    )


def _quartiles(values: Sequence[float], digits: int) -> Iterator[float]:
    return (round(each, digits) for each in quantiles(values, n=4, method="inclusive"))


def write_known(path: Path, names: tuple[str, ...] = tuple(KNOWN)) -> WorkflowFolder:
    """Write a workflow folder to `path`, whose parallel tasks are the known functions `names`."""
    code = {}
    for name in names:
        lines = "\n".join(f"    {line}" for line in KNOWN[name].body.splitlines())
        handler = (
            f"import os, time\n\nfrom .parts import *\n\nBLOCK = bytes(5_000_000)\n\n\n"
            f"def handle(req):\n{lines}\n    return req\n"
        )
        code[name] = {"handler.py": handler, "parts.py": _PARTS}
    write_stack(path, code, prefix="chiron-known-")
    workflow = {"tasks": {name: name for name in names}, "edges": []}
    write_atomically(path / "workflow.json", json.dumps(workflow))
    return WorkflowFolder.open(path)
