"""The overhead of the wrap runtime: no-ops in several plans, triggers, emitted outputs, spans."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import IO, cast

from chiron.deployment.launcher import Launcher
from chiron.evaluation.runtime import data_passing
from chiron.evaluation.runtime.deployed import (
    PROCESS,
    REMOTE,
    THREAD,
    Client,
    Shape,
    Sizes,
    behind,
    direct,
    functions,
    map_shape,
    shape,
    workflows,
)
from chiron.evaluation.runtime.handlers import emitting, noop, spawning
from chiron.evaluation.runtime.pairs import await_byte, tcp_pair
from chiron.evaluation.runtime.rounds import (
    Figure,
    Part,
    Probe,
    Quantity,
    Round,
    interleaved,
    starts,
)

ROUNDS, QUICK_ROUNDS = 500, 50
PROCESSES, THREADS, STAGES = 5, 5, 6
_NOOP = "chiron-evaluate-noop"
_SPAWNING = "chiron-evaluate-spawning"
_REQUEST = b"{}"
_PARALLEL = ((0, *[1] * PROCESSES),)


def noop_shapes() -> list[Shape]:
    """Return plans of no-ops; two plans of a kind differ in one size only."""
    noops = partial(shape, function=_NOOP)
    return [
        noops("one", stages=[THREAD]),
        noops("threads", stages=[((THREADS,),)]),
        noops("two", stages=[THREAD, THREAD]),
        noops("direct", stages=[THREAD, REMOTE]),
        noops("by-gateway", stages=[THREAD, REMOTE], path="gateway"),
        noops("pool", stages=[PROCESS], mechanism="pool"),
        noops("pool-stages", stages=[PROCESS] * STAGES, mechanism="pool"),
        noops("pool-many", stages=[_PARALLEL], mechanism="pool"),
        noops("fork", stages=[PROCESS]),
        noops("fork-many", stages=[_PARALLEL]),
    ]


_NOOP_QUANTITIES = (
    Quantity("bare template, one no-op", lambda r: r["bare"]),
    Quantity("wrap, one no-op: more than bare", lambda r: r["one"] - r["bare"]),
    Quantity(f"{THREADS} no-ops as threads: more than one", lambda r: r["threads"] - r["one"]),
    Quantity(
        "pool: to a worker and back, a whole stage",
        lambda r: (r["pool-stages"] - r["pool"]) / (STAGES - 1),
    ),
    Quantity("fork: to the first instruction", lambda r: r["fork.first"]),
    Quantity(f"fork: the same, as the first of {PROCESSES}", lambda r: r["fork-many.first"]),
    Quantity("fork: each next", lambda r: r["fork-many.next"]),
    Quantity("multiprocessing: to the first instruction", lambda r: r["spawning.first"]),
    Quantity("multiprocessing: each next", lambda r: r["spawning.next"]),
    Quantity(f"request that forks {PROCESSES}", lambda r: r["fork-many"]),
    Quantity(f"request that uses {PROCESSES} pool workers", lambda r: r["pool-many"]),
    Quantity(f"request with {PROCESSES} multiprocessing.Process", lambda r: r["spawning"]),
    Quantity("one-to-one: the gateway's hop", lambda r: r["hop"] - r["bare"]),
    Quantity("TCP: to another process and back", lambda r: r["echo"]),
    Quantity("another wrap, directly: more than a thread", lambda r: r["direct"] - r["two"]),
    Quantity(
        "another wrap, through the gateway: more than a thread",
        lambda r: r["by-gateway"] - r["two"],
    ),
)


@contextmanager
def _noop_probes(launcher: Launcher) -> Iterator[list[Probe]]:
    """Deploy the no-ops and yield their probes; the forks have a second probe, which is traced."""
    url = launcher.gateway.url
    with ExitStack() as stack:

        def opened(client: Client) -> Client:
            return stack.enter_context(closing(client))

        stack.enter_context(functions(launcher, {_NOOP: noop, _SPAWNING: spawning}))
        echo_ms = stack.enter_context(echoing(*tcp_pair()))
        found: list[Probe] = [
            lambda: {"echo": echo_ms()},
            partial(_latency, "bare", opened(direct(url, _NOOP)), _REQUEST),
            partial(_latency, "hop", opened(behind(url, _NOOP)), _REQUEST),
            partial(_spawned, opened(direct(url, _SPAWNING))),
        ]
        wraps = stack.enter_context(workflows(launcher, noop_shapes(), {_NOOP: noop}))
        for name, deployed in wraps.items():
            entry = opened(direct(url, deployed.entry))
            found.append(partial(_latency, name, entry, deployed.expected(_REQUEST)))
            if name in ("fork", "fork-many"):
                found.append(partial(_forked, name, entry, deployed.trace_key))
        yield found


def _latency(name: str, client: Client, expected: bytes, request: bytes = _REQUEST) -> Round:
    return {name: client.latency_ms(request, expected)}


def _spawned(client: Client) -> Round:
    answer, latency_ms = client.post(str(PROCESSES).encode())
    first, following = starts(json.loads(answer))
    return {"spawning": latency_ms, "spawning.first": first, "spawning.next": following}


def _forked(name: str, client: Client, trace_key: str) -> Round:
    forks = client.traced(_REQUEST, trace_key)[0].timeline.of_kind("start")
    asked_ms = min(fork.start_ms for fork in forks)
    first, following = starts([fork.end_ms for fork in forks], asked_ms)
    return {f"{name}.first": first, f"{name}.next": following}


# Tasks that start when other tasks end, beside the round trip of a byte to another process

CHAIN, FAN, WORKERS = 1000, 16, 4
ITEMS, SPREAD = 1000, 2
#: Echoes every byte on the socket whose file descriptor is the argument.
_ECHO = """
import socket, sys
other = socket.socket(fileno=int(sys.argv[1]))
while byte := other.recv(1):
    other.send(byte)
