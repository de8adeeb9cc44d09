"""What runs replicas: what local processes and Docker containers have in common.

A backend takes an image into use; an image in use starts replicas; a replica listens somewhere,
can be signalled, and ends. All else (readiness, draining, restarts, scaling) is the gateway's and
is the same for all backends. Each has a supervisor, a process that ends what a killed gateway left.
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
#: Connections that may wait for being accepted.
BACKLOG = 1024
#: Exit status of what could not be started, as in a shell.
NOT_STARTED = 127


class Tasks(set[asyncio.Task[None]]):
    """Tasks that run in the background: the event loop itself forgets those that nobody holds."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work`, and hold it until it is done."""
        task = asyncio.create_task(work)
        self.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("what runs in the background failed", exc_info=error)


@dataclass(frozen=True)
class Order:
    """A replica to start."""

    #: Its name, unique on this machine.
    instance: str
    deployment: Deployment
    #: A path of its own for private files; the caller removes it afterwards.
    folder: Path
    #: The folder with its secrets' files.
    secrets: Path


class Child(ABC):
    """A replica as its backend sees it: how to reach it or why it is not there, how it ended."""

    def __init__(self) -> None:
        #: Exit status, negative for a signal; also set after a failed start.
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        #: When it was ordered (time.monotonic).
        self.since = time.monotonic()
        #: Set once the replica can be connected to, or has failed to start.
        self.started = asyncio.Event()
        #: Where it listens.
        self.host = "127.0.0.1"
        self.port = 0
        #: What answers 200 once it takes requests.
        self.health_path = HEALTH_PATH
        #: Its first process, as this machine sees it.
        self.pid: int | None = None
        #: Why it could not be started.
        self.error: str | None = None
        #: Why it was ended, if not by its own doing.
        self.fault: str | None = None

    @abstractmethod
    def signal(self, number: signal.Signals) -> None:
        """Signal its first process; SIGKILL reaches all of them. Nothing if it has ended."""

    def end(self, code: int, error: str | None = None) -> None:
        """Note that it has ended; `error` if it never started. For its backend to call."""
        self.error = error
        self.started.set()
        if not self.ended.done():
            self.ended.set_result(code)


def above_limit(limit: int) -> str:
    """What every end by the memory limit, in bytes, is called: clients look for it."""
    return f"above its memory limit of {limit >> 20} MiB"


@dataclass(frozen=True)
class ImageInUse:
    """A version of an image that stays what it is until `release`, whatever is built meanwhile."""

    #: Starts a replica that writes its log to the LineReader. It returns at once, so that a caller
    #: who is cancelled still knows the child to end; OSError if no pipe or socket could be made, or
    #: the backend is gone.
    start: Callable[[Order, LineReader], Child]
    #: Lets later builds remove this version. May be called once.
    release: Callable[[], object]


class Backend(Protocol):
    """Runs replicas, until `close`."""

    @property
    def name(self) -> BackendName:
        """As `--backend` and /system/info call it."""

    @property
    def door(self) -> socket.socket | None:
        """A further listener, where replicas cannot reach the gateway's own."""

    async def use(self, reference: str) -> ImageInUse:
        """Take the current version of an image into use; GatewayError if there is none."""

    async def usage(self, children: Sequence[Child]) -> processes.Usage:
        """What `children` and all that they started use now."""

    async def close(self) -> None:
        """End every replica that is left, and wait until none is."""


@dataclass
class Supervision:
    """The channel to a supervisor, which ends all that is the gateway's when it closes."""

    channel: socket.socket
    process: subprocess.Popen[bytes]
    #: Folder of the gateway's temporary files, which the supervisor removes.
    scratch: Path
    #: Called if the supervisor ends by itself.
    on_lost: Callable[[], None]

    @classmethod
    def open(cls, module: str, scratch: Path, on_lost: Callable[[], None], *arguments: str) -> Self:
        """Start the supervisor `module`, in a running event loop; it ends when this one does."""
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
        """Take what comes: here, that the supervisor has ended."""
        asyncio.get_running_loop().remove_reader(self.channel)
        self.on_lost()

    def leave(self) -> None:
        """Close the channel, and leave the rest to the supervisor."""
        asyncio.get_running_loop().remove_reader(self.channel)
        self.channel.close()
        self.resume()

    def resume(self) -> None:
        """Have the supervisor go on: a function of the same user may have stopped it."""
        self.process.send_signal(signal.SIGCONT)

    async def close(self) -> None:
        """Have the supervisor end what is left, and wait until it has."""
        self.leave()
        await asyncio.to_thread(self.process.wait)
        # The supervisor has removed it, unless it was killed.
        await asyncio.to_thread(shutil.rmtree, self.scratch, ignore_errors=True)
