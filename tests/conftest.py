"""Workflows from a few lines, profiles and a platform made by hand, and a gateway to deploy on."""

from __future__ import annotations

import compileall
import gc
import json
import os
import shutil
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, settings

from chiron.cli.place import build_local
from chiron.deployment.launcher import Launcher
from chiron.gateway.embedded import EmbeddedGateway
from chiron.openfaas.client import Gateway
from chiron.predictor.compiling import kernel
from chiron.profiler.function_profile import mixed
from chiron.profiler.tracer import require_tracing
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.templates import TEMPLATES
from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Emission, FunctionProfile, PayloadProfile, Period, Profile
from chiron.workflow.trace import Instance
from tests.collector import Collector, collecting
from tests.stores import STORES, RunningStore

sys.path.append(str(Path(__file__).parent / "workflow"))  # for the random state machines

MakeFolder = Callable[..., WorkflowFolder]

#: Equal examples in every run, however slow the machine is; --hypothesis-profile=new looks for
#: others, more of them, and prints the line that brings back one that fails.
EXAMPLES = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("repeatable", EXAMPLES)
settings.register_profile("new", EXAMPLES, max_examples=80, derandomize=False, print_blob=True)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Compile the simulation and the wrap's template once, and hear signals.

    Workers that begin together would all compile the simulation, and each copy of the template its
    modules. Signals are ignored in the background of a
    shell, or after nohup; so they would be by what tests start, and the commands that tests
    interrupt would not end. Nothing is garbage while tests are collected.
    """
    gc.disable()
    if not hasattr(config, "workerinput"):
        kernel()
        compileall.compile_dir(TEMPLATES, quiet=2)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to a soak what is more than ``each_once`` asks for."""
    combinations: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("each_once"):
            combinations.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for of_one_test in combinations.values():
        for item in more_than_each_once(of_one_test):
            item.add_marker("soak")


def pytest_collection_finish() -> None:
    """Look no more for garbage in what is there, which are all tests: that takes a second each."""
    gc.freeze()
    gc.enable()


def more_than_each_once(combinations: list[pytest.Function]) -> list[pytest.Function]:
    """What is left when each value of each parameter is chosen once, and evenly with others."""
    left, uses = list(combinations), Counter[tuple[str, int]]()

    def values(item: pytest.Function) -> list[tuple[str, int]]:
        return [(name, id(value)) for name, value in item.callspec.params.items()]

    def worth(item: pytest.Function) -> tuple[int, int]:
        return sum(not uses[value] for value in values(item)), -sum(uses[v] for v in values(item))

    while left and worth(best := max(left, key=worth))[0]:
        uses.update(values(best))
        left.remove(best)
    return left


#: How its functions answer shows the input, the order and the handler style of every task.
SMALL_FUNCTIONS = {
    "split": 'def handle(req):\n    return \'{ "split" :\' + (req or "null") + "  }"\n',
    "wave": (
        "import util\n\n\ndef handle(req):\n"
        '    if "boom" in req[:40]:\n        raise ValueError("no waves today")\n'
        "    return util.wave(req)\n"
    ),
    "mirror": (
        "import util\n\n\ndef handle(event, context):\n    return util.mirror(event.body)\n"
    ),
    "join": 'def handle(req):\n    return "joined " + req\n',
}
SMALL_MODULES = {
    "wave": {"util.py": 'def wave(text):\n    return f"~~ {len(text)} \\u00e9 ~~"\n'},
    "mirror": {"util.py": "def mirror(body):\n    return body\n"},
}


def task(function: str, following: str | None = None) -> dict[str, Any]:
    """A Task state."""
    end: dict[str, Any] = {"Next": following} if following else {"End": True}
    return {"Type": "Task", "Resource": function} | end


#: One task, two branches of two tasks each, of which two use one function, and one task.
SMALL_WORKFLOW = {
    "Name": "small",
    "StartAt": "Split it",
    "States": {
        "Split it": task("split", "Both"),
        "Both": {
            "Type": "Parallel",
            "Branches": [
                {"StartAt": "Wave", "States": {"Wave": task("wave", "M1"), "M1": task("mirror")}},
                {"StartAt": "M2", "States": {"M2": task("mirror", "M3"), "M3": task("mirror")}},
            ],
            "Next": "Zusammen/fügen? {50 %}",
        },
        "Zusammen/fügen? {50 %}": task("join"),
    },
}


