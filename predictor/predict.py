"""Predicts a plan by one simulation of a whole request; equations (1)-(4) are a special case."""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import accumulate, chain

from chiron.predictor.crowd import Program
from chiron.predictor.emissions import expanded, known_with
from chiron.predictor.execution import Execution, Node
from chiron.predictor.image import Image
from chiron.predictor.mechanisms import mechanism_of, mechanisms_on
from chiron.predictor.mechanisms.mechanism import Costs
from chiron.predictor.moments import BESIDE, GIVEN, Moment, work_with
from chiron.predictor.paths import taken_by
from chiron.predictor.simulator import Interpreter, Processes, Simulator, Span, Work, WorkKind
from chiron.predictor.simulator import Run as Simulated
from chiron.predictor.speed import profile_at
from chiron.predictor.spread import Spread, mean_ms, percentile_ms
from chiron.predictor.streams import streams_of
from chiron.predictor.uncertainty import ends, speeds
from chiron.predictor.unrolling import Run, run_of
from chiron.predictor.wiring import Wired, wired
from chiron.workflow.model import Workflow, names_in
from chiron.workflow.plan import DEFAULT_PERCENTILE, Plan, Prediction, Within
from chiron.workflow.platform import Platform
from chiron.workflow.profile import LONGEST_MS, NEVER_MS, FunctionProfile, Period, Profile, Share

#: Decimal places of a millisecond: processors agree on more, so plans depend on no processor.
_DIGITS = 6

#: The number of cached images of wraps, by the sizes of their processes: a search uses the same few
#: again and again.
_REMEMBERED = 200

#: Additional work of a function, by where it runs: join its inputs; begin as an instance of a state
#: machine; write to memory that a fork shares; send its output to other processes.
_JOINING, _DECIDED, _SENDING = "joining", "decided", "sending"

#: The costs of a wrap without further processes.
_ALONE = Costs(ready_ms=0.0)


