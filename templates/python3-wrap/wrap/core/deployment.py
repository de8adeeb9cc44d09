"""The interface of a wrap's declaration, as the rules of an execution use it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from wrap.core.dag import Graph
    from wrap.core.program import Component, Place


class Deployment(Protocol):
    """The declaration of a wrap: its workflow and its tasks."""

    @property
    def workflow(self) -> str:
        """The name of the workflow."""

    @property
    def name(self) -> str:
        """The name of the wrap."""

    @property
    def tasks(self) -> Mapping[int, str]:
        """The wrap's own tasks -> their functions."""

    @property
    def processes(self) -> Sequence[object]: ...
    @property
    def remotes(self) -> Mapping[str, object]:
        """The other wraps, if this is the entry of a workflow that decides at run time."""

    @property
    def attempts(self) -> int:
        """The maximum number of attempts of a task."""

    @property
    def answers(self) -> int | None:
        """The task whose output is the client's answer, if there is one."""

    @property
    def timeouts_s(self) -> Mapping[str, float]:
        """Function -> its timeout in seconds."""

    @property
    def emits(self) -> Mapping[int, Any]:
        """The outputs that tasks emit before they end, by their numbers."""

    @property
    def live(self) -> Mapping[int, Collection[int]]:
        """Output -> the tasks that read it while it is written."""

    @property
    def wrap_of(self) -> Mapping[int, str]: ...
    @property
    def takers(self) -> Mapping[int, Mapping[str, bool]]:
        """Task -> the other wraps that wait for it, and whether each needs its object."""

    @property
    def components(self) -> Mapping[int, Component]:
        """Task -> the tasks that live streams connect it with."""

    @property
    def graph(self) -> Graph: ...
    @property
    def instances(self) -> int:
        """The number of tasks of a workflow that decides at run time."""

    @property
    def places_of(self) -> Mapping[int, Sequence[Place]]:
        """Task -> the places among which its instances are distributed."""

    def names(self, tasks: Iterable[int]) -> str:
        """Return the functions of some tasks, as an error lists them."""

    def function_of(self, number: int) -> str:
        """Return the function of a task."""

    def runs(self, number: int) -> bool:
        """Return whether a task is one of the wrap's."""

    def giver_of(self, output: int) -> int:
        """Return the task of an output."""

    def task_of(self, number: int) -> int:
        """Return the task of an instance."""
