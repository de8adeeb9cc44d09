"""Mechanism ``fork``: a fresh process for each further process of each execution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from wrap.workers.fork_client import ForkClient
from wrap.workers.worker import Process

if TYPE_CHECKING:
    from wrap.workers.mechanisms import Guest


class Fork:
    """Processes that serve one execution."""

    lasting = 0
    most = math.inf
    waiting = 0
    full = "it was not begun in time"

    def __init__(self, slots: int, environment: Mapping[str, str]) -> None:
        self._fork_client: ForkClient

    def start(self, fork_client: ForkClient) -> None:
        """Get processes from `fork_client` from now on."""
        self._fork_client = fork_client

    def admit(self, guest: Guest) -> None:
        """Admit `guest`: there are as many processes as are wanted."""
        guest.admit()

    def admit_more(self) -> None:
        """Nobody waits."""

    @property
    def room(self) -> int:
        """One more, always."""
        return 1

    def leave(self, guest: Guest) -> None:
        """Nothing waits for that."""

    def take(self, slot: int) -> Process:
        """A process for one execution."""
        return self._fork_client.spawn()

    def give(self, slot: int, process: Process, sound: bool) -> None:
        """Be done with it; `sound` if it has answered all that it was asked."""
        if sound:
            process.close()
        else:
            process.end()
