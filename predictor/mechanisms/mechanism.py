"""What a mechanism has to say of itself: costs, explanation, settings and calibration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import accumulate
from typing import ClassVar, Protocol

from workflow.platform import Platform


class NoopTimes(Protocol):
    """What calibration saw of a no-op plan: see `profiler.constants.Seen`."""

    @property
    def begins_ms(self) -> tuple[float, ...]: ...
    @property
    def working_begins_ms(self) -> tuple[float, ...]: ...
    @property
    def tail_ms(self) -> float: ...


class Mechanism(ABC):
    """How a wrap gets the processes of a stage besides its main one, the first.

    All times are in milliseconds. A `count` is that of a wrap's processes in one stage.

    Attributes
    ----------
    name
        As plans, options and the template call it.
    lasting
        Whether its processes are there before a request and stay after it. What runs in one that is
        new for the request takes longer: see `workflow.profile.FunctionProfile.forked_ms`.
    """

    name: ClassVar[str]
    lasting: ClassVar[bool]

    def gathering_ms(self, count: int, platform: Platform) -> float:
        """Equation (3): gathering the results of all of `count` processes but the first."""
        if count < 2:
            return 0.0
        return self.first_gathering_ms(platform) + platform.ipc_ms * (count - 1)

    def first_gathering_ms(self, platform: Platform) -> float:
        """How much longer than T_IPC gathering the first result takes."""
        return 0.0

    @abstractmethod
    def starts_ms(self, count: int, platform: Platform) -> list[float]:
        """Equation (4): when each process can run its functions, but for what is computed.

        The main process (the first) exists already; it starts its own functions after it has
        started the others. What a process computes meanwhile, and what its parent does, is not part
        of its start: see `computing_ms` and `forking_ms`.
        """

    def forking_ms(self, count: int, platform: Platform) -> list[float]:
        """What the parent of each process computes to start it, one process after another."""
        return [0.0] * count

    def computing_ms(self, count: int, platform: Platform) -> list[float]:
        """What each process computes itself before it can run its functions."""
        return [0.0] * count

    def core_wait_ms(self, platform: Platform) -> float:
        """How long the main process and a further one keep each other from computing, at most."""
        return 0.0

    def delays_ms(self, count: int, platform: Platform) -> list[float]:
        """When each process can run its functions where each has its own core."""
        starts = self.starts_ms(count, platform)
        forked = accumulate(self.forking_ms(count, platform))
        computing = self.computing_ms(count, platform)
        return [sum(each) for each in zip(starts, forked, computing, strict=True)]

    def stagger_ms(self, platform: Platform) -> float | None:
        """By how much each further process delays the next; None where all start at once.

        Then further wraps are of no use to start processes sooner.
        """
        return None

    @abstractmethod
    def start_in_words(self, platform: Platform) -> str:
        """What a further process costs, after "a CPU and"."""

    def stagger_in_words(self, platform: Platform) -> str:
        """What several processes in one wrap cost each other, after "a call costs"; or nothing."""
        return ""

    def environment(self, cpus: int, requests: int) -> dict[str, str]:
        """The variables of a wrap with `cpus` CPUs and room for so many `requests` at once."""
        return {}

    @abstractmethod
    def constants(
        self, one: NoopTimes, few: NoopTimes, many: NoopTimes, further: int, ipc_ms: float
    ) -> Mapping[str, float]:
        """Its constants of `workflow.platform.Platform`, where no-op plans took so long.

        Parameters
        ----------
        one, few, many
            Plans of one process, of two, and of `further` more than two, a no-op in each.
        ipc_ms
            T_IPC.
        """
