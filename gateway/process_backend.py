"""Replicas that are processes of this machine, on cores of their own under a CPU limit."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import os
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, cast

from chiron.gateway import processes
from chiron.gateway.backend import (
    BACKLOG,
    NOT_STARTED,
    Child,
    ImageInUse,
    StartRequest,
    Supervision,
    above_limit,
)
from chiron.gateway.function_user import FunctionUser
from chiron.gateway.images import Image, ImageStore
from chiron.gateway.logs import LineReader, Pauses
from chiron.gateway.names import BackendName
from chiron.gateway.processes import CpuMeter, Usage
from chiron.gateway.supervisor import MAX_MESSAGE

_log = logging.getLogger(__name__)


class Cores:
    """The cores of this process, with the number of function processes bound to each."""

    def __init__(self, available: set[int] | None = None) -> None:
        self._load = dict.fromkeys(sorted(available or os.sched_getaffinity(0)), 0)

    def take(self, number: int | None) -> list[int] | None:
        """Bind to the `number` least loaded cores; without a limit return None, for all cores."""
        if number is None:
            return None
        taken = sorted(self._load, key=lambda core: (self._load[core], core))[:number]
        for core in taken:
            self._load[core] += 1
        return taken

    def give_back(self, taken: list[int] | None) -> None:
        for core in taken or []:
            self._load[core] -= 1


@dataclass
class ProcessBackend:
    """Runs the image folders of `images` as `user`, or as this process's own user if None."""

    launcher: Launcher
    images: ImageStore
    url: str
    user: FunctionUser | None
    _cores: Cores = field(default_factory=Cores)
    _meter: CpuMeter = field(default_factory=CpuMeter)
    _opening: set[asyncio.Task[object]] = field(default_factory=set)
    _told: set[Path] = field(default_factory=set)
    name: ClassVar[BackendName] = "process"
    inner_listener: ClassVar[None] = None

    async def use(self, reference: str) -> ImageInUse:
        """Lock the image's current folder."""
        image, lock = self.images.pin(reference)
        return ImageInUse(partial(self._start, image), partial(os.close, lock))

    async def usage(self, children: Sequence[Child]) -> Usage:
        """Return CPU time and proportional set size of the process trees."""
        started = [child for child in children if isinstance(child, Process) and child.init]
        roots = {child.init: child.since for child in started}
        return await asyncio.to_thread(processes.usage_of_trees, roots, self._meter)

    async def close(self) -> None:
        """Have the supervisor end the remaining processes."""
        await self.launcher.close()

    def _start(self, image: Image, order: StartRequest, output: LineReader) -> Process:
        user = self._user_for(image)
        cores = self._cores.take(order.deployment.cores)
        try:
            with socket.socket() as listener, self._pipe_into(output) as writer:
                listener.bind(("127.0.0.1", 0))
                listener.listen(BACKLOG)
                message = {**self._start_message(image, order, user), "cores": cores}
                child = self.launcher.start(message, listener, writer.fileno())
        except BaseException:
            self._cores.give_back(cores)
            raise
        child.ended.add_done_callback(lambda _: self._cores.give_back(cores))
        return child

    def _pipe_into(self, output: LineReader) -> io.FileIO:
        """Return the write end of a pipe that `output` reads."""
        reader, writer = os.pipe()
        loop = asyncio.get_running_loop()
        source = os.fdopen(reader, "rb", buffering=0)
        opening = loop.create_task(loop.connect_read_pipe(lambda: _Output(output), source))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        return io.FileIO(writer, "w")

    def _user_for(self, image: Image) -> FunctionUser | None:
        """Return the function's user: root, with one warning, if `user` cannot read the image."""
        python, folder = image.python, image.folder
        user = self.user
        barrier = user and user.barred(folder, folder / "function", python, python.resolve())
        if user and barrier:
            if barrier not in self._told:
                self._told.add(barrier)
                message = "functions run as root, as %s may not enter %s: let others enter it"
                _log.warning(message, user.name, barrier)
            return None
        return user

    def _start_message(
        self, image: Image, order: StartRequest, user: FunctionUser | None
    ) -> dict[str, Any]:
        """Return the start message; the deployment's variables override the image's."""
        home, temporary = order.folder / "home", order.folder / "tmp"
        for private in (home, temporary):
            private.mkdir(mode=0o700, parents=True)
            if user:
                user.own(private)
        memory = order.deployment.memory
        return {
            "command": [str(image.python), "index.py"],
            "folder": str(image.folder),
            "env": {
                **({"MEMORY_LIMIT_BYTES": str(memory)} if memory else {}),
                "PATH": f"{image.python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
                "HOME": str(home),
                "TMPDIR": str(temporary),
                "LANG": "C.UTF-8",
                "PYTHONUNBUFFERED": "1",
                **image.env,
                **order.deployment.environment(str(order.secrets), self.url),
            },
            "memory": memory or 0,
            "user": (user.uid, user.gid) if user else None,
        }


