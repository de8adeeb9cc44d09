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


class Ask(NamedTuple):
    """A request: the tasks of each stage, each of which gets all outputs of the stage before.

    The first task returns the request, or `size` bytes, plain or as an array, for tasks that count.
    The figure is the latency beyond that of `than`.
    """

    name: str
    stages: tuple[int, ...]
    than: Ask | None = None
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


def _handed(gives: Literal["give", "array"], consumers: int, sizes: Sequence[int]) -> list[Ask]:
    to = "a consumer" if consumers == 1 else f"{consumers} consumers"
    kind, stages = " as an array" if gives == "array" else "", (1, consumers)
    byte = Ask(f"1 byte{kind} to {to}, the whole request", stages, None, gives)
    return [byte] + [
        Ask(f"{size // _MB} MB{kind} to {to}", stages, byte, gives, size) for size in sizes
    ]


_ONE = Ask("one no-op, the whole request", (1,))
NOOPS = [
    _ONE,
    Ask("a further no-op", (1, 1), _ONE),
    Ask(f"{_CHAIN} no-ops in a row, the whole request", (1,) * _CHAIN),
    Ask(f"fan-out to {_FAN} no-ops and in", (1, _FAN, 1), _ONE),
]
HAND_OVERS = [
    *_handed("give", 1, (_MB, 10 * _MB, _BIG)),
    *_handed("give", _CONSUMERS, (_BIG,)),
]
_ARRAYS = [*_handed("array", 1, (_BIG,)), *_handed("array", _CONSUMERS, (_BIG,))]
#: Library -> system -> its requests. Wraps have none with arrays: handlers return only text.
_ASKED = {
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
        Quantity(ask.name, partial(_figure_ms, system, ask), system=system)
        for library in ("", *installed)
        for system, asks in _ASKED[library].items()
        for ask in asks
    ]
    # A round has thousands of tasks, and 100 MB several times on each system.
    return Part("others", quantities, partial(_probes, installed), slower=5)


def _figure_ms(system: str, ask: Ask, taken: Round) -> float:
    less = taken[f"{system}: {ask.than.name}"] if ask.than else 0.0
    return taken[f"{system}: {ask.name}"] - less


@contextmanager
def _probes(libraries: Sequence[str], launcher: Launcher) -> Iterator[list[Probe]]:
    with ExitStack() as stack:
        found = stack.enter_context(_wraps(launcher))
        for library in libraries:
            for system in stack.enter_context(STARTED[library]()):
                for ask in _ASKED[library][system.name]:
                    found.append(partial(_timed, system.name, ask, partial(ask.on, system)))
        yield found


def _timed(system: str, ask: Ask, right: Callable[[], bool]) -> Round:
    """Return the mean of `ask.times` requests; raises ``wrong-output`` for a wrong answer."""
    start = time.perf_counter()
    for _ in range(ask.times):
        if not right():
            raise ChironError("wrong-output", f"{system} answers {ask.name} wrongly", status=500)
    return {f"{system}: {ask.name}": (time.perf_counter() - start) * 1000 / ask.times}


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
            f"chiron-evaluate-{ask.gives}",
            [_PLACED[system](*stage) for stage in enumerate(ask.stages)],
            mechanism="pool",
            memory_mib=_MEMORY_MIB,
        )
        for number, (system, ask) in enumerate(_wrapped())
    ]


def _wrapped() -> list[tuple[str, Ask]]:
    return [(system, ask) for system, asks in _ASKED[""].items() for ask in asks]


@contextmanager
def _wraps(launcher: Launcher) -> Iterator[list[Probe]]:
    with ExitStack() as stack:
        deployed = stack.enter_context(workflows(launcher, wrap_shapes(), _SOURCES))
        found: list[Probe] = []
        for (system, ask), workflow in zip(_wrapped(), deployed.values(), strict=True):
            client = stack.enter_context(closing(direct(launcher.gateway.url, workflow.entry)))
            body = (_REQUEST if ask.gives == "noop" else str(ask.size)).encode()
            right = partial(_right, client, body, workflow.expected(body))
            found.append(partial(_timed, system, ask, right))
        yield found


def _right(client: Client, body: bytes, expected: bytes) -> bool:
    return client.post(body)[0] == expected
