"""Calls of workers: one that is lost gets none before another has taken its place."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from wrap.core import commands as do
from wrap.core.commands import Command
from wrap.core.errors import TaskError
from wrap.core.program import Call, Key, Place, Scope


class Workers:
    """The workers of one execution.

    Args:
        commands: gets what is to be done.
    """

    def __init__(self, commands: list[Command]) -> None:
        #: The calls that wait until a lost worker has ended, by its process.
        self.held_back: dict[Place, list[Call]] = {}
        self._commands = commands

    def call(self, call: Call) -> None:
        """Call a worker. Hold the call of a lost worker back until the worker has ended.

        The inputs of the call may be gone with the worker.
        """
        if call.place in self.held_back:
            self.held_back[call.place].append(call)
        else:
            self._commands.append(do.CallWorker(call))

    def lose(
        self, process: int, late: Collection[int] = (), error: TaskError | None = None
    ) -> None:
        """Hold calls back until another worker has taken the place of this one."""
        self.held_back[process] = []
        self._commands.append(do.LoseWorker(process, late, error))


class Sent(NamedTuple):
    """What a worker gets with a call."""

    #: The objects that it has not got.
    needs: list[Key]
    #: How many tasks it will be called for later.
    rest: int
    #: Whether nothing else can run there meanwhile.
    alone: bool


class Worker:
    """What one worker has got in an execution, and for how many tasks it has not been called.

    Args:
        keeps: whether it keeps objects for later calls. Instances share none.
    """

    def __init__(self, scope: Scope, process: int, keeps: bool) -> None:
        self._rest = scope.tasks_to_come(process)
        #: What may be called for once more is not to wait until something else has ended.
        self._in_order = process in scope.in_order
        self._is_live = scope.live
        self._keeps = keeps
        self._has: set[Key] = set()

    @property
    def is_called_for_all(self) -> bool:
        """Whether no other call follows."""
        return not self._rest

    def call(self, call: Call) -> Sent:
        """The worker is called. If it was before, it may have dropped what it got for that."""
        needs = [key for key in call.needs if call.repeated or key not in self._has]
        self.took(needs)
        self._rest -= 0 if call.repeated else len(call.tasks)
        return Sent(needs, self._rest, not self._is_live and (not self._rest or self._in_order))

    def took(self, keys: Iterable[Key]) -> None:
        """The worker has these objects."""
        if self._keeps:
            self._has.update(keys)