class _Output(asyncio.Protocol):
    """Reads a process's output."""

    def __init__(self, lines: LineReader) -> None:
        self._lines = lines
        self._pauses = Pauses()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pipe = cast(asyncio.ReadTransport, transport)

    def data_received(self, data: bytes) -> None:
        """Pass the data on; while reading pauses, the pipe fills and the process waits."""
        self._lines.feed(data)
        if pause_s := self._pauses.after_reading_s():
            self._pipe.pause_reading()
            asyncio.get_running_loop().call_later(pause_s, self._pipe.resume_reading)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lines.end()


class Process(Child):
    """A function process; `ident` is its id at the supervisor."""

    def __init__(self, launcher: Launcher, ident: int) -> None:
        super().__init__()
        self.ident = ident
        #: The pid of its init process, the ancestor of all its processes; 0 until it has started.
        self.init = 0
        #: The number of processes that the kernel had killed for lack of memory before.
        self.kills = processes.killed_for_memory()
        self._launcher = launcher

    def signal(self, number: signal.Signals) -> None:
        """Have the supervisor signal it."""
        if not self.ended.done():
            self._launcher.signal(self.ident, number)


@dataclass
class Launcher(Supervision):
    """The channel to the supervisor; closing it ends every process that the supervisor started."""

    _children: dict[int, Process] = field(default_factory=dict)
    _idents: count[int] = field(default_factory=count)

    def start(self, spec: dict[str, Any], listener: socket.socket, output: int) -> Process:
        """Order a process that inherits `listener` and writes to `output`; returns at once.

        Args:
            spec: its `command`, `folder` and `env`; its `cores`, or None for all; its `memory`
                limit in bytes, 0 for none; the uid and gid of its `user`, or None for the gateway's
                own.

        Raises OSError if the message is too long, or the supervisor is gone.
        """
        child = Process(self, next(self._idents))
        child.port = listener.getsockname()[1]
        message = json.dumps({"do": "start", "id": child.ident, **spec}).encode()
        if len(message) > MAX_MESSAGE:
            raise OSError(f"its environment is larger than {MAX_MESSAGE // 1024} KiB")
        self._children[child.ident] = child
        socket.send_fds(self.channel, [message], [listener.fileno(), output])
        self.resume()
        return child

    def signal(self, ident: int, number: signal.Signals) -> None:
        """Signal a process; SIGKILL reaches all its descendants."""
        message = {"do": "signal", "id": ident, "signal": int(number)}
        with contextlib.suppress(OSError):  # the supervisor has ended, and its processes with it
            self.channel.send(json.dumps(message).encode())
        self.resume()

    def receive(self) -> None:
        """Handle one message, or the end of the supervisor."""
        try:
            data = self.channel.recv(MAX_MESSAGE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            for lost in list(self._children.values()):
                self._end(lost, -signal.SIGKILL, "the supervisor process is gone")
            super().receive()
            return
        message = json.loads(data)
        child = self._children.get(message["id"])
        if child is None:
            return  # its end was already reported
        match message:
            case {"pid": pid, "init": init}:
                child.pid, child.init = pid, init
                child.started.set()
            case {"error": error}:
                self._end(child, NOT_STARTED, error)
            case {"memory": used, "limit": limit}:
                child.fault = f"killed: it used {used >> 20} MiB, {above_limit(limit)}"
            case {"exit": code}:
                self._end(child, code)

    def _end(self, child: Process, code: int, error: str | None = None) -> None:
        del self._children[child.ident]
        killed = code == -signal.SIGKILL and not (error or child.fault)
        if killed and processes.killed_for_memory() > child.kills:
            child.fault = (
                "killed by SIGKILL; the kernel has killed for want of memory since it began"
            )
        child.end(code, error)
