"""Runs the wraps of a plan as plain processes of this interpreter, where no gateway is wanted.

The code is what `generate` writes and the runtime is the template's, but nothing is built or
installed: the functions see the packages of this interpreter.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from generator.generate import Sources, generate
from openfaas.stack import environment, read_stack
from templates import TEMPLATES
from workflow.errors import ChironError
from workflow.folder import WorkflowFolder
from workflow.model import Workflow
from workflow.plan import Plan

_TEMPLATE = "python3-wrap"
_READY_S, _STOP_S = 30.0, 6.0
_POLL_S = 0.02
#: A wrap answers within its own timeout, or not at all.
_ANSWER_S = 90.0


@dataclass(frozen=True)
class Ports:
    """Calls wraps by their names on the ports where they listen.

    ``url`` is what the functions have for a gateway: a port that is taken and answers nothing.
    """

    url: str
    port_of: Mapping[str, int]

    def invoke(
        self, name: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> requests.Response:
        """The answer of the wrap `name`; ``no-answer`` where its process has ended."""
        url = f"http://127.0.0.1:{self.port_of[name]}/"
        try:
            return requests.post(url, body, headers=dict(headers or {}), timeout=_ANSWER_S)
        except requests.RequestException as error:
            why = type(error).__name__
            raise ChironError("no-answer", f"its process does not answer ({why})") from None


@dataclass(frozen=True)
class Running:
    """The wraps of a plan, running; ``names`` are in the order of the plan."""

    gateway: Ports
    names: tuple[str, ...]


@dataclass(frozen=True)
class Harness:
    """Starts the wraps of plans; `progress` is told what goes without."""

    progress: Callable[[str], None]

    @contextmanager
    def launch(self, workflow: Workflow, folder: WorkflowFolder, plan: Plan) -> Iterator[Running]:
        """`plan` of `workflow`, with the code of `folder`, running for the length of the block.

        Raises
        ------
        ChironError
            ``not-ready`` with the wrap's name and its last words; what `generate` raises.
        """
        sources = Sources.read(WorkflowFolder(folder.path, workflow))
        if sources.supporting:
            names = ", ".join(sources.supporting)
            self.progress(f"not running without a gateway: {names}; who calls them fails (--local)")
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chiron-")))
            stack_file = generate(plan, sources, scratch / "build")
            functions = read_stack(stack_file, {}).functions
            nobody = stack.enter_context(socket.socket())
            nobody.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
            port_of = {}
            for wrap in plan.wraps:
                image = scratch / "images" / wrap.name
                _assemble(stack_file.parent / wrap.name, image)
                variables = environment(functions[wrap.name], stack_file.parent)
                given = variables | {"OPENFAAS_NAME": wrap.name, "gateway_url": url}
                port_of[wrap.name] = stack.enter_context(_process(wrap.name, image, given))
            yield Running(Ports(url, port_of), tuple(port_of))


def _assemble(code: Path, image: Path) -> None:
    """The folder that an image of the wrap would have."""
    skipped = shutil.ignore_patterns("function", "__pycache__", ".*_cache")
    shutil.copytree(TEMPLATES / _TEMPLATE, image, ignore=skipped)
    shutil.copytree(code, image / "function")


@contextmanager
def _process(name: str, image: Path, given: Mapping[str, str]) -> Iterator[int]:
    """The port of a wrap's process, which runs for the length of the block."""
    log = image.with_suffix(".log")
    with socket.create_server(("127.0.0.1", 0)) as listener, log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "index.py"],
            cwd=image,
            env=_environment(image, given) | {"LISTEN_FD": str(listener.fileno())},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        port = int(listener.getsockname()[1])
    try:
        _await_ready(name, process, port, log)
        yield port
    finally:
        _stop(process)


def _environment(image: Path, given: Mapping[str, str]) -> dict[str, str]:
    home = image.with_suffix(".home")
    home.mkdir()
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "OPENFAAS_NAMESPACE": "openfaas-fn",
        "secrets_dir": str(home),
        **given,
    }


def _await_ready(name: str, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(requests.RequestException):
            if requests.get(f"http://127.0.0.1:{port}/_/health", timeout=_READY_S).ok:
                return
        time.sleep(_POLL_S)
    words = log.read_text(errors="replace").strip().splitlines()
    said = words[-1] if words else "it says nothing"
    raise ChironError("not-ready", f"wrap {name} does not start: {said}", functions=[name])


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process and what it has started."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
