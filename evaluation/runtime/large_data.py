"""What 10 MB cost on the way to and from threads, processes, pool workers and remote wraps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial

from evaluation.runtime import large_handler, noop_handler
from evaluation.runtime.client import Client
from evaluation.runtime.deployment import direct, functions, workflows
from evaluation.runtime.pipe import copying
from evaluation.runtime.report import Quantity, Round
from evaluation.runtime.rounds import Probe
from evaluation.runtime.shapes import PROCESS, REMOTE, THREAD, Shape, Sizes, shape
from generator.launcher import Launcher
from workflow.plan import Mechanism

_LARGE, _BARE = "chiron-evaluate-large", "chiron-evaluate-bare"
_ECHO = "chiron-evaluate-echo"
_PLACES: dict[str, tuple[Sizes, Mechanism]] = {
    "thread": (THREAD, "fork"),
    "fork": (PROCESS, "fork"),
    "pool": (PROCESS, "pool"),
    "remote": (REMOTE, "fork"),
}
_REQUESTS = (b"?large", b"?small")
_BODY = large_handler.LARGE.encode()


def shapes() -> list[Shape]:
    """Three tasks in a row, all threads of one process but the one that makes, or takes, 10 MB."""
    return [
        shape(f"{place}-{what}", _LARGE, stages, mechanism)
        for place, (sizes, mechanism) in _PLACES.items()
        for what, stages in {
            "result": (THREAD, sizes, THREAD),
            "input": (THREAD, THREAD, sizes),
        }.items()
    ]


def _quantity(place: str, what: str) -> Quantity:
    name = f"{place}-{what}"
    return Quantity(
        f"10 MB {what} of a {place}: times one copy through a pipe",
        lambda r: (r[f"{name}.large"] - r[f"{name}.small"]) / r["pipe"],
        3.0,
        "x",
    )


QUANTITIES = (
    Quantity("10 MB once through a pipe", lambda r: r["pipe"]),
    *(_quantity(place, what) for place in _PLACES for what in ("result", "input")),
    Quantity("10 MB to the bare template and back", lambda r: r["bare-10MB"]),
    Quantity(
        "10 MB to a wrap and back: more, times one copy through a pipe",
        lambda r: (r["echo"] - r["bare-10MB"]) / r["pipe"],
        3.0,
        "x",
    ),
)


@contextmanager
def probes(launcher: Launcher) -> Iterator[list[Probe]]:
    """Deploys what handles the data, checked once against the reference executor."""
    url = launcher.gateway.url
    plain, sources = {_BARE: noop_handler}, {_LARGE: large_handler, _ECHO: noop_handler}
    with ExitStack() as stack:
        copy_ms = stack.enter_context(copying(_BODY))
        stack.enter_context(functions(launcher, plain))
        echo = shape("echo", _ECHO, [THREAD])
        deployed = stack.enter_context(workflows(launcher, [echo, *shapes()], sources))
        clients = {
            name: stack.enter_context(closing(Client(direct(url, workflow.entry))))
            for name, workflow in deployed.items()
        }
        bare = stack.enter_context(closing(Client(direct(url, _BARE))))
        found: list[Probe] = [
            lambda: {"pipe": copy_ms()},
            partial(_sent, "bare-10MB", bare),
            partial(_sent, "echo", clients.pop("echo")),
        ]
        for name, client in clients.items():
            client.latency_ms(b"?whole", deployed[name].expected(b"?whole"))
            expected = [deployed[name].expected(request) for request in _REQUESTS]
            found.append(partial(_passed_on, name, client, expected))
        yield found


def _sent(name: str, client: Client) -> Round:
    return {name: client.latency_ms(_BODY, _BODY)}


def _passed_on(name: str, client: Client, expected: list[bytes]) -> Round:
    """The same request with and without the 10 MB within it."""
    large, small = map(client.latency_ms, _REQUESTS, expected)
    return {f"{name}.large": large, f"{name}.small": small}
