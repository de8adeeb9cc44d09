"""The interface of a mechanism: costs, explanation, settings and calibration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple, Protocol

from chiron.workflow.platform import Platform
from chiron.workflow.profile import NEVER_MS, FunctionProfile


class NoopTimes(Protocol):
    """Calibration's measurements of a no-op plan: see `chiron.profiler.constants.Seen`."""

    @property
    def begins_ms(self) -> tuple[float, ...]: ...
    @property
    def working_begins_ms(self) -> tuple[float, ...]: ...
    @property
    def tail_ms(self) -> float: ...


class Costs(NamedTuple):
    """The costs of a wrap's further processes, in milliseconds: Chiron's equations (3) and (4).

    Several processes that are started at once have their turns one after another.
    """

    #: The time from its turn until it can run its functions, without computing meanwhile.
    ready_ms: float
    #: How much longer the first process, and how long each, delays the next turn.
    first_block_ms: float = 0.0
    block_ms: float = 0.0
    #: Whether that delay is computing, which competes for cores.
    blocks_computing: bool = False
    #: The total computing time of starting a process.
    computing_ms: float = 0.0
    #: How long the main process waits before tasks that are triggered together with the others';
    #: negative: until all have had their turns.
    main_ms: float = -1.0
    #: The longest time that it and a process that it wakes keep each other from computing.
    core_wait_ms: float = 0.0
    #: The time to gather the results of a process, and the extra time of the first.
    gather_ms: float = 0.0
    first_gather_ms: float = 0.0

    def gathering_ms(self, count: int) -> float:
        """Equation (3): return the time to gather first results of all processes but the main."""
        return self.first_gather_ms + self.gather_ms * (count - 1) if count > 1 else 0.0

    def delays_ms(self, count: int) -> list[float]:
        """Equation (4): return when each of `count` processes can run its functions.

        Each has its own core, and all are started at once, except the main process, the first.
        """
        if count < 2:
            return [0.0]
        turns = [number * self.block_ms for number in range(count)]
        turns[1:] = [turn_ms + self.first_block_ms for turn_ms in turns[1:]]
        main_ms = self.main_ms if self.main_ms >= 0 else turns[-1]
        ready_ms = self.ready_ms + self.computing_ms
        return [main_ms, *(turn_ms + ready_ms for turn_ms in turns[:-1])]


class Mechanism(ABC):
    """A way for a wrap to get its further processes, besides its main process."""

    #: The name in plans, options and the template.
    name: ClassVar[str]
    #: The first version of Python in wraps that has it.
    python: ClassVar[tuple[int, int]] = (3, 11)
    #: Whether profiling finds out which functions can run in its processes.
    is_tried: ClassVar[bool] = False
    #: Its processes, in the words of a reason.
    processes: ClassVar[str]
    #: The memory, in MiB, of a further process whose functions need none, for each request at once:
    #: the pages that a fork does not share with its parent. 2 to 3.3 MiB measured.
    further_mib: ClassVar[int] = 4
    #: Whether its processes outlive a request.
    lasting: ClassVar[bool]

    def is_on(self, platform: Platform) -> bool:
        """Return whether wraps on `platform` can have it."""
        return True

    @abstractmethod
    def costs(self, platform: Platform) -> Costs:
        """Return the costs of its processes."""

    def refusal(self, function: FunctionProfile) -> str:
        """Return the reason, as a clause, why `function` cannot run in its processes; or nothing.

        Then it belongs in the main process.
        """
        return ""

    def further_ms(self, function: FunctionProfile) -> float:
        """Return the extra latency of `function` in one of its processes.

        For a function that it refuses, any plan that runs it elsewhere is better.
        """
        return NEVER_MS if self.refusal(function) else 0.0

    def stagger_ms(self, platform: Platform) -> float | None:
        """Return how much each further process delays the next; None if all start at once.

        If None, more wraps do not start processes sooner.
        """
        return None

    @abstractmethod
    def start_in_words(self, platform: Platform) -> str:
        """Return the cost of a further process in words, after "a CPU and"."""

    def stagger_in_words(self, platform: Platform) -> str:
        """Return the delay between a wrap's processes, after "a call costs"; or nothing."""
        return ""

    def environment(self, cpus: int, requests: int) -> dict[str, str]:
        """Return the variables of a wrap with `cpus` CPUs that runs `requests` at once.

        `requests` is 0 if unknown.
        """
        return {}

    @abstractmethod
    def constants(
        self, one: NoopTimes, few: NoopTimes, many: NoopTimes, further: int, ipc_ms: float
    ) -> Mapping[str, float]:
        """Return its constants of `chiron.workflow.platform.Platform`, from no-op plans.

        Args:
            one, few, many: plans of one process, of two, and of `further` more than two, a no-op in
                each.
            ipc_ms: T_IPC.
        """
