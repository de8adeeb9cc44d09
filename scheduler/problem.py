"""What a search works on: functions by number, and what a process of some of them takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from predictor.predict import Predictor
from scheduler.conflicts import Conflicts
from scheduler.kernighan_lin import Functions
from workflow.model import Workflow
from workflow.plan import Mechanism
from workflow.platform import Platform
from workflow.profile import FunctionProfile, Profile

#: Up to so many threads of a process their order is worth a search: among 6 the best one is 2 %
#: faster than the worst in the mean, among 30 it is 0.2 %.
FEW_THREADS = 10


@dataclass(frozen=True)
class Kind:
    """Functions that do the same and get on with the same others: exchanging them changes nothing.

    ``gil_ms`` is how long it holds the GIL, ``core_ms`` how long it computes, with it or without.
    ``name`` is one of them. ``group`` numbers the wraps' contents: functions of different groups
    must not share a wrap.
    """

    name: str
    latency_ms: float
    gil_ms: float
    core_ms: float
    group: int


@dataclass(frozen=True)
class Problem:
    """A workflow's functions as numbers, and the latency of a process that runs some of them.

    Numbers rise with falling solo latency. ``apart`` are pairs that must not share a process,
    ``single`` the groups that have to be one wrap.

    What a process takes by itself is simulated once for every multiset of functions: as long as a
    wrap has a core for each process and no function computes with the GIL released, the processes
    of a wrap do not influence each other.
    """

    workflow: Workflow
    predictor: Predictor
    mechanism: Mechanism
    kinds: tuple[Kind, ...]
    number_of: Mapping[str, int]
    apart: frozenset[tuple[int, int]]
    single: frozenset[int]
    _alone: dict[Functions, tuple[float, Functions]] = field(default_factory=dict, repr=False)
    _together: dict[tuple[Functions, ...], list[float]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        workflow: Workflow,
        profile: Profile,
        platform: Platform,
        mechanism: Mechanism,
        conflicts: Conflicts,
    ) -> Problem:
        """The problem with functions that do the same made one."""
        groups = conflicts.groups()
        alike: dict[object, list[str]] = {}
        for name in sorted(workflow.functions):
            function = profile.functions[name]
            work = tuple((period.kind, period.duration_ms) for period in function.periods)
            key = (work, function.memory_mib, groups[name], conflicts.apart(name))
            alike.setdefault(key, []).append(name)
        classes = sorted(alike.values(), key=lambda c: (-profile.functions[c[0]].latency_ms, c[0]))
        number_of = {name: number for number, c in enumerate(classes) for name in c}
        kinds = tuple(_kind(c[0], profile.functions[c[0]], groups[c[0]]) for c in classes)
        apart = {
            (number_of[a], number_of[b])
            for pair in conflicts.process
            for a, b in (pair, pair[::-1])
        }
        predictor = Predictor(profile, platform)
        single = frozenset(groups[name] for wish in conflicts.together for name in wish)
        return cls(workflow, predictor, mechanism, kinds, number_of, frozenset(apart), single)

    @property
    def platform(self) -> Platform:
        """The constants of the place."""
        return self.predictor.platform

    def numbers(self, stage: Sequence[str], group: int) -> Functions:
        """The functions of those tasks of a stage that belong to `group`, sorted."""
        numbers = (self.number_of[self.workflow.function_of(task)] for task in stage)
        return tuple(sorted(n for n in numbers if self.kinds[n].group == group))

    def alone_ms(self, functions: Functions) -> float:
        """How long a process takes that runs `functions` on a core of its own."""
        return self._run(functions)[0]

    def in_order(self, functions: Functions) -> Functions:
        """`functions` in the order in which a process had best start them."""
        return self._run(functions)[1]

    def wrap_ends_ms(self, processes: tuple[Functions, ...]) -> list[float]:
        """When each process of a wrap ends, that has a core for each and competes for them."""
        if processes not in self._together:
            names = tuple(map(self.names, processes))
            ends = self.predictor.simulate(names, len(processes), self.mechanism)
            self._together[processes] = ends
        return self._together[processes]

    def names(self, functions: Functions) -> tuple[str, ...]:
        """Names for the predictor, in the order in which a process had best start them."""
        return tuple(self.kinds[n].name for n in self.in_order(functions))

    def can_share(self, functions: Functions) -> bool:
        """Whether one process may run all of `functions`."""
        if not self.apart:
            return True
        distinct = sorted(set(functions))
        return not any(
            (a, b) in self.apart for i, a in enumerate(distinct) for b in distinct[i + 1 :]
        )

    def gil_ms(self, functions: Functions) -> float:
        """How long a process that runs `functions` holds the GIL: it takes no less."""
        return sum(self.kinds[n].gil_ms for n in functions)

    def core_ms(self, functions: Functions) -> float:
        """How long `functions` compute in all: it takes no less on one core."""
        return sum(self.kinds[n].core_ms for n in functions)

    def _run(self, functions: Functions) -> tuple[float, Functions]:
        """Threads start one after another, so those that wait longest had best come first.

        Few threads are tried in other orders too: the longest first, the least GIL time first.
        """
        if functions not in self._alone:
            kinds = self.kinds
            waiting = sorted(functions, key=lambda n: (kinds[n].gil_ms - kinds[n].latency_ms, n))
            orders = {tuple(waiting): None}
            if len(functions) <= FEW_THREADS:
                brief = sorted(functions, key=lambda n: (kinds[n].gil_ms, n))
                orders |= {functions: None, tuple(brief): None}
            self._alone[functions] = min((self._simulated_ms(order), order) for order in orders)
        return self._alone[functions]

    def _simulated_ms(self, order: Functions) -> float:
        names = tuple(self.kinds[n].name for n in order)
        return self.predictor.simulate((names,), 1, self.mechanism)[0]


def separated(problem: Problem, functions: Functions) -> list[Functions]:
    """`functions` in few processes so that none are in one that must not be: greedy colouring."""
    if not problem.apart:
        return [functions]
    contents = list[list[int]]()
    for n in functions:
        fitting = (content for content in contents if problem.can_share((*content, n)))
        content = next(fitting, None)
        if content is None:
            contents.append([n])
        else:
            content.append(n)
    return [tuple(content) for content in contents]


def _kind(name: str, function: FunctionProfile, group: int) -> Kind:
    return Kind(
        name=name,
        latency_ms=function.latency_ms,
        gil_ms=function.time_ms("cpu"),
        core_ms=function.time_ms("cpu") + function.time_ms("native"),
        group=group,
    )
