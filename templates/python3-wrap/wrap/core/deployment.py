"""What the rules of an execution know of what a wrap declares."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from wrap.core.dag import Graph
    from wrap.core.program import Component, Place


class Deployment(Protocol):
    """What a wrap declares about its workflow and its tasks."""

    @property
    def workflow(self) -> str:
        """The name of the workflow."""

    @property
    def name(self) -> str:
        """Of the wrap."""

    @property
    def tasks(self) -> Mapping[int, str]:
        """The wrap's own."""

    @property
    def processes(self) -> Sequence[object]: ...
    @property
    def remotes(self) -> Mapping[str, object]:
        """The other wraps, if this is the entry of a workflow that decides."""

    @property
    def attempts(self) -> int:
        """How often a task may begin."""

    @property
    def answers(self) -> int | None:
        """The task whose answer the client gets, if one task does."""

    @property
    def timeouts_s(self) -> Mapping[str, float]:
        """Function -> its timeout in seconds."""

    @property
    def emits(self) -> Mapping[int, Any]:
        """The outputs that tasks give before they end, by their numbers."""

    @property
    def live(self) -> Mapping[int, Collection[int]]:
        """Output -> the tasks that read it while it is written."""

    @property
    def wrap_of(self) -> Mapping[int, str]: ...
    @property
    def takers(self) -> Mapping[int, Mapping[str, bool]]:
        """Task -> the other wraps that wait for it."""

    @property
    def components(self) -> Mapping[int, Component]:
        """Task -> the tasks that live streams connect."""

    @property
    def graph(self) -> Graph: ...
    @property
    def instances(self) -> int:
        """How many tasks a workflow that decides has."""

    @property
    def places_of(self) -> Mapping[int, Sequence[Place]]:
        """Task -> the places over which its instances go."""

    def names(self, tasks: Iterable[int]) -> str:
        """The functions of some tasks, as an error lists them."""

    def function_of(self, number: int) -> str:
        """The function of a task."""

    def runs(self, number: int) -> bool:
        """Whether a task is one of the wrap's."""

    def giver_of(self, output: int) -> int:
        """The task that gives an output."""

    def task_of(self, number: int) -> int:
        """The task of an instance."""