class Predictor:
    """Latencies of processes, wraps and plans of one workflow's functions on one platform.

    Args:
        profile, platform: the work of the functions, and the costs of the platform.
        scale: by function, the factor of its profiled duration; 1 if absent.
        slower: the factor of all profiled computing times.
    """

    def __init__(
        self,
        profile: Profile,
        platform: Platform,
        scale: Mapping[str, float] | None = None,
        slower: float = 1.0,
    ) -> None:
        self.platform, self._profile = platform, known_with(profile)
        self._slower = slower
        #: The work of every function in each of its periods.
        self._parts = {
            name: _work(function, (scale or {}).get(name, 1.0), slower)
            for name, function in profile.functions.items()
        }
        #: By a function and its additional work, the name of the variant. No name of a function
        #: contains a space.
        self._varied = dict[tuple[str, Hashable], str]()
        works = dict[str, Work]()
        for name, function in self._profile.functions.items():
            parts = self._parts.get(name, [BESIDE[GIVEN]])
            works |= self._works(name, function, tuple(chain(*parts)))
        works |= BESIDE
        interpreter = Interpreter(
            platform.switch_interval_ms,
            platform.switch_cost_ms,
            platform.thread_startup_ms,
            platform.thread_ready_ms,
            platform.short_release_ms,
        )
        self._works_of = works
        self._simulate = partial(Simulator, interpreter=interpreter)
        self._simulator = self.simulator(works, self._cooperative(works))
        self._together = lru_cache(_REMEMBERED)(self._image_together)
        self._apart = lru_cache(_REMEMBERED)(self._image_apart)

    def simulator(self, works: Mapping[str, Work], cooperative: Container[str] = ()) -> Simulator:
        """Return a simulator of `works` on the platform."""
        return self._simulate(
            works, contention_overhead=self.platform.contention_overhead, cooperative=cooperative
        )

    def _cooperative(self, works: Iterable[str]) -> set[str]:
        known = self._profile.functions
        return {name for name in works if (its := known.get(name.split()[0])) and its.cooperative}

    def _works(self, name: str, function: FunctionProfile, work: Work) -> dict[str, Work]:
        """Return the work of a function and of its variants with additional work."""
        platform, works = self.platform, {name: work}
        input_mb, output_mb = (function.input_bytes or 0) / 1e6, function.output_bytes / 1e6
        for mark, before_ms, after_ms in (
            (_JOINING, input_mb * platform.joined_ms_per_mb, 0.0),
            (_DECIDED, 0.0 if name in BESIDE else platform.instance_ms, 0.0),
            *(
                (mechanism, self._slower * mechanism_of(mechanism).further_ms(function), 0.0)
                for mechanism in mechanisms_on(platform)
            ),
            (_SENDING, 0.0, output_mb * platform.shared_ms_per_mb),
        ):
            # What is never run there competes for nothing: no switch of the GIL is simulated.
            never = before_ms >= self._slower * NEVER_MS
            kind: WorkKind = "block" if never else "cpu" if platform.gil else "native"
            before: Work = ((kind, before_ms),) if before_ms else ()
            after: Work = (("native", after_ms),) if after_ms else ()
            for each in [*works] if before or after else []:
                self._varied[each, mark] = varied = f"{each} {mark}"
                works[varied] = (*before, *works[each], *after)
        return works

    def simulate(self, processes: Processes, cpus: int, mechanism: str) -> list[float]:
        """Return the end of each process of a wrap whose tasks all start at once."""
        image = self._together(tuple(map(len, processes)), cpus, mechanism)
        functions = self._functions(processes, mechanism)
        return _rounded(self._simulator.run(image, functions).ends_ms())

    def each_ms(self, processes: Processes) -> list[float]:
        """Return the end of each process, each alone in a wrap, whose tasks all start at once."""
        image = self._apart(tuple(map(len, processes)))
        return _rounded(self._simulator.run(image, chain(*processes)).ends_ms())

    def plan_ms(self, plan: Plan, workflow: Workflow) -> float:
        plan, workflow, made = self._wired(plan, workflow)
        image = self._simulator.image(made.execution)
        run = self._simulator.run(image, self._functions_of(plan, workflow))
        return round(run.fired_ms()[made.reply], _DIGITS)

    def recorded(
        self, plan: Plan, workflow: Workflow
    ) -> tuple[Plan, Workflow, Wired, Simulated, list[Span]]:
        """Return the simulated execution of `plan`, its results, and the spans of every thread.

        Plan and workflow are as simulated: see `chiron.predictor.emissions`.
        """
        plan, workflow, made = self._wired(plan, workflow)
        image = self._simulator.image(made.execution)
        functions = self._functions_of(plan, workflow)
        return plan, workflow, made, *self._simulator.recorded(image, functions)

    def program(self, plan: Plan, workflow: Workflow, shared: bool) -> Program:
        """Return the program of `plan`, on cores that all wraps share or on separate cores."""
        plan, workflow, made = self._wired(plan, workflow, shared)
        functions = self._functions_of(plan, workflow)
        works = {name: self._works_of[name] for name in functions}
        return Program(
            [wrap.name for wrap in plan.wraps],
            made,
            [task for wrap in plan.wraps for task in wrap.tasks],
            functions,
            works,
            self._cooperative(works),
        )

    def _wired(
        self, plan: Plan, workflow: Workflow, shared: bool | None = None
    ) -> tuple[Plan, Workflow, Wired]:
        """Return the execution, and the plan and workflow with tasks for outputs and awaits."""
        streams = streams_of(plan, workflow, self._profile, self.platform)
        plan, workflow, flows = expanded(plan, workflow, self._profile, streams, self._variant)
        made = wired(plan, workflow, self._profile, self.platform, flows, shared)
        return plan, workflow, made

    def _variant(self, function: str, moments: Sequence[Moment]) -> str:
        """Return the name of a variant of `function` with additional work at some moments."""
        if not moments:
            return function
        key = function, tuple(moments)
        if key not in self._varied:
            self._varied[key] = name = f"{function} {len(self._varied)}"
            known = self._profile.functions[function]
            self._profile.functions[name] = known
            work = work_with(known, self._parts[function], moments)
            works = self._works(name, known, work)
            self._works_of |= works
            self._simulator.learn(works, self._cooperative(works))
        return self._varied[key]

    def _image_together(self, sizes: tuple[int, ...], cpus: int, mechanism: str) -> Image:
        """Return the image of a wrap with processes of these sizes; all tasks start at once."""
        costs = mechanism_of(mechanism).costs(self.platform)
        processes = [(0, size) for size in sizes]
        nodes = [Node(starts=range(sum(sizes)))]
        cores = [min(cpus, self.platform.cpus)]
        return self._simulator.image(Execution(cores, [(0, costs)], processes, nodes))

    def _image_apart(self, sizes: tuple[int, ...]) -> Image:
        """Return the image of wraps of one process of these sizes; all tasks start at once."""
        ends = accumulate(sizes)
        nodes = [
            Node(wrap=wrap, starts=range(end - size, end))
            for wrap, (size, end) in enumerate(zip(sizes, ends, strict=True))
        ]
        wraps = [(wrap, _ALONE) for wrap in range(len(sizes))]
        return self._simulator.image(
            Execution([1] * len(sizes), wraps, list(enumerate(sizes)), nodes)
        )

    def _functions_of(self, plan: Plan, workflow: Workflow) -> list[str]:
        """Return the functions of all tasks of `plan`, process by process."""
        joins, sends = _joins(plan, workflow), _sends(plan, workflow)
        decided = workflow.decided and plan.orchestrator == "wrap"

        def before(task: str) -> str:
            function = self._vary(workflow.function_of(task), _JOINING, task in joins)
            return self._vary(function, _DECIDED, decided)

        found = list[str]()
        for wrap in plan.wraps:
            functions = tuple(tuple(map(before, tasks)) for tasks in wrap.processes)
            names = self._functions(functions, wrap.mechanism)
            found += [
                self._vary(name, _SENDING, task in sends)
                for name, task in zip(names, wrap.tasks, strict=True)
            ]
        return found

    def _functions(self, processes: Processes, mechanism: str) -> Iterable[str]:
        """Return the functions of a wrap; in a further process they may take longer."""
        further = (self._vary(name, mechanism) for name in chain(*processes[1:]))
        return chain(processes[0], further)

    def _vary(self, function: str, mark: str, does: bool = True) -> str:
        """Return the variant of `function` with additional work, if it has one."""
        return self._varied.get((function, mark), function) if does else function


