"""A runtime process, such as Node.js or a JVM, beside a process of the wrap.

The first use starts it; the first use after its death starts another.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import shutil
import socket
import struct
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, ClassVar, Self, cast

from wrap.core.errors import TaskError
from wrap.core.run import WORKER_DIED
from wrap.net.sockets import patient
from wrap.observe import log
from wrap.workers.fork_server import ending

#: The lengths of a header and of a body.
_HEAD = struct.Struct("!IQ")
#: The size of one read, and of a body that is sent together with its header, in bytes.
_SMALL = 1 << 16
_BACKLOG = 1024
#: How often a waiting thread checks for its cancellation, in milliseconds.
_LOOK_MS = 250
_END_S = 5.0
Content = bytes | memoryview
#: A message: its header and its body.
Message = tuple[dict[str, Any], bytes | bytearray]
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


class RuntimeProcess(ABC):
    """A process that any number of threads call at once.

    A subclass sets `program`, `runtime` (its name if it is not installed) and `called` (its name in
    errors), and encodes messages.

    Raises ImportError if the program is not installed.
    """

    program: ClassVar[str]
    runtime: ClassVar[str]
    called: ClassVar[str]
    _own: ClassVar[tuple[int, Any] | None] = None
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, folder: Path) -> None:
        program = shutil.which(self.program)
        if program is None:
            said = f"{self.runtime} is not installed here: {self.program} is not on the PATH"
            raise ImportError(said)
        token = secrets.token_hex(16)
        self._token = token.encode()
        self._address = f"\0chiron-{self.program}-{secrets.token_hex(16)}"
        self._idle: list[socket.socket] = []
        self._retired = False
        #: Resident MiB before the first handler was loaded; 0 until then.
        self.bare_mib = 0.0
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._address)
            listener.listen(_BACKLOG)
            listener.setblocking(False)
            self.process = self.start(program, listener, folder, token)
        threading.Thread(target=_pass_on, args=(self.process.stdout,), daemon=True).start()

    @abstractmethod
    def start(
        self, program: str, listener: socket.socket, folder: Path, token: str
    ) -> subprocess.Popen[bytes]:
        """Start the program; it accepts connections that begin with the token."""

    @abstractmethod
    def encoded(self, told: Mapping[str, Any]) -> bytes: ...

    @abstractmethod
    def decoded(self, told: bytes) -> dict[str, Any]: ...

    @abstractmethod
    def give_up(self, connection: socket.socket, told: Mapping[str, Any]) -> None:
        """Cancel the call `told` and close its connection."""

    @classmethod
    def own(cls, folder: Path) -> Self:
        """Return this process's runtime process; start it in `folder` unless it is alive."""
        known = cls._own
        if known is not None and known[0] == os.getpid() and known[1].lives:
            return cast(Self, known[1])
        with cls._lock:
            if cls._own is known or cls._own is None:
                cls._own = os.getpid(), cls(folder)
            return cast(Self, cls._own[1])

    @classmethod
    def end_own(cls) -> None:
        known, cls._own = cls._own, None
        if known is not None and known[0] == os.getpid():
            known[1].process.kill()
            known[1].process.wait()

    def call(self, told: Mapping[str, Any], body: Content) -> Message:
        """Send a message and return the answer. Raises TaskError if the process died."""
        connection = None
        try:
            connection = self._connection()
            _send(connection, self.encoded(told), body)
            said, content = _received(connection)
            answer = self.decoded(said)
        except OSError as error:
            raise self._died() from error
        except BaseException:  # the task is cancelled
            if connection is not None:
                with connection:
                    self.give_up(connection, told)
            raise
        self._idle.append(connection)
        return answer, content

    def computed_s(self) -> float:
        with contextlib.suppress(OSError):
            return time.clock_gettime(~self.process.pid << 3 | 2)  # clock_getcpuclockid(3)
        return 0.0

    def memory_mib(self) -> float:
        with contextlib.suppress(OSError):
            found = _PEAK.search(Path(f"/proc/{self.process.pid}/status").read_text())
            return int(found[1]) / 1024 if found else 0.0
        return 0.0

    @property
    def lives(self) -> bool:
        """Whether calls may begin; a killed process takes a moment to end."""
        return not self._retired and self.process.poll() is None

    def retire(self) -> None:
        """Let no further call begin here."""
        self._retired = True

    def kill(self) -> None:
        """Kill the process and all its calls."""
        self.retire()
        self.process.kill()
        self.process.wait()

    def _connection(self) -> socket.socket:
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        connection = patient(socket.socket(socket.AF_UNIX))
        connection.connect(self._address)
        connection.sendall(self._token)
        return connection

    def _died(self) -> TaskError:
        try:
            how = ending(self.process.wait(_END_S))
        except subprocess.TimeoutExpired:
            self.process.kill()
            how = "closed its connection"
        return TaskError(WORKER_DIED, f"its {self.called} process {how}")


def _send(connection: socket.socket, told: bytes, body: Content) -> None:
    head = _HEAD.pack(len(told), len(body)) + told
    if len(body) <= _SMALL:  # one write, so that one read receives it
        connection.sendall(b"".join((head, body)))
    else:
        connection.sendall(head)
        connection.sendall(body)


def _received(connection: socket.socket) -> tuple[bytes, bytes | bytearray]:
    """Receive a message; checks for cancellation meanwhile. Raises ConnectionError at the end."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    begin = b""
    while len(begin) < _HEAD.size or len(begin) < _HEAD.size + _HEAD.unpack_from(begin)[0]:
        while not poll.poll(_LOOK_MS):
            pass
        if not (piece := connection.recv(_SMALL)):
            raise ConnectionError
        begin += piece
    told_length, length = _HEAD.unpack_from(begin)
    told, content = begin[_HEAD.size :][:told_length], begin[_HEAD.size + told_length :]
    if len(content) == length:
        return told, content
    whole = bytearray(length)
    whole[: len(content)] = content
    left = memoryview(whole)[len(content) :]
    while left:
        if poll.poll(_LOOK_MS):
            count = connection.recv_into(left)
            if not count:
                raise ConnectionError
            left = left[count:]
    return told, whole


def _pass_on(said: IO[bytes]) -> None:
    """Copy the process's output, which names the functions, to the log."""
    with said:
        for line in said:
            log.pass_on(line)
