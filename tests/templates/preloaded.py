"""Starts programs in processes that have imported what every wrap imports.

To load Python and modules takes most of the time of a start. So one process loads them once in a
session, and forks for each program. The wrap's modules that look at the process as they are
imported look once more; an image with a runtime of its own imports all of them.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from itertools import count
from pathlib import Path

GUARDED = Path(__file__).with_name("guarded.py")
#: Variables that Python and the C library read once, as they start.
_READ_AT_START = re.compile(r"PYTHON|LANG|LC_|LD_|TZ$|MALLOC_|GLIBC_")
#: The descriptor of what a program listens on.
LISTENER = 3
_MOST_BYTES = 1 << 17
#: Modules that keep from their import what is the process's own, and only functions that use it.
_LOOK_AT_THE_PROCESS = (
    *("wrap.config.redaction", "wrap.functions.command", "wrap.functions.styles"),
    "wrap.observe.metrics",
)
#: What only some wraps import.
_OF_SOME = (
    *("flask", "urllib3", "wrap.dispatch.sessions", "wrap.functions.by_flask"),
    *("wrap.functions.command", "wrap.functions.java", "wrap.functions.node"),
)


class Forked:
    """What ``subprocess.Popen`` would be, of a process that another one has forked.

    ``told`` is where its exit code can be read once it has ended.
    """

    def __init__(self, pid: int, told: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._told = open(told, "rb", buffering=0)  # noqa: SIM115 (as long as this is there)
        self._reading = threading.Lock()

    def poll(self) -> int | None:
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout_s: float | None) -> int | None:
        ended = select.poll()  # each thread has its own
        ended.register(self._told, select.POLLIN)
        wait_ms = None if timeout_s is None else 1000 * timeout_s
        if self.returncode is None and ended.poll(wait_ms):
            with self._reading:
                if self.returncode is None:
                    self.returncode = int(self._told.read(16))
        return self.returncode


class Preloaded:
    """The process that forks; `template` is the wrap's, whose libraries it imports."""

    def __init__(self, template: Path) -> None:
        self._control, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(its.fileno()), str(template)],
                env={"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
            )
        self._asking = threading.Lock()

    @staticmethod
    def takes(settings: Mapping[str, str]) -> bool:
        """Whether a forked process can have these variables."""
        return not any(map(_READ_AT_START.match, settings))

    def start(
        self, image: Path, environment: Mapping[str, str], listener: int, output: int
    ) -> Forked:
        """Start the program of an image, in a session of its own.

        It has the descriptor `listener` as ``LISTENER``, and no other but `output` to write to.
        """
        told, tells = os.pipe()
        try:
            message = json.dumps([str(image), dict(environment)]).encode()
            assert len(message) < _MOST_BYTES
            with self._asking:
                socket.send_fds(self._control, [message], [listener, output, tells])
                pid = int(self._control.recv(16))
        finally:
            os.close(tells)
        return Forked(pid, told)

    def close(self) -> None:
        self._control.close()
        self._process.wait()


class _Forking:
    """Forks for each request, and tells how what was forked has ended."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._waits = select.poll()
        self._waits.register(control, select.POLLIN)
        self._running: dict[int, tuple[int, int]] = {}  # descriptor of a process -> pid, tells

    def serve(self) -> None:
        """Return in each forked process, once it is as one that was started."""
        while True:
            for descriptor, _ in self._waits.poll():
                if descriptor in self._running:
                    self._tell_end(descriptor)
                elif self._fork():
                    return

    def _tell_end(self, descriptor: int) -> None:
        pid, tells = self._running.pop(descriptor)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self._waits.unregister(descriptor)
        os.close(descriptor)
        with contextlib.suppress(BrokenPipeError):  # nobody waits for it
            os.write(tells, str(code).encode())
        os.close(tells)

    def _fork(self) -> bool:
        """Whether this is the process that was forked."""
        message, descriptors, _, _ = socket.recv_fds(self._control, _MOST_BYTES, 3)
        if not message:  # the tests are over
            sys.exit()
        pid = os.fork()
        if not pid:
            self._become(*json.loads(message), *descriptors)
            return True
        *others, tells = descriptors
        for each in others:
            os.close(each)
        handle = os.pidfd_open(pid)
        self._running[handle] = pid, tells
        self._waits.register(handle, select.POLLIN)
        return False

    def _become(
        self, image: str, environment: Mapping[str, str], listener: int, output: int, tells: int
    ) -> None:
        os.setsid()
        self._control.send(str(os.getpid()).encode())
        self._control.close()
        for handle, (_, other) in self._running.items():
            os.close(handle)
            os.close(other)
        os.close(tells)
        for number in (1, 2):
            os.dup2(output, number)
        os.close(output)
        if listener != LISTENER:
            os.dup2(listener, LISTENER, inheritable=False)
            os.close(listener)
        os.chdir(image)
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None
        runtime = Path(image) / "wrap"
        is_wrap = (runtime / "core" / "run.py").exists()
        if not is_wrap:  # wraps freeze all themselves
            gc.unfreeze()
        if is_wrap and runtime.is_symlink():
            _belong_to(runtime)
        else:
            _forget(_modules())


def _preload(template: Path) -> None:
    """Import what wraps do."""
    sys.path.insert(0, str(template))
    for name in ("wrap.bootstrap", *_OF_SOME):
        importlib.import_module(name)
    del sys.path[0]
    gc.collect()
    gc.freeze()


def _modules() -> set[str]:
    """The wrap's modules that are imported."""
    return {name for name in sys.modules if name.partition(".")[0] == "wrap"}


def _forget(names: set[str]) -> None:
    """Have modules imported anew."""
    for name in names & sys.modules.keys():
        del sys.modules[name]
        package, _, module = name.rpartition(".")
        if package in sys.modules:
            vars(sys.modules[package]).pop(module, None)


def _belong_to(runtime: Path) -> None:
    """Have the wrap's modules be those of the image, in a process that has just begun."""
    for name in _modules():
        module, path = sys.modules[name], runtime.joinpath(*name.split(".")[1:])
        if hasattr(module, "__path__"):
            module.__path__ = [str(path)]
        module.__file__ = f"{path}.py"
    for name in _LOOK_AT_THE_PROCESS:
        importlib.reload(sys.modules[name])
    for name, start in (("net.messages", os.urandom(7)), ("dispatch.bucket_runs", os.urandom(7))):
        _set(name, "_NUMBERS", count(int.from_bytes(start, "big")))
    _set("http.server.program", "_STARTED_IN", str(Path.cwd()))
    _set("http.server.program", "_STARTED_WITH", dict(os.environ))


def _set(module: str, name: str, value: object) -> None:
    names = vars(sys.modules[f"wrap.{module}"])
    assert name in names, f"{module} has no {name} any more"
    names[name] = value


if __name__ == "__main__":
    control, template = socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2])
    # As of a process that was started with the program: it may start itself anew.
    sys.argv[:], sys.orig_argv[:] = [str(GUARDED)], [sys.executable, str(GUARDED)]
    import guarded

    _preload(template)
    _Forking(control).serve()
    guarded.main()
