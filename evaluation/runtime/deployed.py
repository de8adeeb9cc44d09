"""Functions and workflows of known shape on an embedded gateway, and a client that costs little."""

from __future__ import annotations

import http.client
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import psutil

from deployment.deploy import deploy_stack, remove_all, removed_on_failure
from deployment.launcher import Launcher
from generator.generate import Sources
from profiler.sandbox import find_sandbox
from workflow.errors import ChironError
from workflow.folder import WorkflowFolder
from workflow.model import Source, Task, Workflow
from workflow.plan import Plan, Wrap, WrapStage
from workflow.tracing import Row, Traced, trace_header

#: Tasks of each process of each wrap in a stage: ``((0, 1, 1),)`` is one wrap that starts two
#: further processes of one task each, and has nothing to do itself meanwhile.
Sizes = Sequence[Sequence[int]]
THREAD: Sizes = ((1,),)
PROCESS: Sizes = ((0, 1),)
REMOTE: Sizes = ((), (1,))

_CPUS, _MEMORY_MIB = 2, 512
_TEMPLATE = "python3-flask"
#: The functions call nothing.
_NOTHING = "http://127.0.0.1:9"
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Shape:
    """A workflow and the plan that it is deployed as."""

    name: str
    workflow: Workflow
    plan: Plan


def shape(name: str, function: str, stages: Sequence[Sizes], mechanism: str = "fork") -> Shape:
    """A workflow whose tasks all use `function`; each stage takes the outputs of the one before."""
    workflow_name = f"chiron-evaluate-{name}"
    tasks: list[Task] = []
    source: Source = None
    parts: dict[int, list[WrapStage]] = {}
    for number, sizes in enumerate(stages):
        names = iter([f"s{number}t{n}" for n in range(sum(map(sum, sizes)))])
        before = len(tasks)
        for index, processes in enumerate(sizes):
            if not processes:
                continue
            placed = tuple(tuple(next(names) for _ in range(size)) for size in processes)
            parts.setdefault(index, []).append(WrapStage(stage=number, processes=placed))
            tasks += [Task(task, function, source) for process in placed for task in process]
        source = _outputs([task.name for task in tasks[before:]])
    wraps = tuple(
        Wrap(
            name=f"{workflow_name}-wrap{index + 1}",
            cpus=_CPUS,
            memory_mib=_MEMORY_MIB,
            stages=tuple(parts[index]),
        )
        for index in sorted(parts)
    )
    plan = Plan(
        format=1,
        workflow=workflow_name,
        planner="pgp",
        mechanism=mechanism,
        wraps=wraps,
        cpus=_CPUS * len(wraps),
    )
    return Shape(name, Workflow(workflow_name, tuple(tasks), source), plan)


def _outputs(names: list[str]) -> Source:
    return names[0] if len(names) == 1 else tuple(names)


@dataclass(frozen=True)
class Address:
    """Where a function answers: its own process, and the path of its name behind a gateway."""

    host: str
    path: str = "/"


@contextmanager
def functions(launcher: Launcher, sources: Mapping[str, ModuleType]) -> Iterator[list[str]]:
    """Ordinary functions, whose handlers are the modules of `sources`, deployed by their names."""
    with tempfile.TemporaryDirectory(prefix="chiron-") as scratch:
        stack_file = write_stack(Path(scratch), sources)
        launcher.build(stack_file)
        created = deploy_stack(launcher.gateway, stack_file)
        with removed_on_failure(launcher.gateway, created):
            yield list(sources)
        remove_all(launcher.gateway, created)


@dataclass(frozen=True)
class DeployedWorkflow:
    """A workflow as it is deployed: its entry wrap and what the reference executor runs."""

    entry: str
    trace_key: str
    sources: Sources

    def expected(self, request: bytes) -> bytes:
        """What the reference executor answers to `request`."""
        return self.sources.reference(request, _NOTHING).output.encode()


@contextmanager
def workflows(
    launcher: Launcher, shapes: Sequence[Shape], sources: Mapping[str, ModuleType]
) -> Iterator[dict[str, DeployedWorkflow]]:
    """Shape -> what is deployed; the tasks' functions are the modules of `sources`."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chiron-")))
        write_stack(scratch, sources)
        deployed = {}
        for shape in shapes:
            folder = WorkflowFolder(scratch, shape.workflow)
            launched = stack.enter_context(launcher.launch(shape.workflow, folder, shape.plan))
            deployed[shape.name] = DeployedWorkflow(
                shape.plan.wraps[0].name, launched.trace_key, Sources.read(folder, {})
            )
        yield deployed


def write_stack(folder: Path, sources: Mapping[str, ModuleType]) -> Path:
    """A stack.yaml of the functions in `folder`, and their code."""
    entries = {}
    for name, module in sources.items():
        code = folder / "functions" / name
        code.mkdir(parents=True)
        shutil.copy(str(module.__file__), code / "handler.py")
        handler = f"./functions/{name}"
        entries[name] = {"lang": _TEMPLATE, "handler": handler, "image": f"{name}:latest"}
    stack_file = folder / "stack.yaml"
    stack = {"version": "1.0", "provider": {"name": "openfaas"}, "functions": entries}
    stack_file.write_text(json.dumps(stack), encoding="utf-8")  # JSON is YAML
    return stack_file


def behind(gateway_url: str, name: str) -> Address:
    """Where a function answers through the gateway."""
    return Address(urlsplit(gateway_url).netloc, f"/function/{name}")


def direct(gateway_url: str, name: str) -> Address:
    """Where a function of an embedded gateway answers without it; ``not-local`` if it does not."""
    try:
        process = psutil.Process(find_sandbox(name, gateway_url).pid)
        for connection in process.net_connections("tcp4"):
            if connection.status == psutil.CONN_LISTEN:
                return Address(f"{connection.laddr.ip}:{connection.laddr.port}")
    except psutil.Error:
        pass
    raise ChironError("not-local", f"no process of function {name} listens here", functions=[name])


class Client:
    """One kept-alive connection to a function."""

    def __init__(self, address: Address) -> None:
        self._connection = http.client.HTTPConnection(address.host, timeout=_TIMEOUT_S)
        self._path = address.path

    def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> tuple[bytes, float]:
        """The answer to one request and its latency in milliseconds.

        Raises
        ------
        ChironError
            ``wrong-output`` unless the answer is 200.
        """
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
        """The latency of a request; ``wrong-output`` unless `expected` comes back."""
        answer, elapsed_ms = self.post(body)
        if answer != expected:
            raise ChironError(
                "wrong-output",
                f"an answer of {len(answer)} bytes differs from the reference executor's",
                status=500,
            )
        return elapsed_ms

    def timeline(self, body: bytes, trace_key: str) -> list[Row]:
        """The timeline of a traced request."""
        answer, _ = self.post(body, trace_header(trace_key))
        traced: Traced = json.loads(answer)
        return traced["timeline"]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
