"""A workflow of two wraps whose second function can be made slower, and where it is deployed."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import Event as Flag
from typing import Self

import psutil
import pytest

from chiron.adaptation.blue_green import SWITCH_S
from chiron.adaptation.events import Event
from chiron.adaptation.latency import GatewayMetrics
from chiron.adaptation.rules import Rules
from chiron.adaptation.watch import Watcher
from chiron.cli.place import build_local
from chiron.deployment.caller import Caller
from chiron.deployment.deploy import Builder, remove_all
from chiron.deployment.launcher import Launcher
from chiron.gateway.embedded import EmbeddedGateway
from chiron.generator.settings import SHORTEST_TIMEOUT_S
from chiron.openfaas.client import Gateway
from chiron.pipeline.deploy import DeploymentRequest
from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.documents import write_atomically
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.profile import FunctionProfile, PayloadProfile, Period, Profile
from tests.imitated import ImitatedGateway

ENTRY = "pair-wrap1"
#: Answers that the load waits for, however busy the machine is.
_BOUND_S = 60
#: Between an answer and the next call of a client: computing without a pause is for load tests.
_PAUSE_S = 0.03
_FIRST = 'def handle(req):\n    return "first " + req\n'
_LATER = """\
import time


def handle(req):
    with open({knob!r}) as knob:
        time.sleep(float(knob.read()))
    return "{name} " + req
"""


@dataclass(frozen=True)
class Knob:
    """How long the second function waits; anybody may read it, whoever runs the function."""

    file: Path

    def turn(self, seconds: float) -> None:
        write_atomically(self.file, str(seconds))

    @property
    def seconds(self) -> float:
        return float(self.file.read_text())


@pytest.fixture
def knob() -> Iterator[Knob]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        made = Knob(Path(folder) / "seconds")
        made.turn(0.0)
        yield made


@pytest.fixture
def later() -> tuple[str, ...]:
    """The functions that follow the first one, each in a wrap of its own."""
    return ("second",)


@pytest.fixture
def pair(write_folder, knob, later, tmp_path) -> WorkflowFolder:
    """Functions in sequence, kept in a wrap each."""
    names = ("first", *later)
    edges = [list(edge) for edge in pairwise(names)]
    functions = {name: _LATER.format(knob=str(knob.file), name=name) for name in later}
    folder = write_folder(
        tmp_path / "pair",
        {"tasks": {name: name for name in names}, "edges": edges},
        {"first": _FIRST, **functions},
        {},
    )
    constraints = {"format": 1, "isolate": dict.fromkeys(later, "wrap")}
    (folder.path / "constraints.json").write_text(json.dumps(constraints))
    return folder


@pytest.fixture
def profile_by_hand(knob, later, pair) -> Callable[[], Profile]:
    """What a profile would say of the workflow's functions, as the knob stands."""

    def waits(milliseconds: float) -> FunctionProfile:
        period = Period(kind="block", start_ms=0.0, duration_ms=milliseconds)
        return FunctionProfile(latency_ms=milliseconds, periods=(period,), memory_mib=2.0)

    def make() -> Profile:
        functions = {"first": waits(1.0)} | dict.fromkeys(later, waits(1000 * knob.seconds))
        payload = pair.payloads()[0].content
        said = " ".join([*reversed(later), "first", payload.decode()])
        answer = ExpectedAnswer.learned(payload, [said])
        asked = (PayloadProfile(name="payload.json", answer=answer),)
        return Profile(format=1, workflow="pair", functions=functions, payloads=asked)

    return make


@pytest.fixture
def gateway(launcher) -> Gateway:
    return launcher.gateway


@pytest.fixture(scope="session")
def strict(home) -> Iterator[tuple[EmbeddedGateway, Gateway]]:
    """A gateway that ends a function before it starts it anew, and starts none that has ended."""
    with (
        ImitatedGateway("faasd", 10.0) as embedded,
        Gateway(embedded.url) as client,
    ):
        yield embedded, client


@pytest.fixture
def build() -> Builder:
    """What builds the wraps that a watcher deploys."""
    return build_local


