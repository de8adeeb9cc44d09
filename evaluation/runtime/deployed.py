"""Functions and workflows of known plans on an embedded gateway, and a client of low overhead."""

from __future__ import annotations

import http.client
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psutil
import yaml

from chiron.deployment.deploy import deploy_stack, remove_all, removed_on_failure
from chiron.deployment.launcher import Launcher
from chiron.evaluation.reference.sources import reference_run
from chiron.generator.generate import Sources
from chiron.generator.stores import NO_STORE, StorePlace
from chiron.profiler.sandbox import find_sandbox
from chiron.scheduler.layout import over_stages
from chiron.workflow.asl import parse_states
from chiron.workflow.documents import write_atomically
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.forms import WORKFLOW_FILE
from chiron.workflow.model import Source, Task, Workflow
from chiron.workflow.paths import DEFAULT_PATH, PathKind
from chiron.workflow.plan import DEFAULT_ATTEMPTS, Plan, Processes, Wrap
from chiron.workflow.timeline import Traced
from chiron.workflow.tracing import trace_header

#: Tasks of each process of each wrap in a stage: ``((0, 1, 1),)`` is one wrap with two further
#: processes of one task each, and a main process without tasks.
Sizes = Sequence[Sequence[int]]
THREAD: Sizes = ((1,),)
PROCESS: Sizes = ((0, 1),)
REMOTE: Sizes = ((), (1,))

#: The folder of the benchmarks, relative to the repository.
BENCHMARKS = Path("benchmarks")
#: The header of an event that is handled by itself: the wrap answers with its results.
ALONE = MappingProxyType({"X-Chiron-Alone": "1"})

_CPUS, _MEMORY_MIB = 2, 512
_TEMPLATE = "python3-flask"
#: The gateway's URL for the reference executor: the functions call no other function.
_NOTHING = "http://127.0.0.1:9"
_TIMEOUT_S = 60.0


class Shape(NamedTuple):
    """A workflow, its plan, and the store through which objects pass, if any."""

    name: str
    workflow: Workflow
    plan: Plan
    store: StorePlace = NO_STORE

    def by(self, store: StorePlace) -> Shape:
        """Return a copy whose objects pass through `store`."""
        plan = self.plan.model_copy(update={"path": "store"})
        return self._replace(plan=plan, store=store)


def shape(
    name: str,
    function: str,
    stages: Sequence[Sizes],
    mechanism: str = "fork",
    memory_mib: int = _MEMORY_MIB,
    path: PathKind = DEFAULT_PATH,
    attempts: int = DEFAULT_ATTEMPTS,
) -> Shape:
    """Return a workflow whose tasks all use `function`, each with all outputs of the last stage."""
    workflow_name = f"chiron-evaluate-{name}"
    tasks: list[Task] = []
    source: Source = None
    parts: dict[int, list[Processes]] = {}
    for number, sizes in enumerate(stages):
        names = [f"s{number}t{n}" for n in range(sum(map(sum, sizes)))]
        tasks += [Task(name, function, source) for name in names]
        source, left = names[0] if len(names) == 1 else tuple(names), iter(names)
        for index, processes in enumerate(sizes):
            if processes:
                placed = tuple(tuple(islice(left, size)) for size in processes)
                parts.setdefault(index, []).append(placed)
    workflow = Workflow(workflow_name, tuple(tasks), source)
    wraps = {index: over_stages(parts[index]) for index in sorted(parts)}
    return Shape(name, workflow, plan_of(workflow, wraps, mechanism, memory_mib, path, attempts))


def map_shape(name: str, function: str, processes: int, mechanism: str) -> Shape:
    """Return a Map that applies `function` to items in `processes` further processes."""
    item = {"Type": "Task", "Resource": function, "End": True}
    each = {"StartAt": "item", "States": {"item": item}}
    states = {"map": {"Type": "Map", "ItemProcessor": each, "End": True}}
    workflow = parse_states({"StartAt": "map", "States": states}, f"chiron-evaluate-{name}")
    placed = ((), *[("item",)] * processes)
    return Shape(name, workflow, plan_of(workflow, {0: placed}, mechanism))


