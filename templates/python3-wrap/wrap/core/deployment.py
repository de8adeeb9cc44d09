"""What the rules of an execution know of what a wrap declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol


class Deployment(Protocol):
    """What a wrap declares about its tasks."""

    @property
    def name(self) -> str:
        """Of the wrap."""

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

    def names(self, tasks: Iterable[int]) -> str:
        """The functions of some tasks, as an error lists them."""

    def function_of(self, number: int) -> str:
        """The function of a task."""

    def runs(self, number: int) -> bool:
        """Whether a task is one of the wrap's."""
