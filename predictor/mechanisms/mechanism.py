"""What a mechanism has to say of itself: costs, explanation, settings and calibration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple, Protocol

from chiron.workflow.platform import Platform


class NoopTimes(Protocol):
    """What calibration saw of a no-op plan: see `chiron.profiler.constants.Seen`."""

    @property
    def begins_ms(self) -> tuple[float, ...]: ...
    @property
    def working_begins_ms(self) -> tuple[float, ...]: ...
    @property
    def tail_ms(self) -> float: ...


class Costs(NamedTuple):
    """What further processes of a wrap cost, in milliseconds: Chiron's equations (3) and (4).

    Several that are started at once have their turns one after another.
    """

    #: From its turn until it can run its functions, but for what is computed meanwhile.
    ready_ms: float
    #: How much longer the first one, and how long each, makes the next one wait for its turn.
    first_block_ms: float = 0.0
    block_ms: float = 0.0
    #: Whether that is computing, for which all compete.
    blocks_computing: bool = False
    #: How much starting one computes in all.
    computing_ms: float = 0.0
    #: How long the main process, which exists already, waits before it begins with tasks that are
    #: triggered together with them; negative where it waits until all have had their turns.
    main_ms: float = -1.0
    #: How long it and one that it wakes keep each other from computing, at most.
    core_wait_ms: float = 0.0
    #: What it takes to gather the results of one, and how much longer the first of it.
    gather_ms: float = 0.0
    first_gather_ms: float = 0.0

    def gathering_ms(self, count: int) -> float:
        """Equation (3): gathering the first results of all of `count` processes but the main."""
        return self.first_gather_ms + self.gather_ms * (count - 1) if count > 1 else 0.0

    def delays_ms(self, count: int) -> list[float]:
        """Equation (4): when each of `count` processes can run its functions.

        Each has its own core, and all are started at once, save for the main one, the first.
        """
        if count < 2:
            return [0.0]
        turns = [number * self.block_ms for number in range(count)]
        turns[1:] = [turn_ms + self.first_block_ms for turn_ms in turns[1:]]
        main_ms = self.main_ms if self.main_ms >= 0 else turns[-1]
        ready_ms = self.ready_ms + self.computing_ms
        return [main_ms, *(turn_ms + ready_ms for turn_ms in turns[:-1])]


class Mechanism(ABC):
    """How a wrap gets the processes of a stage besides its main one, the first."""

    #: As plans, options and the template call it.
    name: ClassVar[str]
    #: Whether its processes are there before a request and stay after it. What runs in one that is
    #: new for the request takes longer: see `chiron.workflow.profile.FunctionProfile.forked_ms`.
    lasting: ClassVar[bool]

    @abstractmethod
    def costs(self, platform: Platform) -> Costs:
        """What its processes cost."""

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
        """The variables of a wrap with `cpus` CPUs that runs so many `requests` at once.

        `requests` is 0 where it is not known how many have room.
        """
        return {}

    @abstractmethod
    def constants(
        self, one: NoopTimes, few: NoopTimes, many: NoopTimes, further: int, ipc_ms: float
    ) -> Mapping[str, float]:
        """Its constants of `chiron.workflow.platform.Platform`, where no-op plans took so long.

        Args:
            one, few, many: plans of one process, of two, and of `further` more than two, a no-op in
                each.
            ipc_ms: T_IPC.
        """