def plan_of(
    workflow: Workflow,
    wraps: Mapping[int, Processes],
    mechanism: str,
    memory_mib: int = _MEMORY_MIB,
    path: PathKind = DEFAULT_PATH,
    attempts: int = DEFAULT_ATTEMPTS,
) -> Plan:
    """Return the plan of the numbered `wraps`, the first of which is the entry."""
    made = tuple(
        Wrap(
            name=f"{workflow.name}-wrap{index + 1}",
            cpus=_CPUS,
            memory_mib=memory_mib,
            mechanism=mechanism,
            processes=processes,
        )
        for index, processes in wraps.items()
    )
    return Plan(
        format=2,
        workflow=workflow.name,
        planner="pgp",
        path=path,
        attempts=attempts,
        wraps=made,
        cpus=_CPUS * len(made),
    )


@contextmanager
def functions(launcher: Launcher, sources: Mapping[str, ModuleType]) -> Iterator[None]:
    """Deploy ordinary functions: `sources` maps their names to the modules of their handlers."""
    with tempfile.TemporaryDirectory(prefix="chiron-") as scratch:
        stack_file = write_stack(Path(scratch), _code(sources))
        launcher.build(stack_file)
        created = deploy_stack(launcher.gateway, stack_file)
        with removed_on_failure(launcher.gateway, created):
            yield
        remove_all(launcher.gateway, created)


class DeployedWorkflow(NamedTuple):
    """A deployed workflow: its entry wrap, and the sources for the reference executor."""

    entry: str
    trace_key: str
    sources: Sources

    def expected(self, request: bytes) -> bytes:
        """Return the reference executor's answer to `request`."""
        return reference_run(self.sources, request, _NOTHING).output.encode()


