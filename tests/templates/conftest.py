"""Composes image folders and starts their index.py as the gateway does."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from chiron.gateway.build import lay_out
from tests.templates.guarded import BROKEN
from tests.templates.network import BOUND_S, Stalls, Strangers, gateways
from tests.templates.preloaded import GUARDED, LISTENER, Forked, Preloaded

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
sys.path.append(str(TEMPLATES / "python3-wrap"))  # it is no package of ours, but shipped as it is


@dataclass
class Answer:
    """An HTTP response, read."""

    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Server:
    """A running index.py."""

    process: subprocess.Popen[bytes] | Forked
    port: int
    log: Path

    def request(
        self, method: str = "POST", path: str = "/", body: bytes | str = b"", **headers: str
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND_S)
        try:
            data = body.encode() if isinstance(body, str) else body
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, data, names)
            response = connection.getresponse()
            return Answer(response.status, response.read(), dict(response.getheaders()))
        except ConnectionError as error:
            error.add_note(f"of a wrap that has ended with {self.process.poll()}, None if not yet")
            raise
        finally:
            connection.close()

    def family(self) -> list[psutil.Process]:
        """All processes below it."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def fork_server(self) -> psutil.Process:
        return psutil.Process(self.process.pid).children()[0]

    def descriptors(self) -> int:
        return psutil.Process(self.process.pid).num_fds()

    def threads(self) -> int:
        return psutil.Process(self.process.pid).num_threads()

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(BOUND_S)


Start = Callable[..., Server]


def eventually(holds: Callable[[], bool], after_s: float = 0.0) -> bool:
    """Whether it `holds` before long after `after_s`, as it does unless something is broken."""
    end = time.monotonic() + after_s + BOUND_S
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture(name="eventually", scope="session")
def _eventually() -> Callable[..., bool]:
    return eventually


@pytest.fixture(scope="session")
def preloaded(laid_out: dict[str, Path]) -> Iterator[Preloaded]:
    """What starts programs fast."""
    process = Preloaded(laid_out["python3-wrap"])
    yield process
    process.close()


@pytest.fixture
def start(tmp_path: Path, preloaded: Preloaded) -> Iterator[Start]:
    """Starts index.py of an image folder, and waits until it is healthy.

    It listens on a LISTEN_FD socket, or where its setting `port` says.
    """
    with _starting(tmp_path, preloaded) as start_one:
        yield start_one


@pytest.fixture(scope="module")
def shared_start(tmp_path_factory: pytest.TempPathFactory, preloaded: Preloaded) -> Iterator[Start]:
    """As `start`, of what serves all tests of a module."""
    with _starting(tmp_path_factory.mktemp("logs"), preloaded) as start_one:
        yield start_one


@contextlib.contextmanager
def _starting(logs: Path, preloaded: Preloaded) -> Iterator[Start]:
    servers: list[Server] = []

    def start_one(image: Path, **settings: str) -> Server:
        server = _start(image, logs / f"log-{len(servers)}", settings, preloaded)
        servers.append(server)
        healthy = eventually(lambda: server.process.poll() is not None or _is_healthy(server))
        assert healthy and server.process.poll() is None, server.log.read_text()
        return server

    yield start_one
    for server in servers:
        with contextlib.suppress(ProcessLookupError):  # what a module has started ends with it
            os.killpg(server.process.pid, signal.SIGKILL)
        for pid in psutil.pids():  # processes that are forked for requests have groups of their own
            with contextlib.suppress(ProcessLookupError):
                if os.getsid(pid) == server.process.pid:
                    os.kill(pid, signal.SIGKILL)
        server.process.wait(BOUND_S)
        log = server.log.read_text(errors="replace")
        assert BROKEN not in log, log


@pytest.fixture
def run_to_end(tmp_path: Path, preloaded: Preloaded) -> Callable[..., tuple[int, str]]:
    """Runs an index.py that is expected to give up: its exit status and what it said."""

    def run(image: Path, **settings: str) -> tuple[int, str]:
        server = _start(image, tmp_path / "log", settings, preloaded)
        try:
            return server.process.wait(BOUND_S), server.log.read_text()
        finally:
            server.process.kill()

    return run