"""
_ECHOES = 100


def trigger_shapes() -> list[Shape]:
    """Return chains of no-ops, and no-ops that fan out and in."""
    noops = partial(shape, function=_NOOP)
    fan, pool = (FAN,), (FAN // WORKERS,) * WORKERS
    return [
        noops("one", stages=[THREAD]),
        noops("chain", stages=[THREAD] * CHAIN),
        noops("in-turn", stages=[THREAD, PROCESS] * (CHAIN // 2), mechanism="pool"),
        noops("threads", stages=[THREAD, (fan,), THREAD]),
        noops("workers", stages=[THREAD, (pool,), THREAD], mechanism="pool"),
        map_shape("map", _NOOP, SPREAD, mechanism="pool"),
    ]


def _further_us(name: str) -> Callable[[Round], float]:
    return lambda r: (r[name] - r["one"]) / (CHAIN - 1) * 1000


_TRIGGER_QUANTITIES = (
    Quantity("socketpair: to another process and back", lambda r: r["echo"] * 1000, unit="us"),
    Quantity("a further task in the process of the one before", _further_us("chain"), unit="us"),
    Quantity("a further task in another process (pool)", _further_us("in-turn"), unit="us"),
    Quantity(f"request of {CHAIN} no-ops, one process", lambda r: r["chain"]),
    Quantity(f"request of {CHAIN} no-ops, two processes in turn", lambda r: r["in-turn"]),
    Quantity(f"fan-out to {FAN} threads and in: more than one", lambda r: r["threads"] - r["one"]),
    Quantity(
        f"fan-out to {FAN} on {WORKERS} processes and in: more than one",
        lambda r: r["workers"] - r["one"],
    ),
    Quantity(f"request of a Map of {ITEMS} no-ops, {SPREAD} processes (pool)", lambda r: r["map"]),
)


@contextmanager
def _trigger_probes(launcher: Launcher) -> Iterator[list[Probe]]:
    with ExitStack() as stack:
        echo_ms = stack.enter_context(echoing(*socket.socketpair()))
        found: list[Probe] = [lambda: {"echo": echo_ms()}]
        wraps = stack.enter_context(workflows(launcher, trigger_shapes(), {_NOOP: noop}))
        items = json.dumps(list(range(ITEMS))).encode()
        for name, deployed in wraps.items():
            entry = stack.enter_context(closing(direct(launcher.gateway.url, deployed.entry)))
            request = items if name == "map" else _REQUEST
            found.append(partial(_latency, name, entry, deployed.expected(request), request))
        yield found


# Tasks that start at an emitted output, while its producer still runs

_EMITTING = "chiron-evaluate-emitting"
_TAKERS: dict[str, tuple[Sizes, str]] = {
    "thread": (((2,),), "fork"),
    "pool": (((0, 1, 1),), "pool"),
}


def emitting_shapes() -> list[Shape]:
    """Return plans of a producer, a consumer of its emitted output and one of its final output."""

    def taking(name: str, sizes: Sizes, mechanism: str) -> Shape:
        whole = shape(name, _EMITTING, [THREAD, sizes], mechanism)
        first, second, third = whole.workflow.tasks
        tasks = (first, replace(second, source=f"{first.name}#early"), third)
        output = tuple(task.name for task in tasks)
        return whole._replace(workflow=replace(whole.workflow, tasks=tasks, output=output))

    return [taking(f"emitting-{name}", *how) for name, how in _TAKERS.items()]


def _emitting_quantities(place: str) -> list[Quantity]:
    return [
        *(_taking(place, moment) for moment in ("emitting", "ending")),
        Quantity(f"begin before the producer's end, {place}", lambda r: r[f"{place}.before"]),
    ]


def _taking(place: str, moment: str) -> Quantity:
    return Quantity(
        f"from a producer's {moment} to its consumer's begin, {place}",
        lambda r: r[f"{place}.{moment}"],
    )


@contextmanager
def _emitting_probes(launcher: Launcher) -> Iterator[list[Probe]]:
    sources = {_EMITTING: emitting}
    with (
        workflows(launcher, emitting_shapes(), sources) as deployed,
        ExitStack() as stack,
    ):
        found = list[Probe]()
        for name, workflow in deployed.items():
            entry = stack.enter_context(closing(direct(launcher.gateway.url, workflow.entry)))
            found.append(partial(_emitted, name.removeprefix("emitting-"), entry))
        yield found


def _emitted(place: str, client: Client) -> Round:
    """Return delays by the functions' own clock readings: tracing would add to them."""
    ended, (emitted, begun), (given, begun_at_end) = json.loads(client.post(_REQUEST)[0])
    return {
        f"{place}.emitting": (begun - emitted) * 1000,
        f"{place}.ending": (begun_at_end - given) * 1000,
        f"{place}.before": (ended - begun) * 1000,
    }


