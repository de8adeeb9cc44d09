"""A search's input: functions as numbers, and the latency of a process that runs some of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from chiron.predictor.mechanisms import mechanism_of
from chiron.predictor.paths import Way, as_called, way_of
from chiron.predictor.predict import Predictor
from chiron.scheduler.conflicts import Conflicts
from chiron.scheduler.kernighan_lin import Functions
from chiron.scheduler.slots import Slots, slots
from chiron.workflow.model import Workflow
from chiron.workflow.paths import DEFAULT_PATH, PathKind
from chiron.workflow.platform import Platform
from chiron.workflow.profile import NEVER_MS, FunctionProfile, Profile

Key = TypeVar("Key")
Value = TypeVar("Value")

#: Largest number of simulated processes in the cache, about 30 MiB; a full cache is cleared.
REMEMBERED = 50_000
#: The same for slots: the slots of a few shapes, some MiB.
REMEMBERED_SLOTS = 500
#: Largest number of threads for which `Problem` tries several start orders. Among 6 threads the
#: best order is 2 % faster than the worst in the mean, among 30 threads 0.2 %.
FEW_THREADS = 10


@dataclass(frozen=True)
class Kind:
    """A class of functions with equal work and conflicts; exchanging two changes nothing.

    ``latency_ms`` is the solo latency in a process, from the start of the thread on. ``gil_ms`` is
    the time that a function holds the GIL, ``core_ms`` the time that it occupies a core.
    ``parallel``: a function can keep more than one core busy. ``further_ms`` is the extra time in a
    further process. Functions of different ``group``s must not share a wrap.
    """

    name: str
    latency_ms: float
    gil_ms: float
    core_ms: float
    parallel: bool
    further_ms: float
    group: int


@dataclass(frozen=True)
class Problem:
    """A workflow's functions as numbers, and the latency of a process that runs some of them.

    Numbers rise with falling solo latency. ``apart`` maps a number to the numbers that must not
    share its process; a number mapped to itself must not occur twice. ``single`` are the groups
    that must be one wrap. ``calling`` is the platform with the cost of calling a wrap for a stage.

    Each multiset of functions is simulated alone, once: the processes of a wrap seldom interact.
    They may with fewer cores than processes, with contention overhead, or if a function releases
    the GIL while it computes or starts helpers.
    """

    workflow: Workflow
    predictor: Predictor
    mechanism: str
    kinds: tuple[Kind, ...]
    number_of: Mapping[str, int]
    apart: Mapping[int, frozenset[int]]
    single: frozenset[int]
    calling: Platform
    _alone: dict[Functions, tuple[float, Functions]] = field(default_factory=dict, repr=False)
    _together: dict[tuple[Functions, ...], list[float]] = field(default_factory=dict, repr=False)
    _separated: dict[Functions, tuple[Functions, ...]] = field(default_factory=dict, repr=False)
    _slots: dict[tuple[tuple[int, ...], int], Slots] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        workflow: Workflow,
        profile: Profile,
        platform: Platform,
        mechanism: str,
        conflicts: Conflicts,
        path: PathKind = DEFAULT_PATH,
    ) -> Problem:
        """Build the problem; functions with the same work and conflicts become one kind."""
        groups, further_ms = conflicts.groups(), mechanism_of(mechanism).further_ms
        alike: dict[object, list[str]] = {}
        for name in sorted(workflow.functions):
            function = profile.functions[name]
            work = tuple((p.kind, p.duration_ms, p.parallelism) for p in function.periods)
            key = (
                *(work, further_ms(function)),
                *(function.memory_mib, function.idle_mib, function.forked_mib),
                (function.runtime, function.runtime_mib),
                # A function that stands for a wait has no conflicts.
                *(groups.get(name, 0), conflicts.apart(name)),
            )
            alike.setdefault(key, []).append(name)
        classes = sorted(alike.values(), key=lambda c: (-profile.functions[c[0]].latency_ms, c[0]))
        number_of = {name: number for number, c in enumerate(classes) for name in c}
        kinds = tuple(
            _kind(
                *(c[0], profile.functions[c[0]], platform, groups.get(c[0], 0)),
                further_ms(profile.functions[c[0]]),
            )
            for c in classes
        )
        apart: dict[int, set[int]] = {}
        for a, b in conflicts.process:
            for one, other in ((a, b), (b, a)):
                apart.setdefault(number_of[one], set()).add(number_of[other])
        predictor = Predictor(profile, platform)
        single = frozenset(groups[name] for constraint in conflicts.together for name in constraint)
        enemies = {number: frozenset(others) for number, others in apart.items()}
        calling = _calling(platform, way_of(path, workflow, platform))
        return cls(workflow, predictor, mechanism, kinds, number_of, enemies, single, calling)

    @property
    def platform(self) -> Platform:
        return self.predictor.platform

    def numbers(self, stage: Sequence[str], group: int) -> Functions:
        """Return the sorted numbers of the functions of a stage's tasks, only those of `group`."""
        numbers = (self.number_of[self.workflow.function_of(task)] for task in stage)
        return tuple(sorted(n for n in numbers if self.kinds[n].group == group))

    def slots(self, sizes: tuple[int, ...], before: int) -> Slots:
        """Return the slots of consecutive wraps, cached because every stage asks for the same
        slots.
        """
        key = sizes, before
        if key not in self._slots:
            places = slots(sizes, before, self.mechanism, self.calling)
            _remember(self._slots, key, places, REMEMBERED_SLOTS)
        return self._slots[key]

    def alone_ms(self, functions: Functions) -> float:
        """Return the latency of a process that runs `functions` on a core of its own."""
        return self._run(functions)[0]

    def in_order(self, functions: Functions) -> Functions:
        """Return `functions` in the fastest start order found."""
        return self._run(functions)[1]

    def wrap_ends_ms(self, processes: tuple[Functions, ...]) -> list[float]:
        """Return the end of each process of a wrap, which compete for a core per process."""
        ends = self._together.get(processes)
        if ends is None:
            names = tuple(map(self.names, processes))
            ends = self.predictor.simulate(names, len(processes), self.mechanism)
            _remember(self._together, processes, ends)
        return ends

    def names(self, functions: Functions) -> tuple[str, ...]:
        """Return the names of `functions` for the predictor, in the fastest start order found."""
        return tuple(self.kinds[n].name for n in self.in_order(functions))

    def can_share(self, functions: Functions) -> bool:
        return not self.apart or all(
            self.gets_on(n, functions[:place]) for place, n in enumerate(functions)
        )

    def gets_on(self, n: int, functions: Iterable[int]) -> bool:
        """Return whether `n` may join the process of `functions`, which may share a process."""
        return n not in self.apart or self.apart[n].isdisjoint(functions)

    def separated(self, functions: Functions) -> tuple[Functions, ...]:
        """Distribute `functions` over few processes without conflicts, by greedy colouring."""
        if not self.apart:
            return (functions,)
        if functions not in self._separated:
            _remember(self._separated, functions, _coloured(self, functions))
        return self._separated[functions]

    def gil_ms(self, functions: Functions) -> float:
        """Return how long `functions` hold the GIL: a lower bound of their process's latency."""
        return sum(self.kinds[n].gil_ms for n in functions)

    def further_ms(self, functions: Functions) -> float:
        return sum(self.kinds[n].further_ms for n in functions)

    def is_refused(self, functions: Functions) -> bool:
        """Return whether the mechanism refuses some of `functions` in a further process."""
        return self.further_ms(functions) >= NEVER_MS

    def core_ms(self, functions: Functions) -> float:
        """Return the total core time of `functions`: a lower bound of their latency on one core."""
        return sum(self.kinds[n].core_ms for n in functions)

    def busy_ms(self, functions: Functions, places: Slots) -> float:
        """Return how long `functions` take if they keep all cores behind `places` busy without
        idling.
        """
        wraps = 1 if self.platform.one_node else len(places.sizes)
        cores = wraps * self.platform.cpus
        return (self.core_ms(functions) + places.computing_ms) / cores

    @cached_property
    def _by_waiting(self) -> Sequence[int]:
        """The rank of every kind: the longest wait while other threads can compute is first."""
        return _ranks([kind.gil_ms - kind.latency_ms for kind in self.kinds])

    @cached_property
    def _by_gil(self) -> Sequence[int]:
        """The rank of every kind: the shortest GIL time is first."""
        return _ranks([kind.gil_ms for kind in self.kinds])

    def _run(self, functions: Functions) -> tuple[float, Functions]:
        """Return the latency and the fastest start order of a process that runs `functions`.

        Long waits start first, as threads start in turn. Few threads are tried in other orders too.
        """
        found = self._alone.get(functions)
        if found is None:
            orders = {tuple(sorted(functions, key=self._by_waiting.__getitem__))}
            if len(functions) <= FEW_THREADS:
                brief = sorted(functions, key=self._by_gil.__getitem__)
                orders |= {functions, tuple(brief)}
            names = tuple(tuple(self.kinds[n].name for n in order) for order in orders)
            found = min(zip(self.predictor.each_ms(names), orders, strict=True))
            _remember(self._alone, functions, found)
        return found


