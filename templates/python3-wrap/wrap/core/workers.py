"""Calls of workers: a lost worker gets none before another worker has taken its place."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from wrap.core import commands as do
from wrap.core.commands import Command
from wrap.core.errors import TaskError
from wrap.core.program import Call, Key, Place, Scope

#: The tasks to come of a worker of instances, whose number is unknown: it stays until the end.
_MANY = 1 << 30


class Workers:
    """The workers of one execution.

    Args:
        commands: the list to which commands are appended.
    """

    def __init__(self, commands: list[Command]) -> None:
        #: Worker process -> the calls that wait until this lost worker has ended.
        self.held_back: dict[Place, list[Call]] = {}
        self._commands = commands

    def call(self, call: Call) -> None:
        """Call a worker, or hold the call back until a lost worker has ended.

        The inputs of the call may be lost with the worker.
        """
        if call.place in self.held_back:
            self.held_back[call.place].append(call)
        else:
            self._commands.append(do.CallWorker(call))

    def lose(
        self, process: int, late: Collection[int] = (), error: TaskError | None = None
    ) -> None:
        """Kill a worker, and hold its calls back until another worker has taken its place."""
        self.held_back[process] = []
        self._commands.append(do.LoseWorker(process, late, error))


class Sent(NamedTuple):
    """The contents of a call to a worker."""

    #: The objects that it does not have.
    needs: list[Key]
    #: How many tasks it will be called for later.
    rest: int
    #: Whether nothing else can run there meanwhile.
    alone: bool


class Worker:
    """The objects of one worker in an execution, and how many tasks are left for later calls.

    Args:
        keeps: whether it keeps objects for later calls. Instances share none.
    """

    def __init__(self, scope: Scope, process: int, keeps: bool) -> None:
        #: How many tasks it will be called for.
        self._rest = len(scope.tasks_at(process)) if keeps else _MANY
        #: Tasks that may be called again must not wait for the end of other tasks.
        self._in_order = process in scope.in_order
        self._is_live = scope.live
        self._keeps = keeps
        self._objects: set[Key] = set()

    @property
    def is_called_for_all(self) -> bool:
        return not self._rest

    def call(self, call: Call) -> Sent:
        """Record a call. A repeated call resends all objects, as they may have been dropped."""
        needs = [key for key in call.needs if call.repeated or key not in self._objects]
        self.record_objects(needs)
        self._rest -= 0 if call.repeated else len(call.tasks)
        return Sent(needs, self._rest, not self._is_live and (not self._rest or self._in_order))

    def record_objects(self, keys: Iterable[Key]) -> None:
        if self._keeps:
            self._objects.update(keys)
