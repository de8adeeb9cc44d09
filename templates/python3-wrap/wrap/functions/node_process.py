"""The Node process of a process: started when it is first wanted, and anew when it has died."""

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
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, ClassVar

import msgspec

from wrap.core.errors import TaskError
from wrap.core.run import WORKER_DIED
from wrap.observe import log
from wrap.workers.fork_server import ending

#: What it runs.
_WORKER = Path(__file__).with_name("node_worker.js")
_TOKEN = "CHIRON_NODE_TOKEN"  # noqa: S105 (the name of the variable)
#: The lengths of what is told and of a body.
_HEAD = struct.Struct("!IQ")
_ENCODE, _DECODE = msgspec.json.Encoder().encode, msgspec.json.Decoder().decode
#: Bytes that one call reads, or that are joined to be written by one.
_SMALL = 1 << 16
_BACKLOG = 1024
#: How late a cancelled thread ends that waits, and how long a sound event loop may take to notice
#: that a connection was closed, in milliseconds.
_LOOK_MS, _NOTICE_MS = 250, 1000
_END_S = 5.0
Content = bytes | memoryview
#: What the Node process tells, and the body of that.
Message = tuple[dict[str, Any], bytes | bytearray]
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


class NodeProcess:
    """A Node process, which is called by any number of threads at once.

    Parameters
    ----------
    folder
        Its working directory.

    Raises
    ------
    ImportError
        There is no Node.js.
    """

    _own: ClassVar[tuple[int, NodeProcess] | None] = None
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, folder: Path) -> None:
        program = shutil.which("node")
        if program is None:
            raise ImportError("Node.js is not installed here: node is not on the PATH")
        token = secrets.token_hex(16)
        self._token = token.encode()
        self._address = f"\0chiron-node-{secrets.token_hex(16)}"
        self._idle: list[socket.socket] = []
        self._killed = False
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._address)
            listener.listen(_BACKLOG)
            listener.setblocking(False)
            self._process = subprocess.Popen(
                [program, str(_WORKER), str(listener.fileno())],
                cwd=folder,
                env={**os.environ, _TOKEN: token},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[listener.fileno()],
            )
        threading.Thread(target=_pass_on, args=(self._process.stdout,), daemon=True).start()

    @classmethod
    def own(cls, folder: Path) -> NodeProcess:
        """That of this process, started in `folder` if there is none that lives."""
        known = cls._own
        if known is not None and known[0] == os.getpid() and known[1]._lives:
            return known[1]
        with cls._lock:
            if cls._own is known or cls._own is None:
                cls._own = os.getpid(), cls(folder)
            return cls._own[1]

    @classmethod
    def end_own(cls) -> None:
        """End that of this process."""
        known, cls._own = cls._own, None
        if known is not None and known[0] == os.getpid():
            known[1]._process.kill()
            known[1]._process.wait()

    def call(self, told: Mapping[str, Any], body: Content) -> Message:
        """What it tells, and the body of that. Raises TaskError if it has died."""
        connection = None
        try:
            connection = self._connection()
            _send(connection, _ENCODE(told), body)
            answer, content = _received(connection)
        except OSError as error:
            raise self._died() from error
        except BaseException:  # the task is given up
            if connection is not None:
                self._give_up(connection)
            raise
        self._idle.append(connection)
        return answer, content

    def computed_s(self) -> float:
        """CPU seconds that it has taken."""
        with contextlib.suppress(OSError):
            return time.clock_gettime(~self._process.pid << 3 | 2)  # clock_getcpuclockid(3)
        return 0.0

    def memory_mib(self) -> float:
        """The most memory that it has had."""
        with contextlib.suppress(OSError):
            found = _PEAK.search(Path(f"/proc/{self._process.pid}/status").read_text())
            return int(found[1]) / 1024 if found else 0.0
        return 0.0

    @property
    def _lives(self) -> bool:
        """Whether calls may begin; what is killed takes a moment until it has ended."""
        return not self._killed and self._process.poll() is None

    def _connection(self) -> socket.socket:
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._address)
        connection.sendall(self._token)
        return connection

    def _give_up(self, connection: socket.socket) -> None:
        """Leave a call; an event loop that does not notice it hangs, and is killed."""
        with connection, contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
            poll = select.poll()
            poll.register(connection, select.POLLIN)
            if not poll.poll(_NOTICE_MS):
                self._killed = True
                self._process.kill()

    def _died(self) -> TaskError:
        try:
            how = ending(self._process.wait(_END_S))
        except subprocess.TimeoutExpired:
            self._process.kill()
            how = "closed its connection"
        return TaskError(WORKER_DIED, f"its Node process {how}")


def _send(connection: socket.socket, told: bytes, body: Content) -> None:
    head = _HEAD.pack(len(told), len(body)) + told
    if len(body) <= _SMALL:  # in one piece, which the event loop reads at once
        connection.sendall(b"".join((head, body)))
    else:
        connection.sendall(head)
        connection.sendall(body)


def _received(connection: socket.socket) -> Message:
    """A message, waited for in short calls. Raises ConnectionError at the end of the stream."""
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
        return _DECODE(told), content
    whole = bytearray(length)
    whole[: len(content)] = content
    left = memoryview(whole)[len(content) :]
    while left:
        if poll.poll(_LOOK_MS):
            count = connection.recv_into(left)
            if not count:
                raise ConnectionError
            left = left[count:]
    return _DECODE(told), whole


def _pass_on(said: IO[bytes]) -> None:
    """Write what it prints, which has the functions' names, to the log."""
    with said:
        for line in said:
            log.pass_on(line)