@pytest.fixture(scope="session")
def write_folder() -> MakeFolder:
    """Writes a workflow folder and opens it.

    `functions` maps a function's name to the text of its handler.py, `modules` to further files,
    and `fields` to what its entry of stack.yaml has besides lang, handler and image.
    """

    def write(
        path: Path,
        workflow: Mapping[str, Any] = SMALL_WORKFLOW,
        functions: Mapping[str, str] = SMALL_FUNCTIONS,
        modules: Mapping[str, Mapping[str, str]] = SMALL_MODULES,
        fields: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> WorkflowFolder:
        entries = {}
        for name, code in functions.items():
            folder = path / "functions" / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "handler.py").write_text(code)
            for file, text in modules.get(name, {}).items():
                (folder / file).write_text(text)
            entries[name] = {
                "lang": "python3-http" if "event, context" in code else "python3-flask",
                "handler": f"./functions/{name}",
                "image": f"{name}:latest",
            } | dict((fields or {}).get(name, {}))
        stack = {"version": "1.0", "provider": {"name": "openfaas"}, "functions": entries}
        (path / "stack.yaml").write_text(json.dumps(stack))  # JSON is YAML
        (path / "workflow.json").write_text(json.dumps(workflow))
        (path / "payload.json").write_text('{"answer": 4.20}')
        return WorkflowFolder.open(path)

    return write


@pytest.fixture
def small(write_folder: MakeFolder, tmp_path: Path) -> WorkflowFolder:
    """A small workflow that has every shape: chains, branches, one function in two tasks."""
    return write_folder(tmp_path / "small")


@pytest.fixture(scope="session")
def profile_of() -> Callable[[Workflow], Profile]:
    """A profile in which every function computes for 1 ms and waits for 3 ms."""

    def make(workflow: Workflow) -> Profile:
        periods = (
            Period(kind="cpu", start_ms=0.0, duration_ms=1.0),
            Period(kind="block", start_ms=1.0, duration_ms=3.0),
        )
        function = FunctionProfile(latency_ms=4.0, periods=periods, memory_mib=2.0)
        payloads: tuple[PayloadProfile, ...] = ()
        if workflow.machine is not None:  # each task once, one after another
            before = [(), *((place,) for place in range(len(workflow.tasks) - 1))]
            tasks = zip(workflow.tasks, before, strict=True)
            trace = tuple(Instance(task=task.name, after=after) for task, after in tasks)
            answer = ExpectedAnswer.learned(b"{}", ["{}"])
            payloads = (PayloadProfile(name="payload.json", answer=answer, trace=trace),)
        functions = {
            name: function.model_copy(
                update={
                    "emits": {
                        output: Emission(after=0.5, bytes=10)
                        for output in workflow.emits.get(name, ())
                    }
                }
            )
            for name in workflow.functions
        }
        return Profile(format=1, workflow=workflow.name, functions=functions, payloads=payloads)

    return make


@pytest.fixture(scope="session")
def of_payloads() -> Callable[..., Profile]:
    """A mix of payloads, each with its weight and its own profile: ``of_payloads(a=(3.0, p))``."""

    def of_payloads(**payloads: tuple[float, Profile]) -> Profile:
        weights = [weight for weight, _ in payloads.values()]
        known = tuple(
            PayloadProfile(
                name=name,
                weight=weight,
                answer=ExpectedAnswer.learned(name.encode(), ["{}"]),
                functions=own.functions,
            )
            for name, (weight, own) in payloads.items()
        )
        mix = {
            name: mixed([own.functions[name] for _, own in payloads.values()], weights)
            for name in known[0].functions
        }
        return Profile(format=1, workflow="demo", functions=mix, payloads=known)

    return of_payloads


@pytest.fixture(scope="session")
def platform() -> Platform:
    """A platform of plausible costs."""
    return Platform(
        format=1,
        name="by-hand",
        cpus=2,
        request_ms=2.0,
        rpc_ms=2.0,
        invoke_ms=0.5,
        ipc_ms=0.1,
        process_startup_ms=1.0,
        process_block_ms=0.5,
        pool_dispatch_ms=0.2,
        thread_startup_ms=0.05,
        switch_cost_ms=0.01,
    )


@pytest.fixture(scope="session")
def wait_until() -> Callable[..., Any]:
    """Wait until a condition holds, as it soon does unless something is broken; what it gave."""

    def wait(condition: Callable[[], Any], bound_s: float = 180.0) -> Any:
        end = time.monotonic() + bound_s
        while not (value := condition()):
            assert time.monotonic() < end, "the condition never held"
            time.sleep(0.02)
        return value

    return wait


