"""Runs the wraps of a plan as plain processes of this interpreter, without a gateway.

The code is the output of `generate` and the runtime is the template's, but nothing is built or
installed: the functions use the packages of this interpreter. The processes end with this process,
even if it is killed.
"""

from __future__ import annotations

import compileall
import contextlib
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

import requests

from chiron.generator.generate import Sources, generate
from chiron.generator.stores import NO_STORE, StorePlace
from chiron.openfaas.client import Gateway, direct_if_here
from chiron.openfaas.credentials import SECRETS, read_secrets
from chiron.openfaas.function_headers import function_headers
from chiron.openfaas.objects import LogLine
from chiron.openfaas.stack import environment, read_stack
from chiron.openfaas.store_function import PASSWORD, SECRET
from chiron.templates import TEMPLATES
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan
from chiron.workflow.tied import tied
from chiron.workflow.tracing import new_key

_TEMPLATE = "python3-wrap"
_READY_S, _STOP_S = 30.0, 6.0
_POLL_S = 0.02
#: The timeout of a call, longer than a wrap's own timeout.
_ANSWER_S = 90.0


@dataclass(frozen=True)
class Ports:
    """Calls wraps by name on the ports where they listen.

    ``url`` is the gateway's URL for the functions: a real gateway, or a port that never answers.
    """

    url: str
    port_of: Mapping[str, int]
    log_of: Mapping[str, Path]

    def invoke(
        self, name: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> requests.Response:
        """Return the answer of the wrap `name`; ``no-answer`` if its process does not answer."""
        url = f"http://127.0.0.1:{self.port_of[name]}/"
        try:
            sent = {**function_headers(body), **(headers or {})}
            return requests.post(
                url, body, headers=sent, timeout=_ANSWER_S, proxies=direct_if_here(url)
            )
        except requests.RequestException as error:
            why = type(error).__name__
            raise ChironError("no-answer", f"its process does not answer ({why})") from None

    def logs(self, name: str, tail: int) -> list[LogLine]:
        """Return the last `tail` lines of the log of the wrap `name`, without timestamps."""
        lines = self.log_of[name].read_text(errors="replace").splitlines()[-tail:]
        return [LogLine(name=name, text=line) for line in lines]


@dataclass(frozen=True)
class Running:
    """The running wraps of a plan; ``names`` are in its order, ``trace_key`` is common to them."""

    gateway: Ports
    names: tuple[str, ...]
    trace_key: str


@dataclass(frozen=True)
class LocalLauncher:
    """Starts the wraps of plans; `progress` gets a line on missing functions and secrets.

    The wraps call supporting functions through `gateway`, if there is one. ``store`` is for Maps
    that read or write S3. The folder `SECRETS` has the values of the functions' secrets.
    """

    progress: Callable[[str], None]
    gateway: Gateway | None = None
    store: StorePlace = NO_STORE

    @property
    def place(self) -> str:
        """The place where plans run, as in `Launcher`: this machine, without a gateway."""
        return f"{platform.node()} (no gateway)"

    def launch(
        self, workflow: Workflow, folder: WorkflowFolder, plan: Plan
    ) -> AbstractContextManager[Running]:
        """Run `plan` of `workflow`, with the code of `folder`, for the duration of the block.

        Raises ``not-ready`` with the names of all wraps that do not start and the last log line of
        the first; the errors of `generate`.
        """
        return self.launch_under(workflow, folder, plan, lambda _: ())

    @contextmanager
    def launch_under(
        self,
        workflow: Workflow,
        folder: WorkflowFolder,
        plan: Plan,
        prefix: Callable[[str], Sequence[str]],
    ) -> Iterator[Running]:
        """Like `launch`, with the arguments `prefix` of a wrap's name before the wrap's command."""
        sources = Sources.read(
            WorkflowFolder(folder.path, workflow), store=self.store.url
        ).untriggered
        there = {each.name for each in self.gateway.functions()} if self.gateway else set()
        needed = dict.fromkeys([*sources.supporting, *sources.called])
        if missing := ", ".join(name for name in needed if name not in there):
            where = "on the gateway" if self.gateway else "without a gateway"
            note = "calls to them fail; --local runs supporting functions"
            self.progress(f"not running {where}: {missing}; {note}")
        values = self._secrets(sources)
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chiron-")))
            key = new_key()
            stack_file = generate(plan, sources, scratch / "build", trace_key=key, linked=True)
            functions = read_stack(stack_file, {}).functions
            nobody = stack.enter_context(socket.socket())
            nobody.bind(("127.0.0.1", 0))
            silent = f"http://127.0.0.1:{nobody.getsockname()[1]}"
            url = self.gateway.url if self.gateway else silent
            started = []
            for wrap in plan.wraps:
                image = scratch / "images" / wrap.name
                _assemble(stack_file.parent / wrap.name, image)
                variables = environment(functions[wrap.name], stack_file.parent)
                given = _surroundings(scratch, functions[wrap.name].secrets, values) | variables
                given |= {"OPENFAAS_NAME": wrap.name, "gateway_url": url}
                if SECRET in functions[wrap.name].secrets:
                    given[PASSWORD] = self.store.password
                command = [*prefix(wrap.name), sys.executable, "index.py"]
                started.append(stack.enter_context(_process(wrap.name, image, command, given)))
            _await_all(started)
            port_of = {each.name: each.port for each in started}
            log_of = {each.name: each.log for each in started}
            yield Running(Ports(url, port_of, log_of), tuple(port_of), key)

    def _secrets(self, sources: Sources) -> dict[str, str]:
        """Return the values of secrets by name; report the secrets that functions lack."""
        values = read_secrets(SECRETS)
        used = (sources.stack.functions[name].secrets for name in sources.handlers)
        if missing := set(chain.from_iterable(used)) - {*values, SECRET}:
            names = ", ".join(sorted(missing))
            self.progress(
                f"without their secrets: {names}; put each value into {SECRETS}/NAME here"
            )
        return values


@dataclass(frozen=True)
class _Wrap:
    """A wrap's process; its output goes to `log`."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    log: Path


@cache
def _compiled_template() -> Path:
    """Compile the wrap's template and return its folder."""
    compileall.compile_dir(TEMPLATES / _TEMPLATE, quiet=2)
    return TEMPLATES / _TEMPLATE


def _assemble(code: Path, image: Path) -> None:
    """Make the folder of the wrap's image, compiled; raises ``not-ready``.

    The runtime is a link, unless compiled Java classes are to be written beside it.
    """
    shutil.copytree(code, image / "function")
    in_java = any(image.glob("function/functions/*/function/src/main/java"))
    for each in _compiled_template().iterdir():
        place = image / each.name
        if each.is_file():
            shutil.copy2(each, place)
        elif each.name == "wrap" and in_java:
            shutil.copytree(each, place)
        elif not place.exists():
            place.symlink_to(each)
    if in_java:
        command = [sys.executable, "-m", "wrap.functions.java_build", "function/functions"]
        done = subprocess.run(command, cwd=image, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ChironError("not-ready", f"wrap {image.name}: {done.stderr.strip()}")


@contextmanager
def _process(
    name: str, image: Path, command: Sequence[str], given: Mapping[str, str]
) -> Iterator[_Wrap]:
    log = image.with_suffix(".log")
    with socket.create_server(("127.0.0.1", 0)) as listener, log.open("wb") as output:
        process = subprocess.Popen(
            tied(command),
            cwd=image,
            env={**given, "LISTEN_FD": str(listener.fileno())},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        port = int(listener.getsockname()[1])
    try:
        yield _Wrap(name, port, process, log)
    finally:
        _stop(process)


def _surroundings(
    scratch: Path, secrets: Iterable[str], values: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that every wrap gets; makes its folders, and the secrets with `values`.

    Their paths have no names: a socket below TMPDIR has a path of at most 107 bytes.
    """
    folder = Path(tempfile.mkdtemp(dir=scratch))
    home, own = folder / "home", folder / "secrets"
    home.mkdir()
    own.mkdir()
    for name in secrets:
        if name in values:
            (own / name).write_text(values[name], "utf-8")
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "OPENFAAS_NAMESPACE": "openfaas-fn",
        "secrets_dir": str(own),
    }


def _await_all(wraps: Sequence[_Wrap]) -> None:
    """Return when all wraps answer; the error names every wrap that does not."""
    deadline = time.monotonic() + _READY_S
    silent = [wrap for wrap in wraps if not _answers(wrap, deadline)]
    if silent:
        lines = silent[0].log.read_text(errors="replace").strip().splitlines()
        last_line = lines[-1] if lines else "its log is empty"
        message = f"wrap {silent[0].name} does not start: {last_line}"
        raise ChironError("not-ready", message, functions=[wrap.name for wrap in silent])


def _answers(wrap: _Wrap, deadline: float) -> bool:
    while not _has_exited(wrap.process) and time.monotonic() < deadline:
        with contextlib.suppress(requests.RequestException):
            url = f"http://127.0.0.1:{wrap.port}/_/health"
            if requests.get(url, timeout=_READY_S, proxies=direct_if_here(url)).ok:
                return True
        time.sleep(_POLL_S)
    return False


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the process has exited; does not reap it, so nothing else gets its pid."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the process and its descendants, then reap it."""
    os.kill(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_S
    while not _has_exited(process) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