@contextmanager
def buckets(
    launcher: Launcher,
    benchmark: str,
    processes: Processes,
    mechanism: str = "fork",
    memory_mib: int = _MEMORY_MIB,
    changes: Mapping[str, Any] = MappingProxyType({}),
    code: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[DeployedWorkflow]:
    """Deploy a benchmark of buckets as one wrap.

    Args:
        changes: fields that replace those of its workflow.json.
        code: files to add to its functions, or to replace, by function.
        variables: the environment of all functions.
    """
    with tempfile.TemporaryDirectory(prefix="chiron-") as scratch:
        folder = Path(shutil.copytree(BENCHMARKS / benchmark, Path(scratch) / benchmark))
        document = json.loads((folder / WORKFLOW_FILE).read_text(encoding="utf-8"))
        write_atomically(folder / WORKFLOW_FILE, json.dumps(document | dict(changes)))
        for function, files in code.items():
            for file, text in files.items():
                write_atomically(folder / "functions" / function / file, text)
        stack = yaml.safe_load((folder / "stack.yaml").read_text(encoding="utf-8"))
        for entry in stack["functions"].values():
            entry["environment"] = dict(variables)
        write_atomically(folder / "stack.yaml", json.dumps(stack))
        opened = WorkflowFolder.open(folder)
        plan = plan_of(opened.workflow, {0: processes}, mechanism, memory_mib)
        with launcher.launch(opened.workflow, opened, plan) as launched:
            sources = Sources.read(opened, {})
            yield DeployedWorkflow(plan.wraps[0].name, launched.trace_key, sources)


@contextmanager
def workflows(
    launcher: Launcher,
    shapes: Sequence[Shape],
    sources: Mapping[str, ModuleType],
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[dict[str, DeployedWorkflow]]:
    """Deploy `shapes` and yield them by name; the functions are the modules of `sources`.

    The functions have `variables` in their environment.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chiron-")))
        write_stack(scratch, _code(sources), variables=variables)
        deployed = {}
        for shape in shapes:
            folder = WorkflowFolder(scratch, shape.workflow)
            its = replace(launcher, store=shape.store)
            launched = stack.enter_context(its.launch(shape.workflow, folder, shape.plan))
            deployed[shape.name] = DeployedWorkflow(
                shape.plan.wraps[0].name, launched.trace_key, Sources.read(folder, {})
            )
        yield deployed


def _code(sources: Mapping[str, ModuleType]) -> dict[str, dict[str, str]]:
    return {
        name: {"handler.py": Path(str(module.__file__)).read_text(encoding="utf-8")}
        for name, module in sources.items()
    }


def handler(benchmark: str, function: str) -> ModuleType:
    """Import the handler of a benchmark's function; raises ``missing-file``."""
    path = BENCHMARKS / benchmark / "functions" / function / "handler.py"
    spec = spec_from_file_location(function, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ChironError("missing-file", f"{path} is not there: run this in the repository")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_stack(
    folder: Path,
    code: Mapping[str, Mapping[str, str]],
    prefix: str = "",
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """Write functions and their stack.yaml into `folder`; image names begin with `prefix`.

    `code` has each function's files. All functions have `variables` in their environment.
    """
    entries = {}
    for name, files in code.items():
        for file, text in files.items():
            write_atomically(folder / "functions" / name / file, text)
        image = f"{prefix}{name}:latest"
        entries[name] = {
            "lang": _TEMPLATE,
            "handler": f"./functions/{name}",
            "image": image,
            "environment": dict(variables),
        }
    stack = {"version": "1.0", "provider": {"name": "openfaas"}, "functions": entries}
    write_atomically(folder / "stack.yaml", json.dumps(stack))  # JSON is YAML
    return folder / "stack.yaml"


def behind(gateway_url: str, name: str) -> Client:
    """Return a client of a function through the gateway."""
    return Client(urlsplit(gateway_url).netloc, f"/function/{name}")


def direct(gateway_url: str, name: str) -> Client:
    """Return a client of a function's process on this machine; raises ``not-local``."""
    with suppress(psutil.Error):
        process = psutil.Process(find_sandbox(name, gateway_url).pid)
        for connection in process.net_connections("tcp4"):
            host = f"{connection.laddr.ip}:{connection.laddr.port}"
            if connection.status == psutil.CONN_LISTEN and _is_http(host):
                return Client(host)
    raise ChironError("not-local", f"no process of function {name} listens here", functions=[name])


def _is_http(host: str) -> bool:
    """Tell whether `host` accepts requests: a wrap has a second port, for other wraps."""
    with closing(http.client.HTTPConnection(host, timeout=_TIMEOUT_S)) as connection:
        try:
            connection.request("GET", "/_/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False


class Client:
    """One kept-alive connection to a function: its own process, or its path behind a gateway."""

    def __init__(self, host: str, path: str = "/") -> None:
        self._connection = http.client.HTTPConnection(host, timeout=_TIMEOUT_S)
        self._path = path

    def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> tuple[bytes, float]:
        """Return the answer to a request and its latency in ms; ``wrong-output`` if not a 200."""
        given = {"Content-Type": "text/plain", **(headers or {})}
        start = time.perf_counter()
        self._connection.request("POST", self._path, body, given)
        response = self._connection.getresponse()
        answer = response.read()
        elapsed_ms = (time.perf_counter() - start) * 1000
        if response.status != 200:
            said = answer[:200].decode(errors="replace")
            raise ChironError("wrong-output", f"status {response.status}: {said}", status=500)
        return answer, elapsed_ms

    def latency_ms(self, body: bytes, expected: bytes) -> float:
        """Return the latency of a request; raises ``wrong-output`` if `expected` differs."""
        answer, elapsed_ms = self.post(body)
        if answer != expected:
            message = f"an answer of {len(answer)} bytes differs from the reference executor's"
            raise ChironError("wrong-output", message, status=500)
        return elapsed_ms

    def traced(self, body: bytes, trace_key: str) -> tuple[Traced, float]:
        """Return the answer to a traced request, and its latency in ms."""
        answer, elapsed_ms = self.post(body, trace_header(trace_key))
        return Traced.model_validate_json(answer), elapsed_ms

    def close(self) -> None:
        self._connection.close()
