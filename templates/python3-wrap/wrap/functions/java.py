"""A Java handler; all of a process share one JVM, in which each run has a thread: none has a lock.

A function's classes come from a loader of its own. A run has a handler object that no other run
has at the same time.
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
from typing import Any

from wrap.core.errors import TaskError
from wrap.functions import java_build
from wrap.functions.in_runtime import InRuntime
from wrap.functions.runtime_process import Content, Message, RuntimeProcess
from wrap.values.value import Object

#: The style of such functions.
JAVA = "java"
#: Unless the user says what a JVM is to be like: of least memory and threads, which may grow to
#: what its wrap was given by what its functions were seen to take.
_OPTIONS = (
    "-XX:+UseSerialGC",
    "-Xms16m",
    "-XX:MinRAMPercentage=75",
    "-XX:MaxRAMPercentage=75",
)
_USERS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_ALWAYS = (
    "-Dfile.encoding=UTF-8",
    "-Djdk.nio.maxCachedBufferSize=65536",
    "-XX:-UseDynamicNumberOfCompilerThreads",  # one that ended would have computed nothing
)
_WORKER = "chiron.Worker"
#: How the names of a JVM's threads begin that compile what it runs.
_COMPILERS = ("C1 Compiler", "C2 Compiler")
_LENGTH = struct.Struct("!I")
_HEADERS, _FRAMES = "headers.", "frames."


class JavaProcess(RuntimeProcess):
    """A JVM; what is told are texts in pairs, each after its length."""

    program, runtime, called = "java", "Java 17", "Java"

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
        self._lifeline = os.fdopen(ours, "wb", buffering=0)  # whose end is the JVM's
        self._lifeline.write(token.encode())
        chosen = () if any(name in os.environ for name in _USERS) else _OPTIONS
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
        """As `RuntimeProcess.call`; the last call of a process that hangs ends that."""
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
        """Interrupt a run; if it does not end, no further call begins in its JVM."""
        connection.close()
        if "call" not in told:  # the interruption itself is given up
            self.kill()
            return
        with suppress(TaskError):  # it has died
            answer, _ = super().call({"give up": told["call"]}, b"")
            if answer["ended"] != "true":
                self.retire()

    def computed_s(self) -> float:
        """CPU seconds that it has taken, without its compilers', which have less and less to do."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*")
        return super().computed_s() - sum(map(_compiling_s, tasks))


class Java(InRuntime):
    """A function with a ``com.openfaas.function.Handler``."""

    runtime, exits = JavaProcess, "System.exit"

    def code(self) -> str:
        """The class path, its own classes first."""
        return "\0".join(map(str, java_build.class_path(self.folder)))

    def unsaid_type(self, given: Object) -> str:
        """None of a request; of another task's output what that is."""
        return "" if isinstance(given.head, dict) else given.answer_type()

    def frames(self, answer: Mapping[str, Any]) -> Sequence[str]:
        frames: Sequence[str] = answer["frames"]
        return frames


def _flat(told: Mapping[str, Any]) -> Iterator[str]:
    """Names and values as texts, by turns."""
    for name, value in told.items():
        if isinstance(value, Mapping):
            for inner, each in value.items():
                yield from (f"{name}.{inner}", str(each))
        else:
            yield from (name, str(value))


def _compiling_s(thread: Path) -> float:
    """CPU seconds of a JVM's thread, if that compiles."""
    with suppress(OSError, ValueError):
        if (thread / "comm").read_text().startswith(_COMPILERS):
            return int((thread / "schedstat").read_text().split()[0]) / 1e9
    return 0.0
