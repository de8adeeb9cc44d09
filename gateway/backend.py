"""The interface of backends, which run replicas as local processes or Docker containers.

A backend provides images in use; an image in use starts replicas; a replica listens on a port, can
be signalled, and ends. The gateway does the rest (readiness, draining, restarts, scaling) in the
same way for all backends. Each has a supervisor process, which cleans up after a killed gateway.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from chiron.gateway import processes
from chiron.gateway.deployment import Deployment
from chiron.gateway.logs import LineReader
from chiron.gateway.names import BackendName
from chiron.gateway.supervisor import MAX_MESSAGE

_log = logging.getLogger("gateway")
HEALTH_PATH = "/_/health"
#: The most connections that wait to be accepted.
BACKLOG = 1024
#: The exit status of a failed start, as in a shell.
NOT_STARTED = 127


class Tasks(set[asyncio.Task[None]]):
    """Background tasks: the event loop alone would not keep them from garbage collection."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work`, and keep its task until it is done."""
        task = asyncio.create_task(work)
        self.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("what runs in the background failed", exc_info=error)


@dataclass(frozen=True)
class StartRequest:
    """A replica to start."""

    #: Its name, unique on this machine.
    instance: str
    deployment: Deployment
    #: A path for its private files; the caller removes it afterwards.
    folder: Path
    #: The folder with its secrets' files.
    secrets: Path


class Child(ABC):
    """A replica's state in its backend: its address, why it failed to start, and how it ended."""

    def __init__(self) -> None:
        #: Exit status, negative for a signal; also set after a failed start.
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        #: The time of the order (time.monotonic).
        self.since = time.monotonic()
        #: Set when the replica accepts connections, or has failed to start.
        self.started = asyncio.Event()
        #: The address on which it listens.
        self.host = "127.0.0.1"
        self.port = 0
        #: The path that answers 200 once the replica is ready.
        self.health_path = HEALTH_PATH
        #: The pid of its first process in this machine's namespace.
        self.pid: int | None = None
        #: Why it could not be started.
        self.error: str | None = None
        #: Why it was killed, if it did not end by itself.
        self.fault: str | None = None

    @abstractmethod
    def signal(self, number: signal.Signals) -> None:
        """Signal its first process; SIGKILL reaches all its processes. Ignored if it has ended."""

    def end(self, code: int, error: str | None = None) -> None:
        """Record its end; `error` if it never started. Only its backend calls this."""
        self.error = error
        self.started.set()
        if not self.ended.done():
            self.ended.set_result(code)


def above_limit(limit: int) -> str:
    """Return the phrase for an end by the memory limit, in bytes; clients search for it."""
    return f"above its memory limit of {limit >> 20} MiB"


@dataclass(frozen=True)
class ImageInUse:
    """A version of an image that stays unchanged until `release`, whatever is built meanwhile."""

    #: Starts a replica that writes its log to the LineReader. It returns at once, so that a
    #: cancelled caller has the child to end. Raises OSError if no pipe or socket could be made, or
    #: the backend is gone.
    start: Callable[[StartRequest, LineReader], Child]
    #: Lets later builds remove this version. May be called once.
    release: Callable[[], object]


class Backend(Protocol):
    """Runs replicas, until `close`."""

    @property
    def name(self) -> BackendName:
        """The backend's name in `--backend` and /system/info."""

    @property
    def inner_listener(self) -> socket.socket | None:
        """A second listener, if replicas cannot reach the gateway's own."""

    async def use(self, reference: str) -> ImageInUse:
        """Take the current version of an image into use; ChironError if there is none."""

    async def usage(self, children: Sequence[Child]) -> processes.Usage:
        """Return the current usage of `children` and their descendants."""

    async def close(self) -> None:
        """End all remaining replicas, and wait until they have ended."""


@dataclass
class Supervision:
    """The channel to a supervisor, which ends the gateway's replicas when the channel closes."""

    channel: socket.socket
    process: subprocess.Popen[bytes]
    #: Folder of the gateway's temporary files, which the supervisor removes.
    scratch: Path
    #: Called if the supervisor ends by itself.
    on_lost: Callable[[], None]

    @classmethod
    def open(cls, module: str, scratch: Path, on_lost: Callable[[], None], *arguments: str) -> Self:
        """Start the supervisor `module` in a running event loop; it ends when this process does."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * MAX_MESSAGE)
        with theirs:
            process = processes.start_own(
                *(module, str(theirs.fileno()), str(scratch), *arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )
        opened = cls(ours, process, scratch, on_lost)
        asyncio.get_running_loop().add_reader(ours, opened.receive)
        return opened

    def receive(self) -> None:
        """Handle the channel: here, the supervisor has ended."""
        asyncio.get_running_loop().remove_reader(self.channel)
        self.on_lost()

    def leave(self) -> None:
        """Close the channel, and leave the cleanup to the supervisor."""
        asyncio.get_running_loop().remove_reader(self.channel)
        self.channel.close()
        self.resume()

    def resume(self) -> None:
        """Resume the supervisor: a function of the same user may have stopped it."""
        self.process.send_signal(signal.SIGCONT)

    async def close(self) -> None:
        """Have the supervisor end the remaining replicas, and wait for it."""
        self.leave()
        await asyncio.to_thread(self.process.wait)
        # The supervisor has removed it, unless it was killed.
        await asyncio.to_thread(shutil.rmtree, self.scratch, ignore_errors=True)
