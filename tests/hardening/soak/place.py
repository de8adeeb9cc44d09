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
from typing import Any

import psutil
import requests

from chiron.cli.place import build_local
from chiron.deployment.launcher import Launcher
from chiron.gateway.embedded import EmbeddedGateway
from chiron.openfaas.client import Gateway
from chiron.workflow.documents import validate
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import Plan

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
#: The same answers, from a state machine whose caller says how long it waits and what it evaluates.
MACHINE = {
    "StartAt": "Asked",
    "States": {
        "Asked": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.seconds", "IsPresent": True, "Next": "Wait"},
                {"Variable": "$.items", "IsPresent": True, "Next": "Each"},
            ],
            "Default": "Both",
        },
        "Wait": {"Type": "Wait", "SecondsPath": "$.seconds", "End": True},
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemSelector": {"all.$": "$.items[*].v", "found.$": "$.items[?(@.v =~ /(a+)+$/)]"},
            "ItemProcessor": {"StartAt": "Skip", "States": {"Skip": {"Type": "Pass", "End": True}}},
            "End": True,
        },
        "Both": {
            "Type": "Parallel",
            "Branches": [
                {"StartAt": name, "States": {name: {"Type": "Task", "Resource": name, "End": True}}}
                for name in ("digest", "turn")
            ],
            "End": True,
        },
    },
}
#: Takes events, and does next to nothing with them.
BUCKETS = {
    "entry": "events",
    "buckets": {
        "events": {"trigger": "immediate", "function": "front"},
        "held": {"trigger": "by-time", "window_ms": 1000, "function": "join"},
    },
    "functions": {"front": {"gives": "held"}},
}
#: What a command leaves behind in a session of its own has this as an argument.
DAEMON = f"86399.{os.getpid()}"
#: Starts a daemon that nobody waits for, and copies its input.
COMMAND = f"#!/bin/sh\nsetsid sleep {DAEMON} </dev/null >/dev/null 2>&1 &\ncat\n"
_START_S = 60


def plans() -> dict[str, Plan]:
    """Entry wrap -> a plan for the functions: a process for each request, a pool, two wraps."""
    both = [["front", "digest", "join"], ["turn"]]
    one, other = [["front", "join"], ["digest"]], [[], ["turn"]]
    return {
        "soak-fork": _plan("fork", {"soak-fork": both}),
        "soak-pool": _plan("pool", {"soak-pool": both}),
        "soak-two": _plan("fork", {"soak-two": one, "soak-far": other}),
    }


def others() -> dict[str, tuple[dict[str, Any], Plan]]:
    """Entry wrap -> a workflow of another form, and its plan."""
    layouts = {
        "soak-command": (WORKFLOW, [["digest", "join"], ["front", "turn"]]),
        "soak-decides": (MACHINE, [["digest"], ["turn"]]),
        "soak-events": (BUCKETS, [["front", "join"]]),
    }
    return {
        name: (document, _plan("fork", {name: processes}, name))
        for name, (document, processes) in layouts.items()
    }


#: The entry wraps that answer every text with its digest and itself backwards.
ANSWERING = ("soak-fork", "soak-pool", "soak-two", "soak-command", "soak-decides")


def _plan(mechanism: str, wraps: dict[str, list[list[str]]], workflow: str = "soak") -> Plan:
    fields = {"cpus": 1, "memory_mib": 256, "mechanism": mechanism}
    each = [{"name": name, **fields, "processes": wraps[name]} for name in wraps]
    plan = {"format": 2, "workflow": workflow, "planner": "pgp"}
    return validate(Plan, plan | {"wraps": each, "cpus": len(each)}, "plan")


def write_workflow(folder: Path, document: dict[str, Any] = WORKFLOW) -> WorkflowFolder:
    """A folder of a workflow, which is called as the folder is."""
    entries: dict[str, dict[str, str]] = {}
    for name, code in FUNCTIONS.items():
        (folder / "functions" / name).mkdir(parents=True)
        (folder / "functions" / name / "handler.py").write_text(code)
        entries[name] = {"lang": "python3-flask", "handler": f"./functions/{name}", "image": name}
    if folder.name == "soak-command":
        (folder / "functions" / "front" / "front.sh").write_text(COMMAND)
        entries["front"] |= {"lang": "command", "fprocess": "sh ./front.sh"}
    stack = {"version": "1.0", "provider": {"name": "openfaas"}, "functions": entries}
    (folder / "stack.yaml").write_text(json.dumps(stack))
    (folder / "workflow.json").write_text(json.dumps(document))
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

    @property
    def ports(self) -> list[tuple[str, int]]:
        """All addresses that wraps listen on."""
        found = []
        for server in self.function_servers():
            with suppress(psutil.NoSuchProcess):
                for each in server.net_connections("tcp"):
                    if each.status == psutil.CONN_LISTEN:
                        found.append((each.laddr.ip, each.laddr.port))
        return found

    def function_servers(self) -> list[psutil.Process]:
        """The first process of every replica that is there."""
        [supervisor] = self.gateway.children()
        found = list[psutil.Process]()
        for init in supervisor.children():
            with suppress(psutil.NoSuchProcess):
                found += init.children()
        return found

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
        for name, (document, plan) in others().items():
            other = write_workflow(folder / "root" / name, document)
            stack.enter_context(launcher.launch(other.workflow, other, plan))
        code = "from chiron.cli.main import main; main()"
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
