"""The idle workers of one process of the plan."""

from __future__ import annotations

import math
from collections.abc import Callable

from wrap.workers.worker import WorkerProcess


class IdleWorkers:
    """A stack of idle workers: the worker that was free last is taken first. Any thread may use it.

    Args:
        spawn: starts a worker. Raises OSError if none can be had.
        most: how many workers may be idle.
        executions: the number of executions after which a worker is replaced.
    """

    def __init__(
        self, spawn: Callable[[], WorkerProcess], most: int, executions: float = math.inf
    ) -> None:
        self._spawn = spawn
        self._most = most
        self._executions = executions
        self._idle: list[WorkerProcess] = []

    @property
    def has_room(self) -> bool:
        return len(self._idle) < self._most

    def add(self) -> None:
        """Start a worker, which becomes idle. Raises OSError if none can be had."""
        self._idle.append(self._spawn())

    def await_ready(self) -> None:
        """Wait until the idle workers have imported their functions. Raises ImportError."""
        for worker in self._idle:
            worker.await_ready()

    def take(self) -> WorkerProcess:
        """Return an idle worker, else a new one. Raises OSError if none can be had."""
        while self._idle:
            try:
                worker = self._idle.pop()
            except IndexError:  # another thread has taken it
                break
            if worker.alive():
                return worker
            worker.end()
        return self._spawn()

    def give(self, worker: WorkerProcess, sound: bool) -> bool:
        """Take a worker back; return whether it waits for later executions.

        It is `sound` if it has answered all its requests. Otherwise it may still run a task.
        """
        if not sound:
            worker.end()
            return False
        if worker.executions >= self._executions or not self.has_room:
            worker.close()
            return False
        self._idle.append(worker)
        return True
