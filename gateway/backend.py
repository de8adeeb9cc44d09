"""What runs replicas: the interface that local processes and Docker containers have in common.

A backend takes an image into use; an image in use starts replicas; a replica listens somewhere,
can be signalled, and ends. All else (readiness, draining, restarts, scaling) is the gateway's and
is the same for all backends.
"""

from __future__ import annotations

import asyncio
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gateway.deployment import Deployment
from gateway.logs import LineReader
from gateway.names import BackendName
from gateway.processes import Usage

HEALTH_PATH = "/_/health"


@dataclass(frozen=True)
class Order:
    """A replica to start.

    Attributes:
        instance: its name, unique on this machine.
        folder: a path of its own for private files; the caller removes it afterwards.
        secrets: the folder with its secrets' files.
    """

    instance: str
    deployment: Deployment
    folder: Path
    secrets: Path


class Child(ABC):
    """A replica as its backend sees it: how to reach it or why it is not there, how it ended.

    Attributes:
        since: when it was ordered (time.monotonic).
        started: set once the replica can be connected to, or has failed to start.
        ended: exit status, negative for a signal; also set after a failed start.
        host, port: where it listens.
        health_path: what answers 200 once it takes requests.
        pid: its first process, as this machine sees it.
        error: why it could not be started.
        fault: why it was ended, if not by its own doing.
    """

    def __init__(self) -> None:
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.since = time.monotonic()
        self.started = asyncio.Event()
        self.host = "127.0.0.1"
        self.port = 0
        self.health_path = HEALTH_PATH
        self.pid: int | None = None
        self.error: str | None = None
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


class ImageInUse(Protocol):
    """A version of an image that stays what it is until `release`, whatever is built meanwhile."""

    def start(self, order: Order, output: LineReader) -> Child:
        """Have a replica started that writes its log to `output`; returns at once.

        So a caller who is cancelled still knows the child to end.

        Raises:
            OSError: no pipe or socket could be made, or the backend is gone.
        """

    def release(self) -> None:
        """Let later builds remove this version. May be called once."""


class Backend(Protocol):
    """Runs replicas, until `close`."""

    @property
    def name(self) -> BackendName:
        """As `--backend` and /system/info call it."""

    async def use(self, reference: str) -> ImageInUse:
        """Take the current version of an image into use.

        Raises:
            GatewayError: there is no such image, or nothing to ask.
        """

    async def usage(self, children: Sequence[Child]) -> Usage:
        """What `children` and all that they started use now."""

    async def close(self) -> None:
        """End every replica that is left, and wait until none is."""