def _joins(plan: Plan, workflow: Workflow) -> set[str]:
    """Return the tasks that join several outputs: in each process, the first that needs them."""
    found = dict[tuple[int, int, tuple[str, ...]], str]()
    if plan.orchestrator == "wrap":
        for number, wrap in enumerate(plan.wraps):
            for process, tasks in enumerate(wrap.processes):
                for task in tasks:
                    source = workflow.by_name[task].source
                    if isinstance(source, tuple):
                        found.setdefault((number, process, source), task)
    return set(found.values())


def _sends(plan: Plan, workflow: Workflow) -> set[str]:
    """Return the tasks whose outputs go to another process of their wrap.

    That process needs the output, or it is the main process, which sends outputs to other wraps.
    """
    place = {
        task: (wrap.name, number)
        for wrap in plan.wraps
        for number, tasks in enumerate(wrap.processes)
        for task in tasks
    }
    takers = {task: {(place[task][0], 0)} for task in names_in(workflow.output)}
    for task in workflow.tasks:
        wrap, number = place[task.name]
        for taken in taken_by(task):
            its = place[taken][0]
            taker = (wrap, number) if its == wrap else (its, 0)
            takers.setdefault(taken, set()).add(taker)
    return {task for task, own in place.items() if takers.get(task, set()) - {own}}


def _rounded(times_ms: Iterable[float]) -> list[float]:
    return [round(each, _DIGITS) for each in times_ms]


