"""A Java handler; the handlers of a process share one JVM, in which each run has a thread.

Runs are parallel. Each function has its own class loader. No two runs use one handler object at the
same time.
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from wrap.core.errors import TaskError
from wrap.functions import java_build
from wrap.functions.function_runner import Place
from wrap.functions.in_runtime import InRuntime
from wrap.functions.runtime_process import Content, Message, RuntimeProcess
from wrap.values.value import Object

#: Options for least memory and threads, unless the user sets JVM options.
_OPTIONS = ("-XX:+UseSerialGC", "-Xms16m")
#: The percentage of the wrap's memory for the heaps of all its JVMs. The profiles of its functions
#: determine that memory.
_HEAPS_PERCENT = 75.0
_USERS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_ALWAYS = (
    "-Dfile.encoding=UTF-8",
    "-Djdk.nio.maxCachedBufferSize=65536",
    "-XX:-UseDynamicNumberOfCompilerThreads",  # one that ended would have computed nothing
)
_WORKER = "chiron.Worker"
#: Prefixes of the names of a JVM's compiler threads.
_COMPILERS = ("C1 Compiler", "C2 Compiler")
_LENGTH = struct.Struct("!I")
_HEADERS, _FRAMES, _STATE = "headers.", "frames.", "state."


class JavaProcess(RuntimeProcess):
    """A JVM; a header is pairs of texts, each preceded by its length."""

    program, runtime, called = "java", "Java 17", "Java"
    #: How many processes of the wrap have a JVM.
    in_wrap: ClassVar[int] = 1

    def __init__(self, folder: Path) -> None:
        self._calls = itertools.count()
        self._running = 0
        self._counting = threading.Lock()
        super().__init__(folder)

    def start(
        self, program: str, listener: socket.socket, folder: Path, token: str
    ) -> subprocess.Popen[bytes]:
        listener.setblocking(True)
        theirs, ours = os.pipe()
        self._lifeline = os.fdopen(ours, "wb", buffering=0)  # the JVM ends when this pipe closes
        self._lifeline.write(token.encode())
        heap = f"RAMPercentage={_HEAPS_PERCENT / self.in_wrap:.3f}"
        default = (*_OPTIONS, f"-XX:Min{heap}", f"-XX:Max{heap}")
        chosen = () if any(name in os.environ for name in _USERS) else default
        options = [*chosen, *_ALWAYS, "-cp", str(java_build.worker())]
        try:
            return subprocess.Popen(
                [program, *options, _WORKER, str(theirs)],
                cwd=folder,
                stdin=listener.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs],
            )
        finally:
            os.close(theirs)

    def call(self, told: Mapping[str, Any], body: Content) -> Message:
        """Call as `RuntimeProcess.call`; the last call of a retired process kills it."""
        with self._counting:
            self._running += 1
        try:
            return super().call({**told, "call": next(self._calls)}, body)
        finally:
            with self._counting:
                self._running -= 1
                last = not self._running and self._retired
            if last:
                self.kill()

    def encoded(self, told: Mapping[str, Any]) -> bytes:
        texts = (text.encode("utf-8", "replace") for text in _flat(told))
        return b"".join(_LENGTH.pack(len(text)) + text for text in texts)

    def decoded(self, told: bytes) -> dict[str, Any]:
        texts, at = list[str](), 0
        while at < len(told):
            begin = at + _LENGTH.size
            at = begin + _LENGTH.unpack_from(told, at)[0]
            texts.append(told[begin:at].decode())
        found: dict[str, Any] = {"headers": [], "frames": []}
        for name, text in zip(texts[::2], texts[1::2], strict=True):
            if name.startswith(_HEADERS):
                found["headers"].append((name.removeprefix(_HEADERS), text))
            elif name.startswith(_FRAMES):
                found["frames"].append(f"{name.removeprefix(_FRAMES)} in {text}")
            else:
                found[name] = int(text) if name == "status" else text
        return found

    def give_up(self, connection: socket.socket, told: Mapping[str, Any]) -> None:
        """Interrupt a run; if it does not end, retire its JVM."""
        connection.close()
        if "call" not in told:  # the interruption itself is cancelled
            self.kill()
            return
        with suppress(TaskError):  # it has died
            answer, _ = super().call({"give up": told["call"]}, b"")
            if answer["ended"] != "true":
                self.retire()

    def computed_s(self) -> float:
        """Return its CPU seconds without its compiler threads, whose work declines."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*")
        return super().computed_s() - sum(map(_compiling_s, tasks))


class Java(InRuntime):
    """A function with a ``com.openfaas.function.Handler``."""

    runtime, exits = JavaProcess, "System.exit"

    def __init__(self, name: str, style: str, place: Place) -> None:
        super().__init__(name, style, place)
        wrap = place.wrap
        own = [[wrap.functions[wrap.tasks[task]] for task in tasks] for tasks in wrap.processes]
        JavaProcess.in_wrap = max(1, sum(style in styles for styles in own))

    def state(self) -> dict[str, str]:
        given = super().state().items()
        return {key.removeprefix(_STATE): each for key, each in given if key.startswith(_STATE)}

    def code(self) -> str:
        """Return the class path, the function's own classes first."""
        return "\0".join(map(str, java_build.class_path(self.folder)))

    def unsaid_type(self, given: Object, *, is_request: bool) -> str:
        """Return "" for a request, else the type of the other task's output."""
        return "" if is_request else given.answer_type()

    def joined(self, name: str, first: str, second: str) -> str:
        return first

    def frames(self, answer: Mapping[str, Any]) -> Sequence[str]:
        frames: Sequence[str] = answer["frames"]
        return frames


def _flat(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield names and values as alternating texts."""
    for name, value in told.items():
        if isinstance(value, Mapping):
            for inner, each in value.items():
                yield from (f"{name}.{inner}", str(each))
        else:
            yield from (name, str(value))


def _compiling_s(thread: Path) -> float:
    """Return the CPU seconds of a JVM's compiler thread; 0 for other threads."""
    with suppress(OSError, ValueError):
        if (thread / "comm").read_text().startswith(_COMPILERS):
            return int((thread / "schedstat").read_text().split()[0]) / 1e9
    return 0.0
