"""What a running wrap is made of, and the seams between its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from wrap.canceller import Canceller
from wrap.declaration import Wrap
from wrap.loader import Function
from wrap.process import Process
from wrap.threads import ThreadPool
from wrap.transport import Transport


class Mechanism(Protocol):
    """How further processes come to be (fork, pool)."""

    kind: str

    def take(self, slot: int, deadline: float) -> Process:
        """A process for the further process number `slot` of a stage."""

    def give(self, slot: int, process: Process, sound: bool) -> None:
        """Be done with it; `sound` if it has answered all that it was asked."""


@dataclass(frozen=True)
class Runtime:
    """A wrap and what it runs on; without `trace_key` nobody has its requests traced."""

    wrap: Wrap
    functions: dict[str, Function]
    threads: ThreadPool
    canceller: Canceller
    mechanism: Mechanism
    transport: Transport
    trace_key: str = ""