@pytest.fixture
def kill(strict) -> Callable[[str], None]:
    """Ends what runs as a function, as a memory limit does."""
    embedded, client = strict

    def kill(name: str) -> None:
        below = psutil.Process(embedded.pid).children(recursive=True)
        (server, *_) = [
            process
            for process in below
            if process.environ().get("OPENFAAS_NAME") == name and "index.py" in process.cmdline()
        ]
        os.kill(server.pid, signal.SIGKILL)
        end = time.monotonic() + _BOUND_S
        while client.describe(name).replicas:
            assert time.monotonic() < end
            time.sleep(0.02)

    return kill


class Load:
    """Clients that call the entry for the length of a block; what each was answered."""

    def __init__(self, url: str, clients: int = 4) -> None:
        self._url = url
        self._done = Flag()
        self._threads = ThreadPoolExecutor(clients)
        self._answers: list[list[tuple[int, str]]] = [[] for _ in range(clients)]
        self._calls: list[Future[None]] = []

    @property
    def answers(self) -> set[tuple[int, str]]:
        """The different answers."""
        return {answer for client in self._answers for answer in client}

    def __enter__(self) -> Self:
        self._calls = [self._threads.submit(self._call, answers) for answers in self._answers]
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._threads.shutdown()
        for call in self._calls:
            call.result()

    def await_each(self, count: int = 2) -> None:
        """Return when each client has so many more answers: none of before is on its way then."""
        wanted = [len(answers) + count for answers in self._answers]
        end = time.monotonic() + _BOUND_S
        while any(len(a) < w for a, w in zip(self._answers, wanted, strict=True)):
            assert time.monotonic() < end, "the load does not go on"
            time.sleep(0.02)

    def _call(self, answers: list[tuple[int, str]]) -> None:
        with Caller(self._url) as caller:
            while not self._done.wait(_PAUSE_S):
                reply = caller.call(ENTRY, b"x")
                answers.append((reply.status, reply.body.decode()))


@dataclass
class Place:
    """The gateway, and what the watchers on it told."""

    gateway: Gateway
    events: list[Event] = field(default_factory=list)
    drains: list[float] = field(default_factory=list)
    load: Load | None = None
    patient: bool = False

    def wait(self, seconds: float) -> None:
        """Let time pass; unless patient, drain no longer than what the load has begun takes."""
        draining = seconds >= SHORTEST_TIMEOUT_S
        if draining:
            self.drains.append(seconds)
        if self.patient or not draining:
            time.sleep(seconds)
            return
        if self.load:
            self.load.await_each()

    def kinds(self) -> list[str]:
        """The kinds of the events, but for steps and windows."""
        return [e.kind for e in self.events if e.kind not in ("step", "window")]

    def names(self) -> set[str]:
        return {function.name for function in self.gateway.functions()}

    def answer(self) -> str:
        return self.gateway.invoke(ENTRY, b"x").text


@pytest.fixture
def place(gateway) -> Iterator[Place]:
    made = Place(gateway)
    yield made
    remove_all(gateway, [function.name for function in gateway.functions()])


@pytest.fixture
def watcher(place, pair, platform, profile_by_hand, build, tmp_path) -> Callable[..., Watcher]:
    """A watcher of the workflow."""

    def make(
        build=build, profile=profile_by_hand, switch_s=SWITCH_S, slo_ms=5000.0, **rules
    ) -> Watcher:
        chosen = Rules(**({"window_s": 0.3, "windows": 2, "fewest": 1} | rules))
        return Watcher(
            request=DeploymentRequest(pair, slo_ms=slo_ms, platform=platform),
            launcher=Launcher(place.gateway, build),
            latencies=GatewayMetrics(place.gateway, f"{place.gateway.url}/metrics", place.wait),
            profile=profile,
            rules=chosen,
            wait=place.wait,
            tell=place.events.append,
            out=tmp_path / "out",
            switch_s=switch_s,
        )

    return make


@pytest.fixture
def load(place) -> Load:
    """Four clients, for the length of a ``with`` block."""
    place.load = Load(place.gateway.url)
    return place.load


@pytest.fixture
def one_client(place) -> Load:
    """A client, for the length of a ``with`` block."""
    return Load(place.gateway.url, clients=1)
