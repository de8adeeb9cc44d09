"""What a search works on: functions by number, and what a process of some of them takes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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
from chiron.workflow.profile import FunctionProfile, Profile

Key = TypeVar("Key")
Value = TypeVar("Value")

#: How many processes are remembered before all are forgotten again: about 30 MiB.
REMEMBERED = 50_000
#: How many slots are: those of a few shapes, some MiB.
REMEMBERED_SLOTS = 500
#: Up to so many threads of a process their order is worth a search: among 6 the best one is 2 %
#: faster than the worst in the mean, among 30 it is 0.2 %.
FEW_THREADS = 10


@dataclass(frozen=True)
class Kind:
    """Functions that do the same and get on with the same others: exchanging them changes nothing.

    ``latency_ms`` is what it takes alone in a process, from the start of its thread on, ``gil_ms``
    for how long it keeps others from the GIL, ``core_ms`` for how long from a core; it is
    ``parallel`` where it can keep more cores busy than one. ``forked_ms`` is how much longer it
    takes in a process that is forked for the request. ``name`` is one of them. ``group`` numbers
    the wraps' contents: functions of different groups must not share a wrap.
    """

    name: str
    latency_ms: float
    gil_ms: float
    core_ms: float
    parallel: bool
    forked_ms: float
    group: int


@dataclass(frozen=True)
class Problem:
    """A workflow's functions as numbers, and the latency of a process that runs some of them.

    Numbers rise with falling solo latency. ``apart`` are, for those that have any, the numbers
    that must not share a process with one (with itself: no two of it must), ``single`` the groups
    that have to be one wrap. ``calling`` has what it costs that a wrap takes part in a stage.

    What a process takes by itself is simulated once for every multiset of functions: as long as a
    wrap has a core for each process, no function computes with the GIL released or starts helpers,
    and no core is wasted, the processes of a wrap do not influence each other.
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
        """The problem with functions that do the same made one."""
        groups = conflicts.groups()
        alike: dict[object, list[str]] = {}
        for name in sorted(workflow.functions):
            function = profile.functions[name]
            work = tuple((p.kind, p.duration_ms, p.parallelism) for p in function.periods)
            key = (
                *(work, function.new_process_ms),
                *(function.memory_mib, function.idle_mib, function.forked_mib),
                (function.runtime, function.runtime_mib),
                # What stands for a wait is in no conflict.
                *(groups.get(name, 0), conflicts.apart(name)),
            )
            alike.setdefault(key, []).append(name)
        classes = sorted(alike.values(), key=lambda c: (-profile.functions[c[0]].latency_ms, c[0]))
        number_of = {name: number for number, c in enumerate(classes) for name in c}
        kinds = tuple(
            _kind(c[0], profile.functions[c[0]], platform, groups.get(c[0], 0)) for c in classes
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
        """The constants of the place."""
        return self.predictor.platform

    def numbers(self, stage: Sequence[str], group: int) -> Functions:
        """The functions of those tasks of a stage that belong to `group`, sorted."""
        numbers = (self.number_of[self.workflow.function_of(task)] for task in stage)
        return tuple(sorted(n for n in numbers if self.kinds[n].group == group))

    def slots(self, sizes: tuple[int, ...], before: int) -> Slots:
        """The slots of consecutive wraps: all stages ask for the same ones in turn."""
        key = sizes, before
        if key not in self._slots:
            places = slots(sizes, before, self.mechanism, self.calling)
            _remember(self._slots, key, places, REMEMBERED_SLOTS)
        return self._slots[key]

    def alone_ms(self, functions: Functions) -> float:
        """How long a process takes that runs `functions` on a core of its own."""
        return self._run(functions)[0]

    def in_order(self, functions: Functions) -> Functions:
        """`functions` in the order in which a process had best start them."""
        return self._run(functions)[1]

    def wrap_ends_ms(self, processes: tuple[Functions, ...]) -> list[float]:
        """When each process of a wrap ends, that has a core for each and competes for them."""
        ends = self._together.get(processes)
        if ends is None:
            names = tuple(map(self.names, processes))
            ends = self.predictor.simulate(names, len(processes), self.mechanism)
            _remember(self._together, processes, ends)
        return ends

    def names(self, functions: Functions) -> tuple[str, ...]:
        """Names for the predictor, in the order in which a process had best start them."""
        return tuple(self.kinds[n].name for n in self.in_order(functions))

    def can_share(self, functions: Functions) -> bool:
        """Whether one process may run all of `functions`."""
        return not self.apart or all(
            self.gets_on(n, functions[:place]) for place, n in enumerate(functions)
        )

    def gets_on(self, n: int, functions: Iterable[int]) -> bool:
        """Whether a process that runs `functions`, which may share it, may run `n` too."""
        return n not in self.apart or self.apart[n].isdisjoint(functions)

    def separated(self, functions: Functions) -> tuple[Functions, ...]:
        """`functions` in few processes, so that none share one that must not: greedy colouring."""
        if not self.apart:
            return (functions,)
        if functions not in self._separated:
            _remember(self._separated, functions, _coloured(self, functions))
        return self._separated[functions]

    def gil_ms(self, functions: Functions) -> float:
        """How long a process that runs `functions` holds the GIL: it takes no less."""
        return sum(self.kinds[n].gil_ms for n in functions)

    def forked_ms(self, functions: Functions) -> float:
        """How much longer they take in a process that is new for the request."""
        if mechanism_of(self.mechanism).lasting:
            return 0.0
        return sum(self.kinds[n].forked_ms for n in functions)

    def core_ms(self, functions: Functions) -> float:
        """How long `functions` compute in all: it takes no less on one core."""
        return sum(self.kinds[n].core_ms for n in functions)

    def busy_ms(self, functions: Functions, places: Slots) -> float:
        """How long the cores behind `places` compute `functions`, none of them ever idle."""
        wraps = 1 if self.platform.one_node else len(places.sizes)
        cores = wraps * self.platform.cpus
        return (self.core_ms(functions) + places.computing_ms) / cores

    @cached_property
    def _by_waiting(self) -> Sequence[int]:
        """The rank of every kind among all: who waits longest while others compute comes first."""
        return _ranks([kind.gil_ms - kind.latency_ms for kind in self.kinds])

    @cached_property
    def _by_gil(self) -> Sequence[int]:
        """The rank of every kind among all: who holds the GIL for the least time comes first."""
        return _ranks([kind.gil_ms for kind in self.kinds])

    def _run(self, functions: Functions) -> tuple[float, Functions]:
        """Threads start one after another, so those that wait longest had best come first.

        Few threads are tried in other orders too: the longest first, the least GIL time first.
        """
        found = self._alone.get(functions)
        if found is None:
            orders = {tuple(sorted(functions, key=self._by_waiting.__getitem__))}
            if len(functions) <= FEW_THREADS:
                brief = sorted(functions, key=self._by_gil.__getitem__)
                orders |= {functions, tuple(brief)}
            found = min(zip(self._simulated_ms(orders), orders, strict=True))
            _remember(self._alone, functions, found)
        return found

    def _simulated_ms(self, orders: Collection[Functions]) -> list[float]:
        """What a process takes that starts its functions in each of some orders."""
        return self.predictor.each_ms(
            tuple(tuple(self.kinds[n].name for n in order) for order in orders)
        )


def _ranks(values: Sequence[float]) -> Sequence[int]:
    """The place of each of `values` in their order; of equal ones the first comes first."""
    order = sorted(range(len(values)), key=lambda n: (values[n], n))
    ranks = [0] * len(values)
    for rank, n in enumerate(order):
        ranks[n] = rank
    return ranks


def _remember(found: dict[Key, Value], key: Key, value: Value, most: int = REMEMBERED) -> None:
    """Keep `value`, and the memory of a long search within bounds."""
    if len(found) >= most:
        found.clear()
    found[key] = value


def _coloured(problem: Problem, functions: Functions) -> tuple[Functions, ...]:
    """Each function in turn to the first process that takes it."""
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
    """`platform` as it calls a wrap for a stage: not at all where wraps trigger each other.

    What objects take on their way then is left to the simulation: it goes by where they are needed,
    which stages one by one do not know.
    """
    if way.straight:
        return platform.model_copy(update={"rpc_ms": 0.0, "invoke_ms": 0.0})
    return as_called(platform, way)


def _kind(name: str, function: FunctionProfile, platform: Platform, group: int) -> Kind:
    """Who starts a thread holds the GIL meanwhile; a new one then needs a while to be ready."""
    gil_ms = platform.thread_startup_ms + function.time_ms("cpu")
    start_ms = platform.thread_startup_ms + (platform.thread_ready_ms or 0.0)
    return Kind(
        name=name,
        latency_ms=start_ms + function.latency_ms,
        gil_ms=gil_ms,
        core_ms=platform.thread_startup_ms + function.core_ms,
        parallel=any(period.parallelism > 1 for period in function.periods),
        forked_ms=function.new_process_ms,
        group=group,
    )
