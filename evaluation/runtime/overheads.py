"""What no-ops cost: the wrap itself, its threads, workers and processes, and hops between them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial

from evaluation.runtime import noop_handler, spawning_handler
from evaluation.runtime.client import Client
from evaluation.runtime.deployment import Address, behind, direct, functions, workflows
from evaluation.runtime.report import Quantity, Round
from evaluation.runtime.rounds import Probe, starts
from evaluation.runtime.shapes import PROCESS, REMOTE, THREAD, Shape, shape
from generator.launcher import Launcher

PROCESSES, THREADS, STAGES = 5, 5, 6
_NOOP = "chiron-evaluate-noop"
_SPAWNING = "chiron-evaluate-spawning"
_REQUEST = b"{}"
_PARALLEL = ((0, *[1] * PROCESSES),)


def shapes() -> list[Shape]:
    """The plans of no-ops; two of a kind differ in one size only."""
    noops = partial(shape, function=_NOOP)
    return [
        noops("one", stages=[THREAD]),
        noops("threads", stages=[((THREADS,),)]),
        noops("two", stages=[THREAD, THREAD]),
        noops("remote", stages=[THREAD, REMOTE]),
        noops("pool", stages=[PROCESS], mechanism="pool"),
        noops("pool-stages", stages=[PROCESS] * STAGES, mechanism="pool"),
        noops("pool-many", stages=[_PARALLEL], mechanism="pool"),
        noops("fork", stages=[PROCESS]),
        noops("fork-many", stages=[_PARALLEL]),
    ]


QUANTITIES = (
    Quantity("bare template, one no-op", lambda r: r["bare"]),
    Quantity("wrap, one no-op: more than bare", lambda r: r["one"] - r["bare"], 0.3),
    Quantity(f"{THREADS} no-ops as threads: more than one", lambda r: r["threads"] - r["one"], 1.0),
    Quantity(
        "pool: to a worker and back, a whole stage",
        lambda r: (r["pool-stages"] - r["pool"]) / (STAGES - 1),
        0.3,
    ),
    Quantity("fork: to the first instruction", lambda r: r["fork.first"], 4.0),
    Quantity(f"fork: the same, as the first of {PROCESSES}", lambda r: r["fork-many.first"], 4.0),
    Quantity("fork: each next", lambda r: r["fork-many.next"], 2.0),
    Quantity("multiprocessing: to the first instruction", lambda r: r["spawning.first"]),
    Quantity("multiprocessing: each next", lambda r: r["spawning.next"]),
    Quantity(f"request that forks {PROCESSES}", lambda r: r["fork-many"]),
    Quantity(f"request that uses {PROCESSES} pool workers", lambda r: r["pool-many"]),
    Quantity(f"request with {PROCESSES} multiprocessing.Process", lambda r: r["spawning"]),
    Quantity("one-to-one: the gateway's hop", lambda r: r["hop"] - r["bare"]),
    Quantity("remote wrap: more than a thread", lambda r: r["remote"] - r["two"]),
)


@contextmanager
def probes(launcher: Launcher) -> Iterator[list[Probe]]:
    """Deploys the no-ops; each probe sends one request, or two where one is traced."""
    url = launcher.gateway.url
    plain = {_NOOP: noop_handler, _SPAWNING: spawning_handler}
    with ExitStack() as stack:

        def client(address: Address) -> Client:
            return stack.enter_context(closing(Client(address)))

        stack.enter_context(functions(launcher, plain))
        found: list[Probe] = [
            partial(_latency, "bare", client(direct(url, _NOOP)), _REQUEST),
            partial(_latency, "hop", client(behind(url, _NOOP)), _REQUEST),
            partial(_spawned, client(direct(url, _SPAWNING))),
        ]
        sources = {_NOOP: noop_handler}
        for name, deployed in stack.enter_context(workflows(launcher, shapes(), sources)).items():
            entry = client(direct(url, deployed.entry))
            found.append(partial(_latency, name, entry, deployed.expected(_REQUEST)))
            if name in ("fork", "fork-many"):
                found.append(partial(_forked, name, entry, deployed.trace_key))
        yield found


def _latency(name: str, client: Client, expected: bytes) -> Round:
    return {name: client.latency_ms(_REQUEST, expected)}


def _spawned(client: Client) -> Round:
    answer, latency_ms = client.post(str(PROCESSES).encode())
    return {"spawning": latency_ms, **_starts("spawning", json.loads(answer), 0.0)}


def _forked(name: str, client: Client, trace_key: str) -> Round:
    forks = [row for row in client.timeline(_REQUEST, trace_key) if row["kind"] == "fork"]
    return _starts(name, [row["end_ms"] for row in forks], min(row["start_ms"] for row in forks))


def _starts(name: str, moments_ms: list[float], asked_ms: float) -> Mapping[str, float]:
    first, following = starts(moments_ms, asked_ms)
    return {f"{name}.first": first, f"{name}.next": following}