@contextmanager
def echoing(ours: socket.socket, theirs: socket.socket) -> Iterator[Callable[[], float]]:
    """Yield a function that measures a byte's round trip to another process, in milliseconds."""
    command = [sys.executable, "-c", _ECHO, str(theirs.fileno())]

    def echo_ms() -> float:
        start = time.perf_counter()
        for _ in range(_ECHOES):
            ours.send(b"?")
            await_byte(ours)
        return (time.perf_counter() - start) * 1000 / _ECHOES

    with subprocess.Popen(command, pass_fds=[theirs.fileno()]), ours:
        theirs.close()
        echo_ms()
        yield echo_ms


# Spans of every request, for a collector

_TOLD, _SILENT, _LONG = "told", "silent", 100
#: Accepts every POST, and prints its port.
_COLLECTOR = """
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def span_shapes(how: str) -> list[Shape]:
    """Return plans of one no-op, a chain, pool workers and two wraps; names begin with `how`."""
    noops = partial(shape, function=_NOOP, mechanism="pool")
    return [
        noops(f"{how}-one", stages=[THREAD]),
        noops(f"{how}-chain", stages=[THREAD] * _LONG),
        noops(f"{how}-pool-many", stages=[_PARALLEL]),
        noops(f"{how}-direct", stages=[THREAD, REMOTE]),
    ]


def _telling(name: str) -> Callable[[Round], float]:
    return lambda r: r[f"{_TOLD}-{name}"] - r[f"{_SILENT}-{name}"]


_SPAN_QUANTITIES = (
    Quantity("one no-op: more with spans", _telling("one")),
    Quantity(f"{_LONG} no-ops in a row: more with spans", _telling("chain")),
    Quantity(f"{PROCESSES} pool workers: more with spans", _telling("pool-many")),
    Quantity("another wrap, directly: more with spans", _telling("direct")),
)


@contextmanager
def _span_probes(launcher: Launcher) -> Iterator[list[Probe]]:
    """Deploy all plans twice: with a collector in their environment, and without."""
    command = [sys.executable, "-c", _COLLECTOR]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as collector,
        ExitStack() as stack,
    ):
        stack.callback(collector.kill)
        port = int(cast(IO[str], collector.stdout).readline())
        variables = {_TOLD: {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"}}
        found = list[Probe]()
        for how in (_TOLD, _SILENT):
            its = workflows(launcher, span_shapes(how), {_NOOP: noop}, variables.get(how, {}))
            for name, deployed in stack.enter_context(its).items():
                entry = stack.enter_context(closing(direct(launcher.gateway.url, deployed.entry)))
                found.append(partial(_latency, name, entry, deployed.expected(_REQUEST)))
        yield found


PARTS = (
    Part("no-ops", _NOOP_QUANTITIES, _noop_probes),
    Part("triggers", _TRIGGER_QUANTITIES, _trigger_probes),
    Part("emits", [*chain(*map(_emitting_quantities, _TAKERS))], _emitting_probes),
    Part("spans", _SPAN_QUANTITIES, _span_probes),
    *data_passing.PARTS,
)


def measure_runtime(
    launcher: Launcher, rounds: int, progress: Callable[[str], None], parts: Sequence[Part]
) -> tuple[Figure, ...]:
    """Return the figures of `parts`, of `rounds` rounds each (at least two), fewer of slower parts.

    Requests bypass the embedded gateway of `launcher` and go straight to its processes. Only the
    figures about the gateway's hop include that hop.

    Raises ``wrong-output`` if an answer differs from the reference executor's. Raises ``not-local``
    if the gateway's functions are not processes of this machine.
    """
    found: list[Figure] = []
    for part in parts:
        progress(f"deploying {part.name}")
        with part.probes(launcher) as probes:
            count = max(2, rounds // part.slower)
            progress(f"{part.name}: {count} rounds of {len(probes)} measurements in turn")
            taken = interleaved(probes, count)
            found += [quantity.figure(taken) for quantity in part.quantities]
    return tuple(found)
