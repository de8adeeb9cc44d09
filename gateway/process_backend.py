"""Replicas that are processes of this machine, on cores of their own under a CPU limit."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import socket
from collections.abc import Sequence
from typing import cast

from gateway.backend import Child, Order
from gateway.environment import Sandbox, process_environment
from gateway.function_user import FunctionUser
from gateway.images import ImageStore, PinnedImage
from gateway.launcher import Command, Launcher, Process
from gateway.logs import LineReader, Pauses
from gateway.names import BackendName
from gateway.processes import CpuMeter, Usage, usage_of_trees

_BACKLOG = 1024
_log = logging.getLogger(__name__)


class Cores:
    """The cores this process may use, and how many function processes are bound to each."""

    def __init__(self, available: set[int] | None = None) -> None:
        self._load = dict.fromkeys(sorted(available or os.sched_getaffinity(0)), 0)

    @property
    def count(self) -> int:
        """How many cores there are to use."""
        return len(self._load)

    def take(self, count: int | None) -> list[int] | None:
        """The `count` least loaded cores; None, for all of them, without a limit."""
        if count is None:
            return None
        taken = sorted(self._load, key=lambda core: (self._load[core], core))[:count]
        for core in taken:
            self._load[core] += 1
        return taken

    def give_back(self, taken: list[int] | None) -> None:
        """Return what `take` gave."""
        for core in taken or []:
            self._load[core] -= 1


class ProcessBackend:
    """Runs the image folders of `images` as `user`, or as this process's own user if None."""

    name: BackendName = "process"

    def __init__(
        self, launcher: Launcher, images: ImageStore, url: str, user: FunctionUser | None = None
    ) -> None:
        self._launcher = launcher
        self._images = images
        self._url = url
        self._user = user
        self._cores = Cores()
        self._meter = CpuMeter()
        self._opening: set[asyncio.Task[object]] = set()

    async def use(self, reference: str) -> _FolderInUse:
        """Pin the image's current folder."""
        return _FolderInUse(self, self._images.pin(reference))

    async def usage(self, children: Sequence[Child]) -> Usage:
        """CPU time and proportional set size of the process trees."""
        started = [child for child in children if isinstance(child, Process) and child.init]
        roots = {child.init: child.since for child in started}
        return await asyncio.to_thread(usage_of_trees, roots, self._meter)

    async def close(self) -> None:
        """Have the supervisor end what is left."""
        await self._launcher.close()

    def start(self, image: PinnedImage, order: Order, output: LineReader) -> Process:
        """As `ImageInUse.start`."""
        user = self._user_for(image)
        cores = self._cores.take(order.deployment.cores)
        try:
            with socket.socket() as listener, self._pipe_into(output) as writer:
                listener.bind(("127.0.0.1", 0))
                listener.listen(_BACKLOG)
                child = self._launcher.start(
                    self._command(image, order, cores, user), listener, writer.fileno()
                )
        except BaseException:
            self._cores.give_back(cores)
            raise
        child.ended.add_done_callback(lambda _: self._cores.give_back(cores))
        return child

    def _pipe_into(self, output: LineReader) -> io.FileIO:
        """The write end of a pipe that `output` reads."""
        reader, writer = os.pipe()
        loop = asyncio.get_running_loop()
        source = os.fdopen(reader, "rb", buffering=0)
        opening = loop.create_task(loop.connect_read_pipe(lambda: _Output(output), source))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        return io.FileIO(writer, "w")

    def _user_for(self, pinned: PinnedImage) -> FunctionUser | None:
        """The user to run it as: root itself, with a warning, where the user cannot get at it."""
        python, folder = pinned.image.python, pinned.image.folder
        user = self._user
        barrier = user and user.barred(folder, folder / "function", python, python.resolve())
        if user and barrier:
            message = "image %s runs as root, since %s may not enter %s"
            _log.warning(message, pinned.image.name, user.name, barrier)
            return None
        return user

    def _command(
        self,
        pinned: PinnedImage,
        order: Order,
        cores: list[int] | None,
        user: FunctionUser | None,
    ) -> Command:
        image = pinned.image
        sandbox = Sandbox(order.folder / "home", order.folder / "tmp", order.secrets)
        for private in (sandbox.home, sandbox.temporary):
            private.mkdir(mode=0o700, parents=True)
            if user:
                user.own(private)
        return Command(
            command=[str(image.python), "index.py"],
            folder=image.folder,
            env=process_environment(order.deployment, image, sandbox, self._url),
            cores=cores,
            memory=order.deployment.memory,
            user=(user.uid, user.gid) if user else None,
        )


class _Output(asyncio.Protocol):
    """Reads a process's output."""

    def __init__(self, lines: LineReader) -> None:
        self._lines = lines
        self._pauses = Pauses()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the pipe, to pause it."""
        self._pipe = cast(asyncio.ReadTransport, transport)

    def data_received(self, data: bytes) -> None:
        """Pass it on; the pipe fills, and the process waits, while reading pauses."""
        self._lines.feed(data)
        if pause_s := self._pauses.after_reading_s():
            self._pipe.pause_reading()
            asyncio.get_running_loop().call_later(pause_s, self._pipe.resume_reading)

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on what has no end."""
        self._lines.end()


class _FolderInUse:
    """A pinned image folder."""

    def __init__(self, backend: ProcessBackend, pinned: PinnedImage) -> None:
        self._backend = backend
        self._pinned = pinned

    def start(self, order: Order, output: LineReader) -> Process:
        """Start its index.py."""
        return self._backend.start(self._pinned, order, output)

    def release(self) -> None:
        """Unlock the folder."""
        self._pinned.release()