def _ranks(values: Sequence[float]) -> Sequence[int]:
    """Return the rank of each of `values`; equal values rank in the order of their positions."""
    order = sorted(range(len(values)), key=lambda n: (values[n], n))
    ranks = [0] * len(values)
    for rank, n in enumerate(order):
        ranks[n] = rank
    return ranks


def _remember(found: dict[Key, Value], key: Key, value: Value, most: int = REMEMBERED) -> None:
    """Store `value` in the cache `found`; clear the cache first if it has `most` entries."""
    if len(found) >= most:
        found.clear()
    found[key] = value


def _coloured(problem: Problem, functions: Functions) -> tuple[Functions, ...]:
    """Put each function in turn into the first process without a conflict."""
    contents = list[list[int]]()
    for n in functions:
        fitting = (content for content in contents if problem.gets_on(n, content))
        content = next(fitting, None)
        if content is None:
            contents.append([n])
        else:
            content.append(n)
    return tuple(map(tuple, contents))


def _calling(platform: Platform, way: Way) -> Platform:
    """Return `platform` with the cost of calling a wrap for a stage: 0 if wraps trigger each other.

    The simulation then adds the transfer of objects, which depends on their consumers.
    """
    if way.straight:
        return platform.model_copy(update={"rpc_ms": 0.0, "invoke_ms": 0.0})
    return as_called(platform, way)


def _kind(
    name: str, function: FunctionProfile, platform: Platform, group: int, further_ms: float
) -> Kind:
    """Build a kind. Starting a thread holds the GIL; the thread then needs a while to be ready."""
    gil_ms = platform.thread_startup_ms + function.time_ms("cpu")
    start_ms = platform.thread_startup_ms + (platform.thread_ready_ms or 0.0)
    return Kind(
        name=name,
        latency_ms=start_ms + function.latency_ms,
        gil_ms=gil_ms,
        core_ms=platform.thread_startup_ms + function.core_ms,
        parallel=any(period.parallelism > 1 for period in function.periods),
        further_ms=further_ms,
        group=group,
    )
