"""Measures the same small workflows on wraps, Ray and Dask, in turn on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Literal, NamedTuple

from chiron.deployment.launcher import Launcher
from chiron.evaluation.optional import left_out, missing
from chiron.evaluation.runtime.deployed import (
    PROCESS,
    THREAD,
    Client,
    Shape,
    Sizes,
    direct,
    shape,
    workflows,
)
from chiron.evaluation.runtime.handlers import handing, noop
from chiron.evaluation.runtime.rounds import Part, Probe, Quantity, Round
from chiron.evaluation.runtime.systems import STARTED, WORKERS, System
from chiron.evaluation.runtime.tasks import Tasks
from chiron.workflow.errors import ChironError

SYSTEMS = tuple(STARTED)
_CHAIN, _FAN, _CONSUMERS = 1000, 16, 4
_MB, _BIG = 1_000_000, 100_000_000
_REQUEST = "{}"
#: Memory of a wrap: room for 100 MB in three processes, both at the producer and the consumers.
_MEMORY_MIB = 2048
#: Requests in a row for one figure, if short: one request varies by more than a task costs.
_TIMES = 10


class GraphRequest(NamedTuple):
    """A request: the tasks of each stage, each of which gets all outputs of the stage before.

    The first task returns the request, or `size` bytes, plain or as an array, for tasks that count.
    The figure is the latency beyond that of `than`.
    """

    name: str
    stages: tuple[int, ...]
    than: GraphRequest | None = None
    gives: Literal["noop", "give", "array"] = "noop"
    size: int = 1

    @property
    def times(self) -> int:
        """How many requests one figure averages."""
        return _TIMES if self.size == 1 and len(self.stages) < _CHAIN else 1

    def on(self, system: System) -> bool:
        """Run the request on `system`; return whether the answer is right."""
        noops = self.gives == "noop"
        given: object = _REQUEST if noops else self.size
        outputs = [system.call(0, getattr(Tasks, self.gives), given)]
        for number, tasks in enumerate(self.stages[1:], start=1):
            function = Tasks.noop if noops else Tasks.count
            workers = [(number + task) % WORKERS for task in range(tasks)]
            outputs = [system.call(worker, function, *outputs) for worker in workers]
        return system.answers(outputs) == [given] * self.stages[-1]


def _handed(
    gives: Literal["give", "array"], consumers: int, sizes: Sequence[int]
) -> list[GraphRequest]:
    to = "a consumer" if consumers == 1 else f"{consumers} consumers"
    kind, stages = " as an array" if gives == "array" else "", (1, consumers)
    byte = GraphRequest(f"1 byte{kind} to {to}, the whole request", stages, None, gives)
    return [byte] + [
        GraphRequest(f"{size // _MB} MB{kind} to {to}", stages, byte, gives, size) for size in sizes
    ]


_ONE = GraphRequest("one no-op, the whole request", (1,))
NOOPS = [
    _ONE,
    GraphRequest("a further no-op", (1, 1), _ONE),
    GraphRequest(f"{_CHAIN} no-ops in a row, the whole request", (1,) * _CHAIN),
    GraphRequest(f"fan-out to {_FAN} no-ops and in", (1, _FAN, 1), _ONE),
]
HAND_OVERS = [
    *_handed("give", 1, (_MB, 10 * _MB, _BIG)),
    *_handed("give", _CONSUMERS, (_BIG,)),
]
_ARRAYS = [*_handed("array", 1, (_BIG,)), *_handed("array", _CONSUMERS, (_BIG,))]
#: Library -> system -> its requests. Wraps have none with arrays: handlers return only text.
_REQUESTS_OF = {
    "": dict.fromkeys(("wrap, one process", "wrap, pool"), NOOPS + HAND_OVERS),
    "Ray": dict.fromkeys(("Ray tasks", "Ray actors"), NOOPS + HAND_OVERS + _ARRAYS),
    "Dask": {"Dask": NOOPS + HAND_OVERS + _ARRAYS, "Dask, told where": HAND_OVERS + _ARRAYS},
}


def others() -> Part:
    """Return the part of wraps and installed systems; raises ``not-installed`` if there is none."""
    installed = [library for library in SYSTEMS if not missing(library)]
    if not installed:
        raise ChironError("not-installed", "; ".join(left_out(SYSTEMS)))
    quantities = [
        Quantity(request.name, partial(_figure_ms, system, request), system=system)
        for library in ("", *installed)
        for system, requests in _REQUESTS_OF[library].items()
        for request in requests
    ]
    # A round has thousands of tasks, and 100 MB several times on each system.
    return Part("others", quantities, partial(_probes, installed), slower=5)


def _figure_ms(system: str, request: GraphRequest, taken: Round) -> float:
    less = taken[f"{system}: {request.than.name}"] if request.than else 0.0
    return taken[f"{system}: {request.name}"] - less


@contextmanager
def _probes(libraries: Sequence[str], launcher: Launcher) -> Iterator[list[Probe]]:
    with ExitStack() as stack:
        found = stack.enter_context(_wraps(launcher))
        for library in libraries:
            for system in stack.enter_context(STARTED[library]()):
                for request in _REQUESTS_OF[library][system.name]:
                    found.append(partial(_timed, system.name, request, partial(request.on, system)))
        yield found


def _timed(system: str, request: GraphRequest, right: Callable[[], bool]) -> Round:
    """Return the mean of `request.times` requests; raises ``wrong-output`` for a wrong answer."""
    start = time.perf_counter()
    for _ in range(request.times):
        if not right():
            raise ChironError(
                "wrong-output", f"{system} answers {request.name} wrongly", status=500
            )
    return {f"{system}: {request.name}": (time.perf_counter() - start) * 1000 / request.times}


def _one_process(_: int, tasks: int) -> Sizes:
    return ((tasks,),)


def _pool(stage: int, tasks: int) -> Sizes:
    """Place every second stage in a further process, or divide it over `WORKERS` processes."""
    if stage % 2 == 0:
        return THREAD
    return PROCESS if tasks == 1 else ((0, *[tasks // WORKERS] * WORKERS),)


_PLACED = {"wrap, one process": _one_process, "wrap, pool": _pool}
_SOURCES = {"chiron-evaluate-noop": noop, "chiron-evaluate-give": handing}


def wrap_shapes() -> list[Shape]:
    """Return a plan of one wrap for each request: remains of 100 MB would slow other requests."""
    return [
        shape(
            f"others-{number}",
            f"chiron-evaluate-{request.gives}",
            [_PLACED[system](*stage) for stage in enumerate(request.stages)],
            mechanism="pool",
            memory_mib=_MEMORY_MIB,
        )
        for number, (system, request) in enumerate(_wrapped())
    ]


def _wrapped() -> list[tuple[str, GraphRequest]]:
    return [
        (system, request) for system, requests in _REQUESTS_OF[""].items() for request in requests
    ]


@contextmanager
def _wraps(launcher: Launcher) -> Iterator[list[Probe]]:
    with ExitStack() as stack:
        deployed = stack.enter_context(workflows(launcher, wrap_shapes(), _SOURCES))
        found: list[Probe] = []
        for (system, request), workflow in zip(_wrapped(), deployed.values(), strict=True):
            client = stack.enter_context(closing(direct(launcher.gateway.url, workflow.entry)))
            body = (_REQUEST if request.gives == "noop" else str(request.size)).encode()
            right = partial(_right, client, body, workflow.expected(body))
            found.append(partial(_timed, system, request, right))
        yield found


def _right(client: Client, body: bytes, expected: bytes) -> bool:
    return client.post(body)[0] == expected
