"""What the soak loads and kills: a gateway with wraps of every kind, and the services beside it."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import requests

from cli.place import build_local
from deployment.launcher import Launcher
from gateway.embedded import EmbeddedGateway
from openfaas.client import Gateway
from workflow.documents import validate
from workflow.folder import WorkflowFolder
from workflow.plan import Plan

FUNCTIONS = {
    "front": "def handle(req):\n    return req\n",
    "digest": (
        "import hashlib\n\n\ndef handle(req):\n"
        "    return hashlib.sha256(req.encode()).hexdigest()\n"
    ),
    "turn": "import time\n\n\ndef handle(req):\n    time.sleep(0.005)\n    return req[::-1]\n",
    "join": "def handle(req):\n    return req\n",
}
WORKFLOW = {
    "tasks": {"front": "front", "digest": "digest", "turn": "turn", "join": "join"},
    "edges": [["front", "digest"], ["front", "turn"], ["digest", "join"], ["turn", "join"]],
}
_START_S = 60


def plans() -> dict[str, Plan]:
    """Entry wrap -> a plan: a process for each request, a pool of workers, two wraps."""
    both = [["front", "digest", "join"], ["turn"]]
    one, other = [["front", "join"], ["digest"]], [[], ["turn"]]
    return {
        "soak-fork": _plan("fork", {"soak-fork": both}),
        "soak-pool": _plan("pool", {"soak-pool": both}),
        "soak-two": _plan("fork", {"soak-two": one, "soak-far": other}),
    }


def _plan(mechanism: str, wraps: dict[str, list[list[str]]]) -> Plan:
    fields = {"cpus": 1, "memory_mib": 256, "mechanism": mechanism}
    each = [{"name": name, **fields, "processes": wraps[name]} for name in wraps]
    plan = {"format": 2, "workflow": "soak", "planner": "pgp"}
    return validate(Plan, plan | {"wraps": each, "cpus": len(each)}, "plan")


def write_workflow(folder: Path) -> WorkflowFolder:
    """A folder of the workflow, which is called as the folder is."""
    entries = {}
    for name, code in FUNCTIONS.items():
        (folder / "functions" / name).mkdir(parents=True)
        (folder / "functions" / name / "handler.py").write_text(code)
        entries[name] = {"lang": "python3-flask", "handler": f"./functions/{name}", "image": name}
    stack = {"version": "1.0", "provider": {"name": "openfaas"}, "functions": entries}
    (folder / "stack.yaml").write_text(json.dumps(stack))
    (folder / "workflow.json").write_text(json.dumps({**WORKFLOW, "name": folder.name}))
    (folder / "payload.json").write_text('"payload"')
    return WorkflowFolder.open(folder)


@dataclass
class Services:
    """`chiron serve`, started again whenever it ends, as an init system would."""

    port: int
    command: list[str]
    environment: dict[str, str]
    log: Path
    process: psutil.Popen = field(init=False)
    _over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep it running for the length of the block."""
        self._start()
        keeper = threading.Thread(target=self._keep)
        keeper.start()
        try:
            yield
        finally:
            self._over.set()
            self.process.terminate()
            self.process.wait(_START_S)
            keeper.join()

    def healthy(self) -> bool:
        """Whether it answers."""
        with suppress(requests.RequestException):
            return requests.get(f"{self.url}/healthz", timeout=10).ok
        return False

    def _keep(self) -> None:
        while not self._over.wait(0.02):
            if self.process.poll() is not None and not self._over.is_set():
                self._start()

    def _start(self) -> None:
        with self.log.open("ab") as log:
            self.process = psutil.Popen(self.command, env=self.environment, stdout=log, stderr=log)


@dataclass
class Place:
    """All of it."""

    gateway: psutil.Process
    url: str
    services: Services
    scratch: Path

    def function_servers(self) -> list[psutil.Process]:
        """The first process of every replica."""
        [supervisor] = self.gateway.children()
        return [each for init in supervisor.children() for each in init.children()]

    def processes(self) -> set[psutil.Process]:
        """Everything that runs in it."""
        found = {self.gateway, self.services.process}
        for root in tuple(found):
            with suppress(psutil.NoSuchProcess):
                found.update(root.children(recursive=True))
        return found


@contextmanager
def open_place(folder: Path) -> Iterator[Place]:
    """Deploy the plans on a gateway of their own and start the services; all below `folder`."""
    scratch = folder / "tmp"
    scratch.mkdir()
    workflow = write_workflow(folder / "root" / "soak")
    # A job replaces what there is of its own workflow.
    write_workflow(folder / "root" / "job")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with _variables(CHIRON_HOME=str(folder / "home"), TMPDIR=str(scratch)), ExitStack() as stack:
        embedded = stack.enter_context(EmbeddedGateway())
        launcher = Launcher(stack.enter_context(Gateway(embedded.url)), build_local)
        for plan in plans().values():
            stack.enter_context(launcher.launch(workflow.workflow, workflow, plan))
        code = "from cli.main import main; main()"
        command = [sys.executable, "-c", code, "serve", "predictor", "scheduler", "deployments"]
        command += ["-g", embedded.url, "--port", str(port), "--root", str(folder / "root")]
        services = Services(port, command, dict(os.environ), folder / "services.log")
        stack.enter_context(services.running())
        end = time.monotonic() + _START_S
        while not services.healthy():
            assert time.monotonic() < end, services.log.read_text()
            time.sleep(0.05)
        yield Place(psutil.Process(embedded.pid), embedded.url, services, scratch)


@contextmanager
def _variables(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    tempfile.tempdir = None  # looked up again
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        tempfile.tempdir = None
