"""A gateway that only remembers, and functions behind HTTP that answer as told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from chiron.openfaas.objects import FunctionSpec, FunctionStatus, LogLine
from chiron.workflow.errors import ChironError
from tests.serving import Answering, served


@dataclass
class FakeGateway:
    """Remembers what is deployed; `failing` maps "VERB NAME" to the code of the error it raises."""

    deployed: dict[str, FunctionStatus] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    secrets: set[str] = field(default_factory=set)
    printed: dict[str, list[LogLine]] = field(default_factory=dict)
    url: str = "http://fake"
    pool_options: dict[str, str] = field(default_factory=dict)

    def functions(self) -> list[FunctionStatus]:
        return list(self.deployed.values())

    def secret_names(self) -> set[str]:
        return self.secrets

    def deploy(self, spec: FunctionSpec) -> None:
        if self.failing.get(f"deploy {spec.service}") == "timeout":
            self._keep(spec)  # it took too long to say so
        self._call("deploy", spec.service)
        self._keep(spec)

    def get(self, name: str, *_: object, **__: object) -> SimpleNamespace:
        self._call("wait", name)
        return SimpleNamespace(status_code=200)

    options = get

    def logs(self, name: str, tail: int) -> list[LogLine]:
        self._call("logs", name)
        return self.printed.get(name, [])

    def remove(self, name: str) -> None:
        self._call("remove", name)
        del self.deployed[name]

    def add(self, name: str, **annotations: str) -> None:
        named = {f"chiron.{key}": value for key, value in annotations.items()}
        self.deployed[name] = FunctionStatus(name=name, annotations=named)

    def _keep(self, spec: FunctionSpec) -> None:
        self.deployed[spec.service] = FunctionStatus(
            name=spec.service, annotations=spec.annotations, env_vars=spec.env_vars
        )

    def _call(self, verb: str, name: str) -> None:
        self.calls.append(f"{verb} {name}")
        if code := self.failing.get(f"{verb} {name}"):
            raise ChironError(code, f"{verb} {name} failed", status=502)


@pytest.fixture
def fake() -> FakeGateway:
    return FakeGateway()


@dataclass
class Behind:
    """Functions behind a URL: name -> what it answers, as (status, body) of the request's body."""

    url: str
    functions: dict[str, Callable[[bytes], tuple[int, bytes]]] = field(default_factory=dict)
    calls: list[tuple[str, bytes, dict[str, str]]] = field(default_factory=list)


@pytest.fixture
def behind() -> Iterator[Behind]:
    class Handler(Answering):
        def do_POST(self) -> None:
            body, name = self.body(), self.path.removeprefix("/function/")
            made.calls.append((name, body, dict(self.headers)))
            self.answer(*made.functions[name](body))

    with served(Handler) as url:
        made = Behind(url)
        yield made