def predict(
    plan: Plan,
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    percentile: float = DEFAULT_PERCENTILE,
) -> Prediction:
    """Return the latency of requests to `plan`: the median, the percentile, and their ranges.

    All payloads count by their weights, and requests with one payload differ by its `Spread`.
    Functions run at the speed at which the platform was calibrated.

    Each side of a range combines three independent errors, whose squares add up: the spreads of
    profiles and constants, all at their lower or all at their upper ends; another speed of the
    machine; and the platform's ``prediction_error``.

    Raises ``unknown-function`` if a function has no profile; ``missing-task``, ``repeated-task`` or
    ``unknown-task`` if plan and workflow differ.
    """
    profile.require(workflow.functions)
    plan.check_against(workflow)
    profile = profile_at(profile, platform.cpu_probe_ms)
    mix = profile.mix
    runs = [run_of(workflow, share.profile) for share in mix]
    ranges = [_predict_one(plan, run, platform) for run in runs]
    spreads = [Spread.of(run.workflow, run.profile, platform) for run in runs]
    lows, middles, highs = (
        [
            (share.weight, spread.each_ms(median_ms))
            for share, spread, median_ms in zip(mix, spreads, medians_ms, strict=True)
        ]
        for medians_ms in zip(*ranges, strict=True)
    )

    def at(percent: float) -> tuple[float, float, float]:
        low_ms, middle_ms, high_ms = (percentile_ms(e, percent) for e in (lows, middles, highs))
        return low_ms, middle_ms, min(high_ms, max(middle_ms, LONGEST_MS))

    low_ms, latency_ms, high_ms = at(50)
    within_low_ms, within_ms, within_high_ms = at(percentile)
    payloads_ms = {
        share.payload: round(percentile_ms([each], 50), 4)
        for share, each in zip(mix, middles, strict=True)
    }
    return Prediction(
        latency_ms=round(latency_ms, 4),
        low_ms=round(low_ms, 4),
        high_ms=round(high_ms, 4),
        within=Within(
            percentile=percentile,
            ms=round(within_ms, 4),
            low_ms=round(within_low_ms, 4),
            high_ms=round(within_high_ms, 4),
        ),
        mean_ms=round(mean_ms(middles), 4),
        warnings=(*profile.warnings, *platform.warnings),
        payloads_ms=payloads_ms if len(mix) > 1 else None,
    )


def at_percentile(mix: Sequence[Share], values: Sequence[float], percent: float) -> int:
    """Return the index of the payload at the percentile `percent` of `values`, by weight."""
    order = sorted(range(len(mix)), key=values.__getitem__)
    shares = list(accumulate(mix[place].weight for place in order))
    # Rounded shares may add up to a little less than 1.
    wanted = shares[-1] * percent / 100 * (1 - 1e-9)
    return next(place for place, share in zip(order, shares, strict=True) if share >= wanted)


def _predict_one(plan: Plan, run: Run, platform: Platform) -> tuple[float, float, float]:
    """Return the low end, the median and the high end of the requests with a single payload."""
    (plan, workflow), profile = run.placed(plan), run.profile
    latency = Predictor(profile, platform).plan_ms(plan, workflow)
    below_ms = [latency * platform.prediction_error]
    above_ms = [latency * platform.prediction_error]
    for variants in (ends(profile, platform), speeds(platform)):
        predictors = (Predictor(profile, *variant) for variant in variants)
        each = [latency, *(each.plan_ms(plan, workflow) for each in predictors)]
        below_ms.append(latency - min(each))
        above_ms.append(max(each) - latency)
    low_ms, high_ms = latency - math.hypot(*below_ms), latency + math.hypot(*above_ms)
    return max(0.0, low_ms), latency, high_ms


def _work(function: FunctionProfile, scale: float, slower: float) -> list[Work]:
    """Return the work of a function in each of its periods."""
    return [
        tuple(_parts(period, scale * (1.0 if period.kind == "block" else slower)))
        for period in function.periods
    ]


def _parts(period: Period, scale: float) -> Iterator[tuple[WorkKind, float]]:
    """Yield a period, with the helpers that compute beside it by its parallelism.

    The fraction of a core is a helper that ends earlier.
    """
    duration_ms = period.duration_ms * scale
    whole, part = divmod(period.parallelism - 1.0, 1.0)
    helpers_ms = [duration_ms] * int(whole) + [part * duration_ms] * (part > 0)
    yield from (("helper", helper_ms) for helper_ms in helpers_ms)
    yield period.kind, duration_ms
    if helpers_ms:
        yield "join", 0.0
