"""Loads benchmark functions as OpenFaaS does, each in a namespace of its own, and serves them."""

import importlib
import itertools
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml

from chiron.workflow.execute import execute
from chiron.workflow.flowing import Gave, run_buckets
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.model import Source
from tests.serving import Answering, served

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NAMESPACES = itertools.count()
STORES = ["social-network", "movie-review"]


def load(folder: Path, module: str = "handler") -> ModuleType:
    """Import `module` of a function's folder below a package that no other load shares."""
    package = ModuleType(f"benchmark_function_{next(NAMESPACES)}")
    package.__path__ = [str(folder)]
    sys.modules[package.__name__] = package
    return importlib.import_module(f"{package.__name__}.{module}")


def call(folder: Path, text: str) -> str:
    """Return what the function of `folder` answers to the body `text`, in either handler style."""
    handle = load(folder).handle
    if handle.__code__.co_argcount == 1:
        answer: str = handle(text)
        return answer
    response = handle(SimpleNamespace(body=text.encode()), SimpleNamespace(hostname="test"))
    assert response["statusCode"] == 200
    body: str = response["body"]
    return body


def run(folder: Path, text: str) -> str:
    """Return what the workflow of `folder` answers, its tasks run one after the other."""
    workflow = WorkflowFolder.open(folder).workflow
    stack = yaml.safe_load((folder / "stack.yaml").read_text())

    def answer(function: str, given: str) -> str:
        entry = stack["functions"][function]
        if entry["lang"] == "command":
            words = shlex.split(entry["fprocess"])
            place = folder / entry["handler"]
            return subprocess.check_output(words, input=given, cwd=place, text=True)
        return call(folder / entry["handler"], given)

    if workflow.machine is not None:
        output = execute(workflow, text.encode(), answer).output
        assert output is not None
        return output
    if workflow.buckets is not None:
        return run_buckets(workflow, text.encode(), partial(_gave, answer)).output
    outputs: dict[str, str] = {}

    def read(source: Source) -> str:
        if isinstance(source, tuple):
            return "[" + ",".join(outputs[name] for name in source) + "]"
        return text if source is None else outputs[source]

    for name in itertools.chain.from_iterable(workflow.stages):
        outputs[name] = answer(workflow.function_of(name), read(workflow.by_name[name].source))
    return read(workflow.output)


def _gave(answer: Callable[[str, str], str], function: str, given: str) -> Gave:
    """What a function answers, and emits by `chiron_io`, which is there for that long."""
    emitted = list[tuple[str, str | None, str]]()

    def emit(name: str, value: str, group: str | None = None) -> None:
        emitted.append((name, group, value))

    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "chiron_io", SimpleNamespace(emit=emit))
        return Gave(answer(function, given), emitted)


@contextmanager
def serve(handle: Callable[[str], str]) -> Iterator[str]:
    """Serve a handler on a free port of the loopback and yield its URL."""

    class Requests(Answering):
        def do_POST(self) -> None:
            text = self.body().decode()
            try:
                self.answer(200, handle(text).encode())
            except ValueError as error:
                self.answer(500, str(error).encode())

    with served(Requests) as url:
        yield url


@pytest.fixture
def functions() -> SimpleNamespace:
    """The helpers `load`, `call`, `run` and `serve` of this file."""
    return SimpleNamespace(load=load, call=call, run=run, serve=serve)


@pytest.fixture
def benchmarks() -> Path:
    """The folder with one folder a workflow."""
    return BENCHMARKS


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve finra-quotes and slapp-peer, without their delay, where the functions look for them."""
    monkeypatch.setenv("QUOTES_DELAY_MS", "0")
    monkeypatch.setenv("PEER_DELAY_MS", "0")
    quotes = load(BENCHMARKS / "finra" / "functions" / "finra-quotes")
    peer = load(BENCHMARKS / "slapp" / "functions" / "slapp-peer")
    with serve(quotes.handle) as quotes_url, serve(peer.handle) as peer_url:
        monkeypatch.setenv("QUOTES_URL", quotes_url)
        monkeypatch.setenv("PEER_URL", peer_url)
        yield


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Redis with the data sets of all benchmarks, for the length of the tests."""
    pytest.importorskip("redis", reason="redis-py is missing: pip install redis==5.2.1")
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is missing: apt-get install redis-server")
    server = load(BENCHMARKS / "social-network" / "store", "server")
    with tempfile.TemporaryDirectory() as folder:
        process, port = server.start(folder)
        try:
            url = f"redis://127.0.0.1:{port}/0"
            for name in STORES:
                data = load(BENCHMARKS / name, "dataset")
                server.fill(url, data.PREFIX, data.VERSION, data.commands)
            yield url
        finally:
            process.kill()
            process.wait()


@pytest.fixture(autouse=True)
def _programs_if_marked(request: pytest.FixtureRequest) -> None:
    """Skip tests marked `ffmpeg` where a program is missing."""
    if request.node.get_closest_marker("ffmpeg"):
        missing = [name for name in ("ffmpeg", "jq") if shutil.which(name) is None]
        if missing:
            pytest.skip(f"missing: apt-get install {' '.join(missing)}")


@pytest.fixture(autouse=True)
def _store_if_marked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the functions of tests marked `redis` use `redis_url`."""
    if request.node.get_closest_marker("redis"):
        monkeypatch.setenv("REDIS_URL", request.getfixturevalue("redis_url"))