@pytest.fixture
def in_background() -> Iterator[Callable[..., Future[Any]]]:
    """Calls something in a thread: its future."""
    with ThreadPoolExecutor(32) as threads:
        yield threads.submit


@pytest.fixture
def strangers_at() -> type[Strangers]:
    """A crowd of strangers at an address, as long as its block lasts."""
    return Strangers


@pytest.fixture
def limit_descriptors() -> Callable[[Path, int], None]:
    """Has what is started from an image have so few descriptors."""

    def limit(image: Path, most: int) -> None:
        index = image / "index.py"
        code = f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, {(most, most)})\n"
        text = code + index.read_text()
        index.unlink()
        index.write_text(text)

    return limit


def _start(image: Path, log: Path, settings: dict[str, str], preloaded: Preloaded) -> Server:
    listener = socket.create_server(("127.0.0.1", 0))
    port = settings.get("port")
    known = {
        "PATH": os.environ["PATH"],
        "HOME": str(image),
        "PYTHONUNBUFFERED": "1",
    }

    def with_listener(descriptor: int) -> dict[str, str]:
        return {**known, **({} if port else {"LISTEN_FD": str(descriptor)}), **settings}

    process: subprocess.Popen[bytes] | Forked
    with listener, log.open("wb") as output:
        if preloaded.takes(settings):
            process = preloaded.start(
                image, with_listener(LISTENER), listener.fileno(), output.fileno()
            )
        else:
            process = subprocess.Popen(
                [sys.executable, str(GUARDED)],
                cwd=image,
                env=with_listener(listener.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[listener.fileno()],
                start_new_session=True,  # a signal to its group is not for the tests
            )
        return Server(process, int(port or listener.getsockname()[1]), log)


def _is_healthy(server: Server) -> bool:
    try:
        answer = server.request("GET", "/_/health")
    except OSError:
        return False
    return answer.status == 200 and answer.text == "OK"


@pytest.fixture
def stalling(emptied: Any) -> Iterator[Stalls]:
    """What the store is reached by, and can be made to hang."""
    port = urlsplit(emptied.place.url).port
    assert port is not None
    stalls = Stalls(port)
    yield stalls
    stalls.close()


@pytest.fixture(scope="session")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Each template as an image has it, for images to link to: to copy it takes as long as a test.

    Who changes a file of an image replaces it; of the runtime's, after ``with_own_runtime``.
    """
    templates = {name: tmp_path_factory.mktemp(name) for name in ("plain", "python3-wrap")}
    for name, folder in templates.items():
        lay_out(TEMPLATES / name, folder)
    files = [file for folder in templates.values() for file in folder.rglob("*.py")]
    before = {file: file.stat() for file in files}
    yield templates
    for file, was in before.items():
        now = file.stat()
        same = (now.st_mtime_ns, now.st_size) == (was.st_mtime_ns, was.st_size)
        assert same, f"a test has written to {file.name}, which all images have"


def _image(template: Path, image: Path) -> Path:
    """Link an image to a template that is laid out; its handlers' folder is empty."""
    (image / "function").mkdir(parents=True)
    for each in template.iterdir():
        if each.is_dir():
            (image / each.name).symlink_to(each)
        else:
            os.link(each, image / each.name)
    return image


@pytest.fixture(scope="session")
def empty_image(laid_out: dict[str, Path]) -> Callable[[Path], Path]:
    """Makes an image of a wrap without a handler, at a path."""
    return lambda path: _image(laid_out["python3-wrap"], path)


@pytest.fixture(scope="session")
def with_own_runtime() -> Callable[[Path], Path]:
    """Gives an image a runtime of its own, whose files may be replaced."""

    def own(image: Path) -> Path:
        runtime = image / "wrap"
        template = runtime.readlink()
        runtime.unlink()
        shutil.copytree(template, runtime, copy_function=os.link)
        return runtime

    return own


@pytest.fixture
def plain_image(tmp_path: Path, laid_out: dict[str, Path]) -> Callable[..., Path]:
    """Composes the image of a plain handler from its source."""

    def compose(handler: str, **files: str) -> Path:
        image = _image(laid_out["plain"], tmp_path / "plain")
        _write(image / "function", {"handler.py": handler, **_paths(files)})
        return image

    return compose


@pytest.fixture
def wrap_image(tmp_path: Path, laid_out: dict[str, Path]) -> Callable[..., Path]:
    """Composes the image of a wrap: see `_compose`."""
    return partial(_compose, laid_out, tmp_path)


@pytest.fixture(scope="module")
def shared_image(
    tmp_path_factory: pytest.TempPathFactory, laid_out: dict[str, Path]
) -> Callable[..., Path]:
    """As `wrap_image`, for all tests of a module."""

    def compose(*arguments: Any, **fields: Any) -> Path:
        return _compose(laid_out, tmp_path_factory.mktemp("image"), *arguments, **fields)

    return compose


def _compose(
    laid_out: dict[str, Path],
    folder: Path,
    handlers: dict[str, str | dict[str, str]],
    processes: list[list[int]] | None = None,
    *,
    tasks: dict[int, str] | None = None,
    styles: dict[str, str] | None = None,
    name: str = "test-wrap1",
    mechanism: str = "fork",
    timeout_s: float = 20.0,
    timeouts_s: dict[str, float] | None = None,
    inputs: dict[int, Any] | None = None,
    buckets: list[tuple[list[int], list[int]]] | None = None,
    entry: dict[str, Any] | None = None,
    instances: int = 0,
    **others: Any,
) -> Path:
    """Compose the image of a wrap from the fields of its declaration and handlers' sources.

    Without `inputs` every task gets the request; without `buckets` each waits for what it needs.
    Without `answers` the task whose output the entry answers with is the one that answers.
    An entry may have the wrap's `remotes` with it.
    """
    image = _image(laid_out["python3-wrap"], folder / name)
    tasks = dict(enumerate(handlers)) if tasks is None else tasks
    processes = [list(tasks)] if processes is None else processes
    if entry is not None and "remotes" in entry:
        entry = dict(entry)
        others["remotes"] = entry.pop("remotes")
    output = entry.get("output") if entry is not None else None
    if isinstance(output, int) and not instances and output not in others.get("emits", ()):
        others.setdefault("answers", output)
    remotes = others.get("remotes", {}).values()
    inputs = dict.fromkeys([*tasks, *chain(*remotes)]) if inputs is None else inputs
    buckets = _buckets(inputs) if buckets is None else buckets
    styles = dict.fromkeys(handlers, "flask") | (styles or {})
    if entry is not None and entry.get("machine") is None and entry.get("buckets") is None:
        first = {styles.get(tasks[each]) for each in tasks if inputs.get(each, 0) is None}
        entry = {"styles": sorted(filter(None, first)), **entry}
    fields = (
        f"workflow='test', name={name!r}, mechanism={mechanism!r}, functions={styles!r}, "
        f"tasks={tasks!r}, processes={processes!r}, inputs={inputs!r}, buckets={buckets!r}, "
        f"timeout_s={timeout_s!r}, timeouts_s={timeouts_s or {}!r}, "
        f"instances={instances!r}"
    ) + "".join(f", {name}={value!r}" for name, value in others.items())
    entry_text = f", entry=Entry(**{entry!r})" if entry is not None else ""
    (image / "function" / "handler.py").write_text(
        "from wrap.core.wrap_spec import Entry, Wrap\n" + f"WRAP = Wrap({fields}{entry_text})\n"
    )
    for function, source in handlers.items():
        files = {"handler.py": source} if isinstance(source, str) else source
        _write(image / "function" / "functions" / function / "function", files)
    return image


def _buckets(inputs: dict[int, Any]) -> list[tuple[list[int], list[int]]]:
    """Those of the trigger ``data``, where each task comes after those that it needs."""
    from wrap.core.program import keys
    from wrap.core.triggers import buckets

    needs = {task: [key for key in keys(of) if key in inputs] for task, of in inputs.items()}
    found = buckets(needs, [[task] for task in inputs], "data")
    return [(list(bucket.awaits), list(bucket.starts)) for bucket in found]


def _paths(files: dict[str, str]) -> dict[str, str]:
    return {f"{name}.py": source for name, source in files.items()}


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, source in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source))


gateway = pytest.fixture(name="gateway")(gateways)
shared_gateway = pytest.fixture(name="shared_gateway", scope="module")(gateways)
