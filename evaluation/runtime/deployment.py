"""Deploys what is measured on an embedded gateway, and finds the ports of its own processes."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import psutil

from evaluation.runtime.shapes import Shape
from generator.deploy import deploy_stack, remove_all
from generator.generate import Sources
from generator.launcher import Launcher
from generator.reference import reference
from workflow.errors import ChironError
from workflow.folder import WorkflowFolder

_TEMPLATE = "python3-flask"
#: The functions call nobody.
_NOBODY = "http://127.0.0.1:9"


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
        try:
            yield list(sources)
        finally:
            remove_all(launcher.gateway, created)


@dataclass(frozen=True)
class DeployedWorkflow:
    """A workflow as it is deployed: its entry wrap and what the reference executor runs."""

    entry: str
    trace_key: str
    sources: Sources

    def expected(self, request: bytes) -> bytes:
        """What the reference executor answers to `request`."""
        return reference(self.sources, request, _NOBODY).output.encode()


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
    for process in psutil.process_iter():
        try:
            variables = process.environ()
            if (variables.get("OPENFAAS_NAME"), variables.get("gateway_url")) != (
                name,
                gateway_url,
            ):
                continue
            for connection in process.net_connections("tcp4"):
                if connection.status == psutil.CONN_LISTEN:
                    return Address(f"{connection.laddr.ip}:{connection.laddr.port}")
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    raise ChironError("not-local", f"no process of function {name} listens here", functions=[name])