@pytest.fixture(scope="session")
def all_gone() -> Callable[..., set[psutil.Process]]:
    """Waits for processes to end and to be reaped, if that is to be; returns those that did not."""

    def runs(process: psutil.Process, reaped: bool) -> bool:
        try:
            return process.is_running() and (reaped or process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    def wait(processes: set[psutil.Process], reaped: bool = True) -> set[psutil.Process]:
        end = time.monotonic() + 180
        while (left := {p for p in processes if runs(p, reaped)}) and time.monotonic() < end:
            time.sleep(0.05)
        return left

    return wait


@pytest.fixture
def without_template(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What is generated lacks the wrap's template, whose files take long to copy."""
    templates = tmp_path_factory.mktemp("templates")
    (templates / "python3-wrap").mkdir()
    monkeypatch.setattr("chiron.generator.generate.TEMPLATES", templates)


@pytest.fixture
def free_port() -> int:
    """A port of the loopback that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture(scope="session")
def strace() -> str:
    """The path of strace, where this machine has it and allows tracing."""
    try:
        return require_tracing(os.environ)
    except ChironError as error:
        pytest.skip(error.message)


@pytest.fixture
def faas_cli() -> str:
    """The path of faas-cli, on PATH or beside this Python; skips the test where there is none."""
    beside = Path(sys.executable).parent / "faas-cli"
    found = shutil.which("faas-cli") or (str(beside) if beside.exists() else None)
    if found is None:
        pytest.skip("no faas-cli: run installation/faas-cli/install.sh, or put one on PATH")
    return found


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A CHIRON_HOME of the tests' own."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHIRON_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def embedded(home: Path) -> Iterator[EmbeddedGateway]:
    """A gateway without any Redis, which the tests share: each removes what it deploys."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("REDIS_URL", raising=False)
        with EmbeddedGateway() as embedded:
            yield embedded


@pytest.fixture(scope="session")
def launcher(embedded: EmbeddedGateway) -> Iterator[Launcher]:
    """Deploys plans on the gateway that the tests share."""
    with Gateway(embedded.url) as gateway:
        yield Launcher(gateway, build_local)


@pytest.fixture
def briefly_profiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions are run as seldom as they can be, also if their latency varies or falls."""
    monkeypatch.setattr("chiron.openfaas.languages.java._WARM_UP_S", 0.0)
    monkeypatch.setattr("chiron.profiler.profile._FURTHER_S", 0.0)
    monkeypatch.setattr("chiron.profiler.function_profile._FORKED_RUNS", 3)


@pytest.fixture
def briefly_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many requests as a verdict needs are enough, however short they are."""
    monkeypatch.setattr("chiron.deployment.verdict.LONG_S", 0.0)


@pytest.fixture
def plan_of(profile_of: Callable[[Workflow], Profile], platform: Platform) -> Callable[..., Plan]:
    """The plan of a planner for a workflow."""

    def make(
        workflow: Workflow, planner: str = "sand", slo_ms: float = 50.0, **options: Any
    ) -> Plan:
        profile = profile_of(workflow)
        return schedule(workflow, profile, platform, slo_ms, Choices(planner=planner, **options))

    return make


@pytest.fixture(scope="session")
def plan_by_hand() -> Callable[..., Plan]:
    """A plan from ``{wrap: processes}``."""

    def make(
        wraps: Mapping[str, Sequence[Sequence[str]]],
        mechanism: str = "fork",
        memory_mib: int = 64,
        **fields: Any,
    ) -> Plan:
        made = tuple(
            Wrap(
                name=name,
                cpus=1,
                memory_mib=memory_mib,
                mechanism=mechanism,
                processes=tuple(map(tuple, processes)),
            )
            for name, processes in wraps.items()
        )
        known = {"workflow": "small", "planner": "pgp"}
        return Plan(format=2, wraps=made, cpus=len(made), **{**known, **fields})

    return make


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("redis", marks=pytest.mark.redis),
        "moto",
        pytest.param("minio", marks=pytest.mark.minio),  # the last: it is seldom there
    ],
)
def store(request: pytest.FixtureRequest) -> Iterator[RunningStore]:
    """Each kind of store."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(STORES[request.param]())
        except ChironError as error:
            pytest.skip(error.message)
        yield running


@pytest.fixture
def emptied(store: RunningStore) -> Iterator[RunningStore]:
    """A store that has nothing when all has ended that a test has started after asking for this."""
    yield store
    store.lose_all()


@pytest.fixture
def collector() -> Iterator[Collector]:
    """What wraps send their spans to."""
    with collecting() as found:
        yield found
