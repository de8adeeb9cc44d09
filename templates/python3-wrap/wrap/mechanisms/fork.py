"""Mechanism ``fork``: a fresh process for each further process of each request."""

from __future__ import annotations

from collections.abc import Mapping

from wrap.process import Process
from wrap.spawner import Spawner


class Fork:
    """Processes that serve one job."""

    kind = "fork"
    lasting = 0

    def __init__(self, slots: int, environment: Mapping[str, str]) -> None:
        self._spawner: Spawner

    def start(self, spawner: Spawner) -> None:
        """Get processes from `spawner` from now on."""
        self._spawner = spawner

    def take(self, slot: int, deadline: float) -> Process:
        """A process for one job."""
        return self._spawner.spawn()

    def give(self, slot: int, process: Process, sound: bool) -> None:
        """Be done with it; `sound` if it has answered all that it was asked."""
        if sound:
            process.close()
        else:
            process.end()
