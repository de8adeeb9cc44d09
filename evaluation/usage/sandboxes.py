"""The sandboxes of a deployment as processes of this machine, where they are to be seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.usage.memory import memory_mib
from evaluation.usage.tree import cpu_s, trees
from profiler.sandbox import find_sandbox
from workflow.errors import ChironError


@dataclass(frozen=True)
class Sandboxes:
    """The processes of a deployment's sandboxes: of the template's server and all below it."""

    pids: tuple[int, ...]

    def cpu_s(self) -> float:
        """Seconds of CPU time so far, those of ended children included."""
        return cpu_s(self.pids)

    def memory_mib(self) -> float:
        """Memory now, every page once."""
        return memory_mib(trees(self.pids))


@dataclass(frozen=True)
class Unseen:
    """Sandboxes of another machine, or of another user: nothing is known of them."""

    reason: str

    def cpu_s(self) -> None:
        """Not to be read."""

    def memory_mib(self) -> None:
        """Not to be read."""


def meter(names: Sequence[str], gateway_url: str) -> Sandboxes | Unseen:
    """What tells the usage of the functions `names` behind `gateway_url`.

    Where it cannot be read from here that is said, and nothing is guessed.
    """
    try:
        return Sandboxes(tuple(find_sandbox(name, gateway_url).pid for name in names))
    except ChironError as error:
        return Unseen(error.message)
