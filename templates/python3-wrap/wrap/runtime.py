"""What a running wrap is made of, and the seams between its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from wrap.declaration import Wrap
from wrap.loader import Function
from wrap.messages import Job, Result
from wrap.process import Process
from wrap.threads import ThreadPool


class Mechanism(Protocol):
    """How further processes come to be (fork, pool)."""

    kind: str

    def take(self, slot: int, deadline: float) -> Process:
        """A process for the further process number `slot` of a stage."""

    def give(self, slot: int, process: Process, sound: bool) -> None:
        """Be done with it; `sound` if it has answered all that it was asked."""


class Transport(Protocol):
    """How a job gets to the remote wrap that runs it, and its results back."""

    def call(self, wrap: str, job: Job, deadline: float) -> list[Result]:
        """The results of `job` in `wrap`. Raises TaskError."""


@dataclass(frozen=True)
class Runtime:
    """A wrap and what it runs on."""

    wrap: Wrap
    functions: dict[str, Function]
    threads: ThreadPool
    mechanism: Mechanism
    transport: Transport
