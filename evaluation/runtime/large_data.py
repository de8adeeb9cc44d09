"""What 10 MB cost on the way to and from threads, processes, pool workers and remote wraps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Literal, get_args

from evaluation.runtime import large_handler, noop_handler
from evaluation.runtime.client import Client
from evaluation.runtime.deployment import direct, functions, workflows
from evaluation.runtime.pipe import copying
from evaluation.runtime.report import Quantity, Round, Unit
from evaluation.runtime.rounds import Probe
from evaluation.runtime.shapes import PROCESS, REMOTE, THREAD, Shape, Sizes, shape
from generator.launcher import Launcher
from workflow.plan import Mechanism

Kind = Literal["result", "input", "body"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_LARGE, _BARE, _ECHO = "chiron-evaluate-large", "chiron-evaluate-bare", "echo"
_PLACES: dict[str, tuple[Sizes, Mechanism]] = {
    "thread": (THREAD, "fork"),
    "fork": (PROCESS, "fork"),
    "pool": (PROCESS, "pool"),
    "remote": (REMOTE, "fork"),
}
_REQUESTS = (b"?large", b"?small")
_BODY = large_handler.LARGE.encode()
_GOAL: tuple[float, Unit] = (3.0, "x")


def shapes(kind: Kind) -> list[Shape]:
    """Of ``result`` and ``input`` three tasks in a row: threads but for who makes, or takes, it.

    Of ``body`` a single task, which hands on what the request brings.
    """
    if kind == "body":
        return [shape(_ECHO, _ECHO, [THREAD])]
    found = []
    for place, (sizes, mechanism) in _PLACES.items():
        stages = (THREAD, sizes, THREAD) if kind == "result" else (THREAD, THREAD, sizes)
        found.append(shape(f"{place}-{kind}", _LARGE, stages, mechanism))
    return found


def quantities(kind: Kind) -> tuple[Quantity, ...]:
    """What is said of a kind."""
    pipe = Quantity(f"10 MB once through a pipe, beside each {kind}", lambda r: r["pipe"])
    if kind == "body":
        more = Quantity(
            "10 MB to a wrap and back: more, times one copy through a pipe",
            lambda r: (r[_ECHO] - r[_BARE]) / r["pipe"],
            *_GOAL,
        )
        return pipe, Quantity("10 MB to the bare template and back", lambda r: r[_BARE]), more
    return pipe, *(_passing(place, kind) for place in _PLACES)


def _passing(place: str, kind: Kind) -> Quantity:
    name = f"{place}-{kind}"
    return Quantity(
        f"10 MB {kind} of a {place}: times one copy through a pipe",
        lambda r: (r[f"{name}.large"] - r[f"{name}.small"]) / r["pipe"],
        *_GOAL,
    )


@contextmanager
def probes(kind: Kind, launcher: Launcher) -> Iterator[list[Probe]]:
    """Deploys what handles the data, checked once against the reference executor."""
    url = launcher.gateway.url
    sources = {_LARGE: large_handler, _ECHO: noop_handler}
    with ExitStack() as stack:

        def client(name: str) -> Client:
            return stack.enter_context(closing(Client(direct(url, name))))

        copy_ms = stack.enter_context(copying(_BODY))
        found: list[Probe] = [lambda: {"pipe": copy_ms()}]
        if kind == "body":
            stack.enter_context(functions(launcher, {_BARE: noop_handler}))
            found.append(partial(_sent, _BARE, client(_BARE)))
        for name, workflow in stack.enter_context(
            workflows(launcher, shapes(kind), sources)
        ).items():
            entry = client(workflow.entry)
            if kind == "body":
                found.append(partial(_sent, name, entry))
                continue
            entry.latency_ms(b"?whole", workflow.expected(b"?whole"))
            expected = [workflow.expected(request) for request in _REQUESTS]
            found.append(partial(_passed_on, name, entry, expected))
        yield found


def _sent(name: str, client: Client) -> Round:
    return {name: client.latency_ms(_BODY, _BODY)}


def _passed_on(name: str, client: Client, expected: list[bytes]) -> Round:
    """The same request with and without the 10 MB within it."""
    large, small = map(client.latency_ms, _REQUESTS, expected)
    return {f"{name}.large": large, f"{name}.small": small}
